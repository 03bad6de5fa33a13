// NVTX clients from the program to the decoded log; each case with our own handshake and, where the CUDA headers are
// installed, with the real nvtx3.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "collect/testing/test_log.h"

namespace llmprof::collect::testing {
namespace {

using ::testing::ElementsAre;
using wire::LossKind;
using wire::PayloadType;
using wire::RangeOp;
using wire::RangeRecord;
using wire::RecordKind;

class Nvtx : public ::testing::TestWithParam<const char*> {
 protected:
  Log only_log(const std::vector<std::string>& arguments, std::string* output = nullptr,
               const std::vector<std::string>& environment = {}) {
    std::vector<std::string> command{client(GetParam())};
    command.insert(command.end(), arguments.begin(), arguments.end());
    status_ = run(folder_, {.arguments = command, .environment = environment}, output);
    const std::vector<Log> logs = read_folder(folder_.path());
    EXPECT_EQ(logs.size(), 1u);
    if (logs.empty()) return {};
    const Log& log = logs.front();
    EXPECT_EQ(log.damaged_bytes + log.torn_bytes + log.missing_blocks + log.undefined_names, 0u);
    EXPECT_TRUE(log.ended());
    return log;
  }

  CaptureFolder folder_;
  int status_ = -1;
};

std::vector<RangeRecord> with_name(const Log& log, const std::string& name) {
  std::vector<RangeRecord> result;
  for (const RangeRecord& range : log.ranges()) {
    if (log.name(range.name) == name) result.push_back(range);
  }
  return result;
}

TEST_P(Nvtx, PushAndPopWithLevelsPerDomain) {
  std::string output;
  const Log log = only_log({"everything"}, &output);
  // outer 0, inner 1, in the other domain 0 again, pops 0, 1, 0, and one pop too many: an error
  EXPECT_EQ(output, "0 1 0 0 1 0 -1\n");
  EXPECT_EQ(log.lost(LossKind::kUnbalancedPop), 1u);
  const std::uint32_t domain = log.domain("my domain");
  ASSERT_NE(domain, 0u);
  std::vector<std::tuple<RangeOp, std::uint32_t, std::uint16_t>> seen;
  for (const RangeRecord& range : log.ranges(1)) {
    if (range.op == RangeOp::kPush || range.op == RangeOp::kPop) seen.emplace_back(range.op, range.domain, range.level);
  }
  using T = std::tuple<RangeOp, std::uint32_t, std::uint16_t>;
  EXPECT_THAT(seen, ElementsAre(T{RangeOp::kPush, 0, 0}, T{RangeOp::kPush, 0, 1}, T{RangeOp::kPush, domain, 0},
                                T{RangeOp::kPop, domain, 0}, T{RangeOp::kPop, 0, 1}, T{RangeOp::kPop, 0, 0}));
}

TEST_P(Nvtx, NamesDomainsAndCategories) {
  const Log log = only_log({"everything"});
  EXPECT_EQ(with_name(log, "outer").size(), 1u);
  EXPECT_EQ(with_name(log, "inn\xc3\xa9r \xf0\x9f\x98\x80").size(), 1u);  // U+00E9 and U+1F600 in UTF-8
  EXPECT_EQ(with_name(log, "odd \xff\n</script>").size(), 1u);            // bytes as they came
  ASSERT_EQ(with_name(log, "registered name").size(), 2u);
  EXPECT_EQ(with_name(log, "registered name")[0].category, 7u);
  ASSERT_EQ(with_name(log, "in wide domain").size(), 1u);
  EXPECT_EQ(with_name(log, "in wide domain")[0].domain, log.domain("d\xc3\xb6main"));
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::string>> categories;
  for (const Entry& entry : log.entries) {
    const wire::CategoryRecord& category = entry.record.category;
    if (entry.record.kind == RecordKind::kCategory)
      categories.insert({category.domain, category.category, log.name(category.name)});
  }
  using C = std::tuple<std::uint32_t, std::uint32_t, std::string>;
  EXPECT_EQ(categories, (std::set<C>{{log.domain("my domain"), 7, "stage"}, {0, 9, "plain category"}}));
}

TEST_P(Nvtx, PayloadsOfEveryTypeAreNormalised) {
  const Log log = only_log({"everything"});
  const auto bits = [](double value) {
    std::uint64_t result;
    std::memcpy(&result, &value, 8);
    return result;
  };
  std::vector<std::pair<PayloadType, std::uint64_t>> seen;
  for (const RangeRecord& range : with_name(log, "payload")) seen.emplace_back(range.payload_type, range.payload);
  using P = std::pair<PayloadType, std::uint64_t>;
  EXPECT_THAT(seen,
              ElementsAre(P{PayloadType::kUnsigned, ~0ull}, P{PayloadType::kSigned, static_cast<std::uint64_t>(-5)},
                          P{PayloadType::kDouble, bits(2.5)}, P{PayloadType::kUnsigned, 0xffffffffu},
                          P{PayloadType::kSigned, static_cast<std::uint64_t>(-7)}, P{PayloadType::kDouble, bits(0.5)},
                          P{PayloadType::kNone, 0}));
  // The structure that ended after its category: nothing beyond was read.
  std::vector<RangeRecord> cut;
  for (const RangeRecord& range : log.ranges()) {
    if (range.op == RangeOp::kMark && range.category == 3) cut.push_back(range);
  }
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].name, 0u);
  EXPECT_EQ(cut[0].payload_type, PayloadType::kNone);
}

TEST_P(Nvtx, StartAndEndAcrossThreads) {
  const Log log = only_log({"everything"});
  const auto started = with_name(log, "across threads");
  ASSERT_EQ(started.size(), 1u);
  std::size_t ends = 0;
  std::uint32_t ender = 0;
  for (const Entry& entry : log.entries) {
    const RangeRecord& range = entry.record.range;
    if (entry.record.kind != RecordKind::kRange || range.op != RangeOp::kEnd) continue;
    if (range.correlation != started[0].correlation) continue;
    ++ends;
    ender = entry.thread;
    EXPECT_GT(range.ts_ns, started[0].ts_ns);
  }
  EXPECT_EQ(ends, 1u);
  EXPECT_EQ(ender, 2u);  // the second thread that raised an event
}

TEST_P(Nvtx, ThreadsAreNamedAndEnd) {
  const Log log = only_log({"everything"});
  bool ender = false, ended = false, somebody = false;
  for (const Entry& entry : log.entries) {
    if (entry.record.kind != RecordKind::kThread) continue;
    const wire::ThreadRecord& thread = entry.record.thread;
    ender = ender || (entry.thread == 2 && log.name(thread.name) == "ender");
    ended = ended || (entry.thread == 2 && thread.ended != 0);
    // A thread that raised no event itself is named in the collector's section.
    somebody = somebody || (entry.thread == 0 && thread.tid == 4000000 && log.name(thread.name) == "somebody else");
  }
  EXPECT_TRUE(ender);
  EXPECT_TRUE(ended);
  EXPECT_TRUE(somebody);
}

TEST_P(Nvtx, EveryEventOfManyThreadsInOrder) {
  constexpr std::size_t kPairs = 20000, kThreads = 4;
  const Log log = only_log({"load", std::to_string(kThreads), std::to_string(kPairs)});
  EXPECT_EQ(log.ranges().size() + log.lost(LossKind::kBufferFull), 2 * kPairs * kThreads);
  for (std::uint32_t thread = 1; thread <= kThreads; ++thread) {
    std::uint64_t last = 0;
    for (const RangeRecord& range : log.ranges(thread)) {
      ASSERT_GE(range.ts_ns, last);
      last = range.ts_ns;
    }
  }
}

TEST_P(Nvtx, OffWithoutAFolder) {
  EXPECT_EQ(run(folder_, {.arguments = {client(GetParam()), "load"}, .environment = {"LLMPROF_CAPTURE_DIR="}}), 0);
  EXPECT_TRUE(read_folder(folder_.path()).empty());
}

TEST_P(Nvtx, NoFileAndNoThreadWithoutAnEvent) {
  EXPECT_EQ(run(folder_, {.arguments = {client(GetParam()), "quiet"}}), 0);  // the status counts threads
  EXPECT_EQ(run(folder_, {.arguments = {client(GetParam()), "handles_only"}}), 0);
  EXPECT_EQ(run(folder_, {.arguments = {"/bin/true"}}), 0);
  EXPECT_TRUE(read_folder(folder_.path()).empty());
}

#if LLMPROF_HAVE_NVTX3
INSTANTIATE_TEST_SUITE_P(Clients, Nvtx, ::testing::Values("nvtx", "nvtx3"));
#else
INSTANTIATE_TEST_SUITE_P(Clients, Nvtx, ::testing::Values("nvtx"));
#endif

}  // namespace
}  // namespace llmprof::collect::testing
