// BLAS calls from the program to the decoded log: plain programs, numpy, libraries loaded at run time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>

#include "collect/testing/test_log.h"

namespace llmprof::collect::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using wire::ElementType;
using wire::GemmRecord;
using wire::Layout;
using wire::LossKind;
using wire::RecordKind;
using wire::Transpose;

std::string test_library(const std::string& name) { return std::string(LLMPROF_TEST_CLIENTS) + "/" + name; }

struct Call {
  std::string function;
  std::int64_t m, n, k;
  ElementType type;
  Layout layout;
  Transpose a, b;
  bool operator==(const Call&) const = default;
};
void PrintTo(const Call& call, std::ostream* out) {
  *out << call.function << " " << call.m << "x" << call.n << "x" << call.k << " type " << int(call.type) << " layout "
       << int(call.layout) << " " << int(call.a) << int(call.b);
}

std::vector<Call> calls(const Log& log) {
  std::vector<Call> result;
  std::vector<GemmRecord> gemms = log.gemms();
  std::sort(gemms.begin(), gemms.end(), [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  for (const GemmRecord& gemm : gemms) {
    EXPECT_LE(gemm.begin_ns, gemm.end_ns);
    EXPECT_EQ(gemm.batch, 1u);
    result.push_back(
        {log.name(gemm.function), gemm.m, gemm.n, gemm.k, gemm.type, gemm.layout, gemm.trans_a, gemm.trans_b});
  }
  return result;
}

// As the log says itself, at last.
std::uint64_t counted_gemms(const Log& log) {
  std::uint64_t count = 0;
  for (const Entry& entry : log.entries) {
    if (entry.record.kind == RecordKind::kCost) count = entry.record.cost.gemm_events;
  }
  return count;
}

constexpr auto kF32 = ElementType::kFloat32;
constexpr auto kF64 = ElementType::kFloat64;
constexpr auto kRow = Layout::kRowMajor;
constexpr auto kColumn = Layout::kColumnMajor;
constexpr auto kN = Transpose::kNo;
constexpr auto kT = Transpose::kYes;
constexpr auto kC = Transpose::kConjugate;

// What client_blas.cpp does: m, n, k as passed; gemv of a 3 x 5 matrix, whose transpose is 5 x 3.
const std::vector<Call> kGemms = {{"cblas_sgemm", 3, 5, 7, kF32, kRow, kN, kT},
                                  {"cblas_dgemm", 3, 5, 7, kF64, kColumn, kT, kN},
                                  {"sgemm_", 3, 5, 7, kF32, kColumn, kN, kT},
                                  {"dgemm_", 3, 5, 7, kF64, kColumn, kT, kC}};
const std::vector<Call> kGemvs = {{"cblas_sgemv", 3, 1, 5, kF32, kRow, kN, kN},
                                  {"cblas_dgemv", 5, 1, 3, kF64, kColumn, kT, kN},
                                  {"sgemv_", 5, 1, 3, kF32, kColumn, kT, kN},
                                  {"dgemv_", 3, 1, 5, kF64, kColumn, kN, kN}};
std::vector<Call> operator+(std::vector<Call> a, const std::vector<Call>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Blas : public ::testing::Test {
 protected:
  std::vector<Log> logs(const Launch& launch, std::string* output = nullptr) {
    status_ = run(folder_, launch, output);
    std::vector<Log> result = read_folder(folder_.path());
    for (const Log& log : result) EXPECT_EQ(log.damaged_bytes + log.missing_blocks + log.undefined_names, 0u);
    return result;
  }
  Log only_log(const Launch& launch, std::string* output = nullptr) {
    const std::vector<Log> all = logs(launch, output);
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Log{} : all.front();
  }
  CaptureFolder folder_;
  int status_ = -1;
};

TEST_F(Blas, PlainProgramEverySpelling) {
  std::string output;
  const Log log = only_log({.arguments = {client("blas")}}, &output);
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(output, "right\n");
  EXPECT_EQ(calls(log), kGemms + kGemvs);
  EXPECT_THAT(log.name(log.gemms().front().library), HasSubstr("blas"));
  EXPECT_EQ(log.lost(LossKind::kBlasNotHooked), 0u);
  EXPECT_EQ(log.lost(LossKind::kBlasUnresolved), 0u);
  EXPECT_TRUE(log.ended());
}

// Files of a model that are read are told; each once, of many shards the first, and nothing that is only written.
TEST_F(Blas, FilesOfAModel) {
  const std::string folder = folder_.path() + "/another";
  std::filesystem::create_directory(folder);
  std::string output;
  const Log log = only_log({.arguments = {"/bin/sh", "-c", "cd " + folder + " && exec " + client("open")}}, &output);
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(output, "right\n");
  EXPECT_EQ(log.gemms().size(), 2u);
  std::vector<std::string> files;
  for (const Entry& entry : log.entries) {
    if (entry.record.kind != RecordKind::kLibrary || entry.record.library.hooked != wire::kLibraryIsModelFile) continue;
    const std::string path = log.name(entry.record.library.path);
    ASSERT_TRUE(path.starts_with(folder + "/")) << path;
    files.push_back(path.substr(folder.size() + 1));
  }
  EXPECT_THAT(files,
              ::testing::UnorderedElementsAre("model-0.safetensors", "model-1.safetensors", "model-2.safetensors",
                                              "model-3.safetensors", "config.json", "x.gguf", "later/config.json"));
}

TEST_F(Blas, ForkedChildHasItsOwnLog) {
  const std::vector<Log> all = logs({.arguments = {client("blas"), "fork"}});
  EXPECT_EQ(status_, 0);
  ASSERT_EQ(all.size(), 2u);
  const bool first_is_parent = all[0].gemms().size() > all[1].gemms().size();
  EXPECT_EQ(calls(all[first_is_parent ? 0 : 1]), kGemms + kGemvs + kGemvs);
  EXPECT_EQ(calls(all[first_is_parent ? 1 : 0]), kGemms);
}

#if defined(__x86_64__)
// _exit() and a signal to itself skip the exit handlers: nothing that was recorded before is missing, whatever the
// time, and what the log counts is what it holds.
TEST_F(Blas, EndsWithoutExitHandlers) {
  for (const std::string way : {"_exit", "raise", "kill"}) {
    const CaptureFolder folder;
    std::string output;
    const int status =
        run(folder, {.arguments = {client("blas"), way}, .environment = {"LLMPROF_FLUSH_MS=60000"}}, &output);
    EXPECT_EQ(output, "right\n");
    EXPECT_EQ(status, way == "_exit" ? 3 << 8 : way == "raise" ? SIGTERM : SIGINT);
    const std::vector<Log> all = read_folder(folder.path());
    ASSERT_EQ(all.size(), 1u) << way;
    EXPECT_EQ(calls(all[0]), kGemms + kGemvs) << way;
    EXPECT_EQ(all[0].ended(), way == "_exit");
    EXPECT_EQ(counted_gemms(all[0]), 8u) << way;
  }
}
#endif

// The same if it is killed by another: it may have made more, but what is counted is what is there.
TEST_F(Blas, AKilledProcessCountsWhatItWrote) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = {client("blas"), "forever"}, .kill_after_ms = 1450}), SIGKILL);
  const std::vector<Log> all = read_folder(folder.path());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_GT(all[0].gemms().size(), 8u);
  EXPECT_EQ(counted_gemms(all[0]), all[0].gemms().size());
}

// Python opens extensions with RTLD_LOCAL, so the BLAS behind numpy is in no global scope.
TEST_F(Blas, Numpy) {
  const std::string python = "/usr/bin/python3";
  if (!std::filesystem::exists(python) || system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
    GTEST_SKIP() << "python3-numpy is not installed: the numpy case was not run";
  }
  std::string output;
  const Log log = only_log({.arguments = {python, "-c",
                                          "import numpy as np\n"
                                          "a = np.ones((30, 20), dtype=np.float32)\n"
                                          "b = np.ones((20, 10), dtype=np.float32)\n"
                                          "print(float((a @ b).sum()))\n"
                                          "print(float((np.ones((4, 6)) @ np.ones(6)).sum()))\n"}},
                           &output);
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(output, "6000.0\n24.0\n");  // 300 elements of 20, 4 elements of 6
  const std::vector<Call> seen = calls(log);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], (Call{"cblas_sgemm", 30, 10, 20, kF32, kRow, kN, kN}));
  EXPECT_EQ(seen[1].function, "cblas_dgemv");
  EXPECT_EQ(seen[1].m * 100 + seen[1].k, 406);  // op(A) is 4 x 6 however numpy asked for it
  EXPECT_EQ(log.lost(LossKind::kBlasNotHooked), 0u);
}

// Importing numpy without a product must not look like a BLAS that is hidden from us.
TEST_F(Blas, LoadedButUnusedIsNoLoss) {
  if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "python3-numpy is not installed";
  EXPECT_TRUE(logs({.arguments = {"/usr/bin/python3", "-c", "import ctypes.util"}}).empty());
  for (const Log& log : logs({.arguments = {"/usr/bin/python3", "-c", "import numpy"}})) {
    EXPECT_EQ(log.lost(LossKind::kBlasNotHooked), 0u);
  }
}

// Two plugins, each linked with a BLAS of its own under the same names: a call goes where its caller was linked to.
TEST_F(Blas, EachCallerReachesItsOwnLibrary) {
  std::string output;
  const Log log = only_log({.arguments = {client("dl"), "plugins", test_library("libcollect_plugin_a.so"),
                                          test_library("libcollect_plugin_b.so")}},
                           &output);
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(output, "1 1 6.25 2 2 6.25 \n");  // 6.25 = 1.5 * 4 + 0.25: their own sgemm, arguments in any register
  const std::vector<Call> expected = {{"cblas_sgemm", 2, 3, 4, kF32, kRow, kN, kT},
                                      {"cblas_dgemm64_", 5, 6, std::int64_t{1} << 33, kF64, kColumn, kT, kN}};
  EXPECT_EQ(calls(log), expected + expected);
  EXPECT_THAT(log.name(log.gemms()[0].library), EndsWith("libcollect_fake_a.so"));
  EXPECT_THAT(log.name(log.gemms()[2].library), EndsWith("libcollect_fake_b.so"));
  EXPECT_EQ(log.lost(LossKind::kBlasUnresolved), 0u);
}

TEST_F(Blas, PlainNamesOfMkl) {
  std::string output;
  const Log log = only_log({.arguments = {client("dl"), "plugins", test_library("libcollect_plugin_mkl.so")}}, &output);
  EXPECT_EQ(output, "3 3 3 \n");
  ASSERT_EQ(calls(log).size(), 3u);
  EXPECT_EQ(calls(log)[2], (Call{"sgemm", 1, 2, 3, kF32, kColumn, kT, kN}));
}

TEST_F(Blas, ReachedThroughAHandleIsALoss) {
  const Log log = only_log({.arguments = {client("dl"), "handle", test_library("libcollect_fake_a.so")}});
  EXPECT_EQ(status_, 0);
  EXPECT_TRUE(log.gemms().empty());
  EXPECT_EQ(log.lost(LossKind::kBlasNotHooked), 1u);
  std::vector<std::string> not_hooked;
  for (const Entry& entry : log.entries) {
    if (entry.record.kind == RecordKind::kLibrary && entry.record.library.hooked == 0) {
      not_hooked.push_back(log.name(entry.record.library.path));
    }
    if (entry.record.kind == RecordKind::kLoss && entry.record.loss.kind == LossKind::kBlasNotHooked) {
      EXPECT_THAT(log.name(static_cast<wire::StringId>(entry.record.loss.detail)), EndsWith("libcollect_fake_a.so"));
    }
  }
  EXPECT_THAT(not_hooked, ::testing::ElementsAre(EndsWith("libcollect_fake_a.so")));
}

// Without a BLAS the program must not believe that there is one, and with one it must.
TEST_F(Blas, ProgramsThatAskWhetherThereIsOne) {
  const CaptureFolder folder;
  std::string output;
  EXPECT_EQ(run(folder, {.arguments = {client("dl"), "asks", test_library("libcollect_fake_a.so")}}, &output), 0);
  EXPECT_EQ(output, "no no yes yes \n");
}

#if defined(__x86_64__)
// So it is with weak references: of the program, of a library, as addresses and in a table. One that was opened when
// there was a BLAS has it, in its two references to cblas_sgemm.
TEST_F(Blas, WeakReferences) {
  std::string output;
  const std::vector<std::string> program = {client("dl"), "weak", test_library("libcollect_plugin_bare.so"),
                                            test_library("libcollect_fake_a.so")};
  const Log log = only_log({.arguments = program}, &output);
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(output, "0 0 0 2 1\n");
  EXPECT_EQ(log.gemms().size(), 2u);  // of its constructor and of a call, once there was a BLAS
}
#endif

// As the loader ends it: no call returns without a result.
TEST_F(Blas, AFunctionThatIsNowhere) {
  const CaptureFolder folder;
  std::string output;
  const int status =
      run(folder, {.arguments = {client("dl"), "unresolved", test_library("libcollect_plugin_bare.so")}}, &output);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 127);
  EXPECT_EQ(output, "");
}

// Another library where the last one was: a call goes where its own caller was linked to.
TEST_F(Blas, LibrariesThatReplaceEachOther) {
  std::string output;
  const Log log = only_log({.arguments = {client("dl"), "replace", test_library("libcollect_plugin_a.so"),
                                          test_library("libcollect_plugin_b.so")}},
                           &output);
  EXPECT_EQ(output, "1 2 1 2 1 2 \n");
  ASSERT_EQ(log.gemms().size(), 6u);
  EXPECT_THAT(log.name(log.gemms()[0].library), EndsWith("libcollect_fake_a.so"));
  EXPECT_THAT(log.name(log.gemms()[1].library), EndsWith("libcollect_fake_b.so"));
}

TEST_F(Blas, LibraryLoadedAndUnloadedAgain) {
  const Log log = only_log({.arguments = {client("dl"), "reload", test_library("libcollect_plugin_a.so")}});
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(log.gemms().size(), 20u);
}

// Some calls are left by an exception and by longjmp: they have no end, but those after them are seen, wherever they
// come from.
TEST_F(Blas, CallsLeftSideways) {
  const Log log = only_log({.arguments = {client("dl"), "leave", test_library("libcollect_plugin_a.so"),
                                          test_library("libcollect_fake_a.so")}});
  EXPECT_EQ(status_, 0);
  ASSERT_EQ(calls(log).size(), 3u);
  EXPECT_EQ(calls(log)[0].m, 3);
  EXPECT_EQ(calls(log)[1].m, 4);
  EXPECT_EQ(calls(log)[2].m, 6);
}

TEST_F(Blas, ThreadWithASmallStack) {
  const Log log = only_log({.arguments = {client("dl"), "small_stack", test_library("libcollect_plugin_a.so")}});
  EXPECT_EQ(status_, 0);
  EXPECT_EQ(log.gemms().size(), 1u);
}

// Another preload of the same name sees every call too, whichever comes first.
TEST_F(Blas, TwoPreloadsInBothOrders) {
  for (const bool after : {false, true}) {
    const CaptureFolder folder;
    std::string output;
    const int status = run(
        folder,
        {.arguments = {client("blas")}, .preload = test_library("libcollect_interposer.so"), .preload_after = after},
        &output);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(output, "right\ninterposer 1\n") << "ours " << (after ? "first" : "second");
    const std::vector<Log> all = read_folder(folder.path());
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(calls(all[0]), kGemms + kGemvs) << "ours " << (after ? "first" : "second");
  }
}

// Another preload that has open() sees every file, whichever of the two comes first.
TEST_F(Blas, FilesReachTheOtherPreload) {
  for (const bool after : {false, true}) {
    const CaptureFolder folder, work;
    std::string output;
    const int status = run(folder,
                           {.arguments = {"/bin/sh", "-c", "cd " + work.path() + " && exec " + client("open")},
                            .preload = test_library("libcollect_interposer.so"),
                            .preload_after = after},
                           &output);
    EXPECT_EQ(status, 0);
    // 40 shards, each made by open() and read by open64(); 2 products.
    EXPECT_EQ(output, "right\ninterposer 2\nopens 80\n") << "ours " << (after ? "first" : "second");
    const std::vector<Log> all = read_folder(folder.path());
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].gemms().size(), 2u) << "ours " << (after ? "first" : "second");
  }
}

TEST_F(Blas, OffWithoutAFolder) {
  std::string output;
  EXPECT_EQ(run(folder_, {.arguments = {client("blas")}, .environment = {"LLMPROF_CAPTURE_DIR="}}, &output), 0);
  EXPECT_EQ(output, "right\n");
}

}  // namespace
}  // namespace llmprof::collect::testing
