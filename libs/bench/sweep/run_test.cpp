#include "bench/sweep/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "bench/testing_bench.h"
#include "trace/run.h"
#include "trace/test_run.h"

namespace llmprof::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Sweep sweep() {
  const Operator& op = *find_operator("residual_add");
  Sweep made;
  made.device = "cpu";
  for (const std::int64_t seq : {8, 16, 32}) {
    made.points.push_back(make_point(op, Type::kFloat32, {{"seq", seq}, {"hidden", 64}}));
  }
  made.points[1].cache = Cache::kHot;
  made.points[2].name = "last";
  return made;
}

class BenchRun : public ::testing::Test {
 protected:
  OpenBench open(const std::string& name = "Abacus") {
    return [this, name](const std::string&, const BenchOptions& options) -> Result<std::unique_ptr<Bench>> {
      auto bench = std::make_unique<FakeBench>(options, &ran_);
      bench->device_.name = name;
      return std::unique_ptr<Bench>(std::move(bench));
    };
  }
  // Stops when this many points are done.
  static base::Progress until(double done) {
    return [done](const base::ProgressUpdate& update) { return update.done < done; };
  }

  trace::TestFolder folder_;
  std::string run_ = folder_ / "x.llmprof";
  std::vector<std::string> ran_;
};

TEST_F(BenchRun, MeasuresVariantByVariantAndWritesARun) {
  const auto outcome = run_sweep(sweep(), run_, false, open(), base::no_progress);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->done, 3u);
  EXPECT_THAT(
      ran_, ElementsAre("residual_add float32 batch=1 seq=8 hidden=64", "residual_add float32 batch=1 seq=32 hidden=64",
                        "residual_add float32 batch=1 seq=16 hidden=64 hot"));
  EXPECT_FALSE(base::is_directory(run_ + "/capture"));  // complete: the journal has no more use
  const auto run = trace::Run::open(run_);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->info().source, "bench");
  const auto rows =
      run->query("SELECT id, op, name, cache, median_ns, floor_ns, error, samples FROM bench ORDER BY id");
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_THAT(rows->rows, SizeIs(3));
  EXPECT_EQ(rows->rows[1][3].text, "hot");
  EXPECT_EQ(rows->rows[2][2].text, "last");
  EXPECT_DOUBLE_EQ(rows->rows[0][4].as_double(), 2000);  // of 1, 2 and 3 us
  EXPECT_DOUBLE_EQ(rows->rows[0][5].as_double(), 500);
  EXPECT_DOUBLE_EQ(rows->rows[0][6].as_double(), 0.25);
  EXPECT_EQ(run->query("SELECT value FROM bench_axis WHERE bench_id = 2 AND axis = 'seq'")->rows[0][0].as_int(), 16);
  EXPECT_EQ(run->query("SELECT count(*) FROM bench_sample")->rows[0][0].as_int(), 9);
  const auto findings = trace::check_run(*run);
  ASSERT_TRUE(findings);
  EXPECT_THAT(*findings, SizeIs(0));
}

TEST_F(BenchRun, StoppedIsAGoodRunThatGoesOnLater) {
  auto outcome = run_sweep(sweep(), run_, false, open(), until(1));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(outcome->interrupted);
  EXPECT_EQ(outcome->done, 1u);
  {
    const auto run = trace::Run::open(run_);
    ASSERT_TRUE(run);
    EXPECT_EQ(run->query("SELECT count FROM loss WHERE name = 'bench_incomplete'")->rows[0][0].as_int(), 2);
  }
  ran_.clear();
  outcome = resume_sweep(run_, open(), base::no_progress);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_THAT(ran_, SizeIs(2));  // not the first one again
  EXPECT_EQ(outcome->done, 3u);
  EXPECT_EQ(trace::Run::open(run_)->query("SELECT count(*) FROM bench")->rows[0][0].as_int(), 3);
  outcome = resume_sweep(run_, open(), base::no_progress);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->was_complete);
}

TEST_F(BenchRun, AnotherDeviceCannotGoOn) {
  ASSERT_TRUE(run_sweep(sweep(), run_, false, open(), until(1)));
  EXPECT_THAT(resume_sweep(run_, open("Slide rule"), base::no_progress).error().message,
              HasSubstr("cannot be resumed: it was begun on"));
}

TEST_F(BenchRun, APointThatCannotBeIsSkippedWithItsReason) {
  Sweep one = sweep();
  one.points.resize(1);
  one.points[0].impossible = "heads are no multiple of kv_heads";
  ASSERT_TRUE(run_sweep(one, run_, false, open(), base::no_progress));
  EXPECT_THAT(ran_, SizeIs(0));
  const auto rows = trace::Run::open(run_)->query("SELECT status, reason, median_ns FROM bench");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->rows[0][0].text, "skipped");
  EXPECT_EQ(rows->rows[0][1].text, "heads are no multiple of kv_heads");
  EXPECT_TRUE(rows->rows[0][2].is_null());  // unknown, not 0
}

TEST_F(BenchRun, ARunIsReplacedByForceOnlyAndNothingElseEver) {
  ASSERT_TRUE(run_sweep(sweep(), run_, false, open(), base::no_progress));
  EXPECT_THAT(run_sweep(sweep(), run_, false, open(), base::no_progress).error().hint, HasSubstr("-f"));
  EXPECT_TRUE(run_sweep(sweep(), run_, true, open(), base::no_progress));
  const std::string other = folder_ / "other.llmprof";
  ASSERT_TRUE(base::make_directories(other + "/mine"));
  EXPECT_THAT(run_sweep(sweep(), other, true, open(), base::no_progress).error().message, HasSubstr("not a run"));
}

TEST(TimeLeft, ByThePaceOfTheOperator) {
  TimeLeft left;
  for (const char* op : {"gemm", "gemm", "copy", "rope"}) left.expect(op);
  EXPECT_EQ(left.seconds(), std::nullopt);
  left.done("gemm", 4);
  EXPECT_DOUBLE_EQ(*left.seconds(), 12);  // one gemm, and two that nothing is known of: 4 s each
  left.done("copy", 1);
  EXPECT_DOUBLE_EQ(*left.seconds(), 4 + 2.5);  // rope as the mean of 4 s and 1 s
}

}  // namespace
}  // namespace llmprof::bench
