// The index against the timeline that is read from the rows, on runs whose numbers tests/traces derives by hand.

#include "view/run_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "analyze/summary.h"
#include "trace/test_run.h"
#include "traces.h"

namespace llmprof::view {
namespace {

using pictures::Lane;
using pictures::Slice;
using pictures::Timeline;
using pictures::Window;

class Indexed : public testing::Test {
 protected:
  void SetUp() override {
    const Result<void> written = traces::write_gpu_graph(folder_ / "run.llmprof");
    ASSERT_TRUE(written) << written.error().message;
    auto run = trace::Run::open(folder_ / "run.llmprof");
    ASSERT_TRUE(run) << run.error().message;
    run_ = std::make_unique<trace::Run>(std::move(*run));
    ASSERT_TRUE(analyze::summarise(*run_, {}));
    auto index = RunIndex::build(*run_, base::no_progress);
    ASSERT_TRUE(index) << index.error().message;
    index_ = std::make_unique<RunIndex>(std::move(*index));
  }

  // Names as texts: both number them in an order of their own.
  static std::vector<std::string> texts(const Timeline& timeline, Lane::Kind without) {
    std::vector<std::string> out;
    for (const Lane& lane : timeline.lanes) {
      if (lane.kind == without) continue;
      for (const Slice& slice : lane.slices) {
        const auto name = [&](std::int32_t at) { return at < 0 ? "-" : timeline.names[static_cast<std::size_t>(at)]; };
        out.push_back(lane.group + "|" + lane.name + "|" + lane.table + "|" + std::to_string(slice.begin_ns) + ".." +
                      std::to_string(slice.end_ns) + "|" + name(slice.name) + "|" + name(slice.stage) + "|" +
                      std::to_string(slice.count) + "|" + std::to_string(slice.id) + "|" +
                      (slice.estimated ? "estimated" : "measured"));
      }
    }
    return out;
  }

  trace::TestFolder folder_;
  std::unique_ptr<trace::Run> run_;
  std::unique_ptr<RunIndex> index_;
};

constexpr Lane::Kind kNone = static_cast<Lane::Kind>(99);

TEST_F(Indexed, InFullResolutionItIsTheSame) {
  const pictures::TimelineRequest request{.window = {}, .width = 1'000'000, .stage = ""};  // a nanosecond a pixel
  const Timeline rows = pictures::timeline(*run_, request).value();
  EXPECT_EQ(texts(index_->timeline(request), kNone), texts(rows, kNone));
  EXPECT_EQ(index_->timeline(request).slices_in_window, rows.slices_in_window);
}

TEST_F(Indexed, WindowsAndStagesToo) {
  std::mt19937 random(5);
  const Window whole = index_->bounds();
  for (int i = 0; i < 12; ++i) {
    const auto begin = whole.begin_ns + static_cast<std::int64_t>(random() % 120'000);
    const pictures::TimelineRequest request{
        .window = Window{begin, begin + 2'000 + static_cast<std::int64_t>(random() % 20'000)},
        .width = 100'000,
        .stage = i % 3 == 0 ? "decode" : ""};
    EXPECT_EQ(texts(index_->timeline(request), kNone), texts(pictures::timeline(*run_, request).value(), kNone))
        << begin;
  }
}

// However coarse: every slice is counted once in its lane, and covers its time.
TEST_F(Indexed, CoarseWindowsLoseNothing) {
  for (const int width : {20, 60, 300}) {
    const pictures::TimelineRequest request{.window = {}, .width = width, .stage = ""};
    const Timeline got = index_->timeline(request), rows = pictures::timeline(*run_, request).value();
    EXPECT_EQ(got.slices_in_window, rows.slices_in_window) << width;
    const auto busy = [](const Timeline& timeline) {
      double ns = 0;
      for (const Lane& lane : timeline.lanes) {
        if (lane.kind == Lane::Kind::kIdle) continue;  // told from what is merged
        for (const Slice& slice : lane.slices)
          ns += static_cast<double>(slice.busy) * static_cast<double>(slice.end_ns - slice.begin_ns);
      }
      return ns;
    };
    EXPECT_NEAR(busy(got), busy(rows), 0.01 * busy(rows)) << width;
  }
}

TEST_F(Indexed, KnowsItsStages) {
  EXPECT_TRUE(index_->has_stage("decode"));
  EXPECT_FALSE(index_->has_stage("nosuch"));
  EXPECT_FALSE(index_->has_stage(""));
}

}  // namespace
}  // namespace llmprof::view
