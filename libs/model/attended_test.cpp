#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/cost.h"

namespace llmprof::model {
namespace {

// Query by query and key by key: what the closed forms must equal.
struct Counted {
  double pairs = 0, keys = 0;
};
Counted count(const Attention& attention, int n, int c) {
  Counted counted;
  std::set<int> seen;
  for (int query = c - n; query < c; ++query) {
    for (int key = 0; key <= query; ++key) {
      if (attention.window > 0 && query - key >= attention.window) continue;
      if (attention.chunk > 0 && query / attention.chunk != key / attention.chunk) continue;
      ++counted.pairs;
      seen.insert(key);
    }
  }
  counted.keys = static_cast<double>(seen.size());
  return counted;
}

TEST(Attended, ClosedFormsEqualCounting) {
  for (const Attention& attention :
       {Attention{}, Attention{.window = 1}, Attention{.window = 4}, Attention{.window = 7}, Attention{.chunk = 1},
        Attention{.chunk = 3}, Attention{.chunk = 8}}) {
    for (int c = 1; c <= 20; ++c) {
      for (int n = 1; n <= c; ++n) {
        const Counted counted = count(attention, n, c);
        EXPECT_EQ(attended_pairs(attention, n, c), counted.pairs)
            << "window " << attention.window << " chunk " << attention.chunk << " n " << n << " c " << c;
        EXPECT_EQ(attended_keys(attention, n, c), counted.keys)
            << "window " << attention.window << " chunk " << attention.chunk << " n " << n << " c " << c;
      }
    }
  }
}

TEST(Attended, AWideWindowIsNone) {
  const Attention all, wide{.window = 1000}, long_chunk{.chunk = 1000};
  for (const double n : {1.0, 10.0, 500.0}) {
    EXPECT_EQ(attended_pairs(all, n, 500), attended_pairs(wide, n, 500));
    EXPECT_EQ(attended_pairs(all, n, 500), attended_pairs(long_chunk, n, 500));
    EXPECT_EQ(attended_keys(wide, n, 500), 500);
  }
}

TEST(DistinctExperts, ByHand) {
  const Experts of_eight{.all = 8, .here = 8, .per_token = 2};
  EXPECT_NEAR(distinct_experts(of_eight, 1), 2, 1e-12);    // one token touches the two it chooses
  EXPECT_NEAR(distinct_experts(of_eight, 2), 3.5, 1e-12);  // 8·(1 - (6/8)²)
  EXPECT_NEAR(distinct_experts(of_eight, 1e6), 8, 1e-12);  // many tokens touch all
  EXPECT_EQ(distinct_experts(of_eight, 0), 0);
  // Half of them here: half of what is touched is.
  EXPECT_NEAR(distinct_experts({.all = 8, .here = 4, .per_token = 2}, 2), 1.75, 1e-12);
  EXPECT_EQ(distinct_experts({.all = 4, .here = 4, .per_token = 4}, 1), 4);  // every token takes all
  // 256 experts, 8 of them: 1 - 8/256 in floating point is not what makes one token touch exactly 8.
  EXPECT_NEAR(distinct_experts({.all = 256, .here = 256, .per_token = 8}, 1), 8, 1e-12);
}

}  // namespace
}  // namespace llmprof::model
