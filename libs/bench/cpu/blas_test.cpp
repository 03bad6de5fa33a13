#include "bench/cpu/blas.h"

#include <gtest/gtest.h>

#include <vector>

namespace llmprof::bench {
namespace {

// Small whole numbers: every sum is exact, whatever its order.
template <class T>
std::vector<T> pattern(std::int64_t count, int seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>((i * 7 + seed) % 11) - 5;
  return values;
}

template <class T>
void expect_exact(const CpuProduct& p) {
  const std::vector<T> a = pattern<T>(p.m * p.k, 1), b = pattern<T>(p.n * p.k, 2);
  std::vector<T> c(static_cast<std::size_t>(p.m * p.n), -1000);
  const Team team(2);
  multiply(p, reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data()),
           reinterpret_cast<std::byte*>(c.data()), team);
  for (std::int64_t row = 0; row < p.m; ++row) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      T sum = 0;
      for (std::int64_t i = 0; i < p.k; ++i) sum += a[row * p.k + i] * b[column * p.k + i];
      ASSERT_EQ(c[row * p.n + column], sum) << row << ' ' << column;
    }
  }
}

TEST(CpuBlas, MultipliesRowsByRows) {
  expect_exact<float>({.m = 20, .n = 33, .k = 17, .type = Type::kFloat32});
  expect_exact<double>({.m = 20, .n = 33, .k = 17, .type = Type::kFloat64});
}

TEST(CpuBlas, FewRowsAreVectorProducts) {
  expect_exact<float>({.m = 3, .n = 19, .k = 21, .type = Type::kFloat32});
  expect_exact<double>({.m = 1, .n = 19, .k = 21, .type = Type::kFloat64});
}

TEST(CpuBlas, SaysWhoComputes) {
  const std::string method = multiply_method(Type::kFloat64);
  if (cpu_blas()) {
    EXPECT_EQ(method.find("OpenBLAS"), 0u) << method;
    EXPECT_NE(method.find("dgemm"), std::string::npos) << method;
  } else {
    EXPECT_NE(method.find("no OpenBLAS"), std::string::npos) << method;
  }
}

TEST(CpuBlas, SizesBeyondItsOwnAreKnown) {
  EXPECT_TRUE(CpuBlas::fits(2147483647, 1, 1));
  EXPECT_FALSE(CpuBlas::fits(1, 2147483648, 1));
}

}  // namespace
}  // namespace llmprof::bench
