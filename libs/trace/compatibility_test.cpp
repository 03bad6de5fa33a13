// Runs of every format version that ever was keep loading. tests/runs/v1_sample was written by format version 1 and is
// never written again; when the version is raised, a sample of the old one is added here, not replaced.
#include <gtest/gtest.h>

#include "trace/run.h"

namespace llmprof::trace {
namespace {

TEST(Compatibility, Version1) {
  auto run = trace::Run::open(LLMPROF_SOURCE_DIR "/tests/runs/v1_sample");
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->info().format_version, 1);
  EXPECT_EQ(run->info().source, "sample");
  // As tests/runs/README.md says: 3 kernels of 900 + 200 + 500 ns, a range in a range, a GEMM, a loss of 3 records.
  const auto facts = run->query(
      "SELECT (SELECT sum(end_ns - begin_ns) FROM kernel), (SELECT string_agg(DISTINCT name, ',' ORDER BY name) FROM "
      "kernel), "
      "(SELECT parent_id FROM range WHERE name = 'mlp'), (SELECT m * n * k FROM gemm), (SELECT count FROM loss), "
      "(SELECT count(*) FROM kernel WHERE grid_x IS NULL), (SELECT value FROM peak)");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->rows[0][0].as_int(), 1600);
  EXPECT_EQ(facts->rows[0][1].text, "gemm,softmax");
  EXPECT_EQ(facts->rows[0][2].as_int(), 20);
  EXPECT_EQ(facts->rows[0][3].as_int(), 8 * 16 * 32);
  EXPECT_EQ(facts->rows[0][4].as_int(), 3);
  EXPECT_EQ(facts->rows[0][5].as_int(), 2);
  EXPECT_EQ(facts->rows[0][6].as_double(), 2.5e12);
  const auto findings = check_run(*run);
  ASSERT_TRUE(findings) << findings.error().message;
  EXPECT_TRUE(findings->empty());
}

}  // namespace
}  // namespace llmprof::trace
