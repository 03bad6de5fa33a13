// The program comes first: death, fork, exec, full disks, closed descriptors, crowds of threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "collect/testing/test_log.h"

namespace llmprof::collect::testing {
namespace {

using wire::LossKind;
using wire::RecordKind;

std::vector<std::string> nvtx(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{client("nvtx")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

void expect_sound(const Log& log) {
  EXPECT_EQ(log.damaged_bytes + log.missing_blocks + log.undefined_names, 0u) << log.path;
}

TEST(Robustness, SigkillLosesAtMostTheLastSecond) {
  for (int round = 0; round < 5; ++round) {
    const CaptureFolder folder;
    std::string output;
    const int status = run(folder, {.arguments = nvtx({"until_killed"}), .kill_after_ms = 700 + 90 * round}, &output);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const std::vector<Log> logs = read_folder(folder.path());
    ASSERT_EQ(logs.size(), 1u);
    expect_sound(logs[0]);
    EXPECT_FALSE(logs[0].ended());
    ASSERT_FALSE(logs[0].ranges().empty());
    output.resize(output.rfind('\n'));  // the last whole line
    const std::uint64_t last_made_ns = std::stoull(output.substr(output.rfind('\n') + 1));
    EXPECT_GT(logs[0].ranges().back().ts_ns + 1000000000, last_made_ns);
  }
}

TEST(Robustness, ForkedChildStartsAfresh) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"fork"})}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 2u);
  const Log& parent = logs[0].header.pid < logs[1].header.pid ? logs[0] : logs[1];
  const Log& child = &parent == &logs[0] ? logs[1] : logs[0];
  for (const Log& log : logs) {
    expect_sound(log);
    EXPECT_TRUE(log.ended());
    ASSERT_EQ(log.ranges().size(), 2u);
  }
  EXPECT_EQ(parent.name(parent.ranges()[0].name), "parent range");
  EXPECT_EQ(child.name(child.ranges()[0].name), "child range");
  EXPECT_NE(child.domain("before fork"), 0u);
  EXPECT_EQ(child.ranges()[0].domain, child.domain("before fork"));
  EXPECT_NE(parent.header.pid, child.header.pid);
}

TEST(Robustness, ForkUnderLoadNeverHangs) {
  const CaptureFolder folder;
  constexpr std::size_t kChildren = 10;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"fork_under_load", std::to_string(kChildren)})}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  EXPECT_EQ(logs.size(), kChildren + 1);
  std::size_t ended = 0;
  for (const Log& log : logs) {
    expect_sound(log);
    if (!log.ended()) continue;
    ++ended;
    EXPECT_GE(log.ranges().size(), 6u);
  }
  EXPECT_EQ(ended, kChildren / 2 + 1);  // half of them leave by _exit
}

TEST(Robustness, ExecChainHasOneLogPerImage) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"exec", "3"})}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 4u);
  std::set<std::string> marks;
  for (const Log& log : logs) {
    expect_sound(log);
    ASSERT_EQ(log.ranges().size(), 1u);
    marks.insert(log.name(log.ranges()[0].name));
    EXPECT_EQ(log.header.pid, logs[0].header.pid);
  }
  EXPECT_EQ(marks, (std::set<std::string>{"image 0", "image 1", "image 2", "image 3"}));
}

TEST(Robustness, AnExhaustedPoolDropsAndCounts) {
  const CaptureFolder folder;
  constexpr std::uint64_t kPairs = 200000;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"load", "1", std::to_string(kPairs)}),
                         .environment = {"LLMPROF_POOL_CHUNKS=4", "LLMPROF_FLUSH_MS=100"}}),
            0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  expect_sound(logs[0]);
  EXPECT_GT(logs[0].lost(LossKind::kBufferFull), 0u);
  EXPECT_EQ(logs[0].ranges().size() + logs[0].lost(LossKind::kBufferFull), 2 * kPairs);
}

TEST(Robustness, SizeLimitEndsTheLogNotTheProgram) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"load", "1", "100000"}), .environment = {"LLMPROF_MAX_BYTES=100000"}}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_GT(logs[0].lost(LossKind::kSizeLimit), 0u);
  EXPECT_EQ(logs[0].ranges().size() + logs[0].lost(LossKind::kSizeLimit) + logs[0].lost(LossKind::kBufferFull),
            200000u);
  EXPECT_LT(std::filesystem::file_size(logs[0].path), 120000u);
  EXPECT_TRUE(logs[0].ended());
}

TEST(Robustness, EventsBehindTheSizeLimitCostNoSystemCall) {
  const CaptureFolder folder;
  std::string output;
  const int status =
      run(folder, {.arguments = nvtx({"stopped", "100000"}), .environment = {"LLMPROF_MAX_BYTES=100000"}}, &output);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(output, "0\n");
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_GT(logs[0].lost(LossKind::kSizeLimit), 0u);
  EXPECT_GE(logs[0].lost(LossKind::kSizeLimit) + logs[0].lost(LossKind::kBufferFull), 2020u);
}

TEST(Robustness, FullFolderEndsTheLog) {
  const CaptureFolder folder;
  std::ofstream(folder.path() + "/full");
  EXPECT_EQ(run(folder, {.arguments = nvtx({"load", "1", "1000"})}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_TRUE(logs[0].ranges().empty());
  EXPECT_EQ(logs[0].lost(LossKind::kSizeLimit), 2000u);
}

// RLIMIT_FSIZE is a full disk that needs no disk: the write fails with EFBIG, and SIGXFSZ must not kill the program.
TEST(Robustness, FailedWritesAreCountedAndTheLogStaysGood) {
  for (const char* limit : {"64", "1000", "20000", "50001"}) {
    const CaptureFolder folder;
    EXPECT_EQ(run(folder, {.arguments = nvtx({"small_files", limit})}), 0) << limit;
    const std::vector<Log> logs = read_folder(folder.path());
    ASSERT_EQ(logs.size(), 1u);
    EXPECT_EQ(logs[0].damaged_bytes + logs[0].torn_bytes, 0u) << limit;
    EXPECT_LE(std::filesystem::file_size(logs[0].path), std::stoull(limit));
    EXPECT_EQ(logs[0].missing_blocks, 0u) << limit;
    if (std::stoull(limit) <= sizeof(wire::FileHeader)) continue;  // no room to say anything
    // 20 times 5000 pairs; data gave way so that the log could say what is missing.
    EXPECT_GT(logs[0].lost(LossKind::kWriteFailed), 0u) << limit;
    EXPECT_EQ(logs[0].ranges().size() + logs[0].lost(LossKind::kWriteFailed), 200000u) << limit;
  }
}

TEST(Robustness, ClosedDescriptorsStopTheLog) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"close_descriptors"})}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(logs[0].damaged_bytes, 0u);
  EXPECT_EQ(logs[0].ranges().size(), 20u);
  EXPECT_EQ(logs[0].lost(LossKind::kWriteFailed), 40u);  // the 10 pairs after the close, and 10 later
}

TEST(Robustness, UnusableFoldersLeaveTheProgramAlone) {
  const CaptureFolder folder;
  std::ofstream(folder.path() + "/file");
  for (const std::string& place :
       {std::string("/nonexistent/x"), folder.path() + "/file", std::string("/proc"), "/" + std::string(2900, 'x')}) {
    EXPECT_EQ(run(folder, {.arguments = nvtx({"load", "2", "1000"}), .environment = {"LLMPROF_CAPTURE_DIR=" + place}}),
              0);
  }
  EXPECT_TRUE(read_folder(folder.path()).empty());
}

TEST(Robustness, LogIsPrivateWhateverTheUmask) {
  const CaptureFolder folder;
  const mode_t before = umask(0);
  EXPECT_EQ(run(folder, {.arguments = nvtx({"load", "1", "10"})}), 0);
  umask(before);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  struct stat status;
  ASSERT_EQ(stat(logs[0].path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(Robustness, SignalHandlersInsideAnEventAreCounted) {
  const CaptureFolder folder;
  std::string output;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"reenter"})}, &output), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  expect_sound(logs[0]);
  std::uint64_t marks = 0;
  for (const auto& range : logs[0].ranges()) marks += logs[0].name(range.name) == "in handler";
  // Every mark of a handler is in the log or counted; so is every event of the main loop.
  const std::uint64_t attempted = std::stoull(output);
  EXPECT_GT(attempted, 0u);
  EXPECT_EQ(logs[0].ranges().size() + logs[0].lost(LossKind::kReentered) + logs[0].lost(LossKind::kBufferFull),
            1 + 600000 + attempted);
  EXPECT_LE(marks, attempted);
}

TEST(Robustness, ThreadChurnReusesEverything) {
  const CaptureFolder folder;
  constexpr std::uint64_t kThreads = 3000;
  // 64 chunks: without reuse the pool would be empty after 64 threads.
  EXPECT_EQ(run(folder, {.arguments = nvtx({"churn", std::to_string(kThreads)}),
                         .environment = {"LLMPROF_POOL_CHUNKS=64", "LLMPROF_FLUSH_MS=1"}}),
            0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  expect_sound(logs[0]);
  EXPECT_EQ(logs[0].ranges().size() + logs[0].lost(LossKind::kBufferFull), 10 * kThreads);
  EXPECT_GT(logs[0].ranges().size(), 10 * 64u);
  EXPECT_EQ(logs[0].lost(LossKind::kThreadTableFull), 0u);
}

TEST(Robustness, CrowdOfThreads) {
  const CaptureFolder folder;
  constexpr std::uint64_t kThreads = 500;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"crowd", std::to_string(kThreads)})}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  expect_sound(logs[0]);
  EXPECT_EQ(logs[0].ranges().size() + logs[0].lost(LossKind::kBufferFull), 10 * kThreads);
}

TEST(Robustness, NamesWithoutEndBecomeOther) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"many_names", "100000"})}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  expect_sound(logs[0]);
  EXPECT_EQ(logs[0].ranges().size() + logs[0].lost(LossKind::kBufferFull), 100001u);
  EXPECT_GT(logs[0].lost(LossKind::kStringTableFull), 30000u);  // 65535 names fit
  EXPECT_EQ(logs[0].lost(LossKind::kNameTruncated), 1u);
  EXPECT_EQ(logs[0].name(1), "<other>");
}

TEST(Robustness, EventsDuringExitAreHarmless) {
  for (int round = 0; round < 5; ++round) {
    const CaptureFolder folder;
    const int status = run(folder, {.arguments = nvtx({"late"})});
    EXPECT_EQ(WEXITSTATUS(status), 5) << status;
    const std::vector<Log> logs = read_folder(folder.path());
    ASSERT_EQ(logs.size(), 1u);
    expect_sound(logs[0]);
    EXPECT_TRUE(logs[0].ended());
  }
}

TEST(Robustness, CudaThatIsNotWantedIsSaidToBeMissing) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"cuda"}), .environment = {"LLMPROF_GPU=0"}}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 2u);
  const Log& parent = logs[0].ranges().empty() ? logs[1] : logs[0];
  const Log& child = logs[0].ranges().empty() ? logs[0] : logs[1];
  EXPECT_EQ(parent.lost(LossKind::kCudaNotTraced), 1u);
  EXPECT_EQ(parent.ranges().size(), 4u);
  EXPECT_TRUE(child.ranges().empty());
  EXPECT_EQ(child.lost(LossKind::kForkedAfterCuda), 6u);
}

TEST(Robustness, ClockPairsAndProcess) {
  const CaptureFolder folder;
  EXPECT_EQ(run(folder, {.arguments = nvtx({"load", "1", "10"}), .environment = {"RANK=3"}}), 0);
  const std::vector<Log> logs = read_folder(folder.path());
  ASSERT_EQ(logs.size(), 1u);
  const Log& log = logs[0];
  EXPECT_GE(log.count(RecordKind::kClockSync), 1u);
  EXPECT_EQ(log.count(RecordKind::kProcess), 2u);
  const wire::ProcessRecord& process = log.entries.front().record.process;
  ASSERT_EQ(log.entries.front().record.kind, RecordKind::kProcess);
  EXPECT_EQ(process.pid, log.header.pid);
  EXPECT_EQ(process.start_ticks, log.header.start_ticks);
  EXPECT_EQ(log.name(process.rank), "3");
  EXPECT_EQ(log.name(process.arguments), client("nvtx") + std::string("\0load\0001\00010", 10));
  EXPECT_EQ(log.name(process.executable), std::filesystem::canonical(client("nvtx")).string());
}

}  // namespace
}  // namespace llmprof::collect::testing
