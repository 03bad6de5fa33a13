#include "bench/sweep/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "bench/testing_bench.h"
#include "trace/test_run.h"

namespace llmprof::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Sweep sweep() {
  const Operator& op = *find_operator("residual_add");
  Sweep made;
  made.llmprof_version = "1.2.3";
  made.device = "cpu";
  made.fingerprint = "abacus";
  made.command = {"llmprof", "bench"};
  made.options.measure.limit_seconds = 1.5;
  made.options.check = false;
  made.options.seed = 7;
  made.points = {make_point(op, Type::kBfloat16, {{"seq", 8}}), make_point(op, Type::kFloat32, {{"seq", 16}})};
  made.points[1].name = "after attention";
  made.points[1].cache = Cache::kHot;
  made.points[1].implementation = "kernel";
  made.points[1].used_calls = 12;
  return made;
}

Finished finished(std::size_t point) {
  std::vector<std::string> ran;
  Finished made{.point = point, .result = {}, .begin_wall_ns = 100, .end_wall_ns = 200};
  made.result = FakeBench({}, &ran).run(sweep().points[point].problem, [] { return true; });
  made.result.graph_seconds = 0.5e-6;
  return made;
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(base::make_directories(run_ + "/capture")); }
  void append(const std::string& text) { std::ofstream(journal_path(run_), std::ios::app) << text; }

  trace::TestFolder folder_;
  std::string run_ = folder_ / "x.llmprof";
};

TEST_F(JournalTest, WhatWasWrittenIsRead) {
  {
    auto journal = Journal::create(run_, sweep());
    ASSERT_TRUE(journal) << journal.error().message;
    ASSERT_TRUE(journal->append(finished(1)));
  }
  const auto opened = Journal::reopen(run_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(base::to_line(sweep_to_json(opened->sweep)), base::to_line(sweep_to_json(sweep())));
  ASSERT_THAT(opened->finished, SizeIs(1));
  const Finished& read = opened->finished.front();
  EXPECT_EQ(base::to_line(finished_to_json(read)), base::to_line(finished_to_json(finished(1))));
  EXPECT_EQ(read.result.problem.key(), sweep().points[1].problem.key());
  EXPECT_DOUBLE_EQ(read.result.measured.time.median, 2e-6);  // computed again from the samples
}

TEST_F(JournalTest, ALineThatWasCutOffIsNotThereAndTheNextStandsAlone) {
  {
    auto journal = Journal::create(run_, sweep());
    ASSERT_TRUE(journal->append(finished(0)));
  }
  append("{\"point\":1,\"stat");
  {
    auto opened = Journal::reopen(run_);
    ASSERT_TRUE(opened);
    ASSERT_THAT(opened->finished, SizeIs(1));
    ASSERT_TRUE(opened->journal.append(finished(1)));
  }
  EXPECT_THAT(Journal::reopen(run_)->finished, SizeIs(2));
}

TEST_F(JournalTest, AForeignLineIsMeasuredAgain) {
  { ASSERT_TRUE(Journal::create(run_, sweep())); }
  append("[]\n{\"point\":99}\n{}\nnonsense\n");
  const auto opened = Journal::reopen(run_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT(opened->finished, SizeIs(0));
}

TEST_F(JournalTest, AForeignHeadIsAnError) {
  append("{\"schema\":\"llmprof.bench_journal\",\"version\":9}\n");
  EXPECT_THAT(Journal::reopen(run_).error().message, HasSubstr("version 9"));
  ASSERT_TRUE(base::write_file(journal_path(run_), "{\"schema\":\"x\"}\n"));
  EXPECT_THAT(Journal::reopen(run_).error().message, HasSubstr("not the journal"));
  ASSERT_TRUE(base::write_file(journal_path(run_), ""));
  EXPECT_THAT(Journal::reopen(run_).error().message, HasSubstr("does not even hold the sweep"));
  EXPECT_TRUE(Journal::check_free(run_));
}

TEST_F(JournalTest, OneLlmprofAtATime) {
  const auto journal = Journal::create(run_, sweep());
  ASSERT_TRUE(journal);
  EXPECT_THAT(Journal::reopen(run_).error().message, HasSubstr("another llmprof is measuring"));
  EXPECT_FALSE(Journal::check_free(run_));
}

}  // namespace
}  // namespace llmprof::bench
