#include <gtest/gtest.h>

#include "bench/operator.h"
#include "bench/ops/grouped.h"
#include "bench/ops/testing.h"

namespace llmprof::bench {
namespace {

TEST(GroupedGemm, EveryGroupHasItsOwnMatrix) {
  // 8 rows in two groups of shares 1 and 6: 8/7 = 1 row, and 7. n = k = 1: the first row times 10, the others times
  // 100.
  const auto tensors = run_reference("grouped_gemm", Type::kFloat32, {{"groups", 2}, {"m", 8}, {"n", 1}, {"k", 1}},
                                     {{1, 2, 3, 4, 5, 6, 7, 8}, {10, 100}});
  EXPECT_EQ(tensors[2], (std::vector<double>{10, 200, 300, 400, 500, 600, 700, 800}));
}

TEST(GroupedGemm, OnlyMatricesWithRowsAreRead) {
  // 2 rows in 7 groups of shares 1 6 4 2 7 5 3 of 28: rows before them 0, 0, 0, 0, 0, 1, 1, 2, so groups 5 and 7 have
  // one.
  const model::KernelWork work =
      work_of("grouped_gemm", Type::kBfloat16, {{"groups", 7}, {"m", 2}, {"n", 10}, {"k", 100}});
  EXPECT_EQ(work.flops, 2 * 2 * 10 * 100);
  EXPECT_EQ(work.read_bytes, 2 * (2 * 100 + 2 * 1000));
  EXPECT_EQ(work.write_bytes, 2 * 20);
}

TEST(GroupedGemm, CpuEqualsTheReference) {
  const Axes axes{{"groups", 5}, {"m", 77}, {"n", 33}, {"k", 65}};
  EXPECT_LT(cpu_error("grouped_gemm", Type::kFloat32, axes), 1e-5);
  EXPECT_LT(cpu_error("grouped_gemm", Type::kFloat64, axes), 1e-13);
}

TEST(GroupedGemm, TilesCoverEveryRowOnce) {
  // Groups of 3, 0 and 5 rows in tiles of 4: [0, 3) of the first, [3, 7) and [7, 8) of the third.
  const std::vector<GroupTile> tiles = tiles_of({3, 0, 5}, 4);
  ASSERT_EQ(tiles.size(), 3u);
  EXPECT_EQ(tiles[0].group, 0);
  EXPECT_EQ(tiles[0].end, 3);
  EXPECT_EQ(tiles[1].group, 2);
  EXPECT_EQ(tiles[1].begin, 3);
  EXPECT_EQ(tiles[1].end, 7);
  EXPECT_EQ(tiles[2].begin, 7);
  EXPECT_EQ(tiles[2].end, 8);
}

TEST(GroupedGemm, RefusesWhatCannotBeAddressed) {
  EXPECT_FALSE(make_problem(*find_operator("grouped_gemm"), Type::kBfloat16, Axes{{"groups", 1 << 20}}));
  EXPECT_FALSE(make_problem(*find_operator("grouped_gemm"), Type::kBfloat16,
                            Axes{{"n", std::int64_t{1} << 40}, {"k", std::int64_t{1} << 40}}));
}

}  // namespace
}  // namespace llmprof::bench
