// Random data made on the GPU: mean, variance and range in every type, the same by seed, fast.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "bench_timing.h"

namespace llmprof::bench::cuda {
namespace {

std::vector<double> filled(const TensorSpec& spec, std::uint64_t seed, std::int64_t offset_bytes = 0) {
  const Buffer buffer = must(gpu().allocate(spec.bytes() + 256));
  must(gpu().set_bytes(buffer.pointer(), 0xa5, buffer.bytes()));
  must(fill_random(gpu(), buffer.pointer() + static_cast<Pointer>(offset_bytes), spec, seed));
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.bytes()));
  must(gpu().copy_out(bytes.data(), buffer.pointer(), buffer.bytes()));
  const std::size_t end = static_cast<std::size_t>(offset_bytes + spec.bytes());
  for (std::size_t i = end; i < bytes.size(); ++i) EXPECT_EQ(bytes[i], std::byte{0xa5}) << "written past the end";
  std::vector<double> values(static_cast<std::size_t>(spec.elements));
  decode(bytes.data() + offset_bytes, spec.type, values);
  return values;
}

struct Moments {
  double mean = 0, variance = 0, least = 0, most = 0, lag = 0;  // lag: correlation of neighbours
};

Moments moments(const std::vector<double>& values) {
  Moments m{.least = values[0], .most = values[0]};
  for (const double v : values) m.mean += v / static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = values[i] - m.mean;
    m.variance += d * d / static_cast<double>(values.size());
    if (i > 0) m.lag += d * (values[i - 1] - m.mean) / static_cast<double>(values.size());
    m.least = std::min(m.least, values[i]);
    m.most = std::max(m.most, values[i]);
  }
  m.lag /= std::max(m.variance, 1e-30);
  return m;
}

constexpr std::int64_t kMany = (1 << 20) + 3;  // not a multiple of any pack

TEST(Fill, NormalUniformAndIndicesInEveryType) {
  std::printf("%-12s %-8s %8s %8s %8s %8s %8s\n", "fill", "", "mean", "variance", "least", "most", "lag 1");
  for (const Type type : {Type::kFloat64, Type::kFloat32, Type::kTf32, Type::kFloat16, Type::kBfloat16,
                          Type::kFloat8E4m3, Type::kInt8, Type::kInt32}) {
    const bool whole = type == Type::kInt8 || type == Type::kInt32;
    const double scale = whole ? 20 : 1;
    const auto row = [&](const char* kind, const Fill& fill) {
      const Moments m = moments(filled({.name = "t", .type = type, .elements = kMany, .fill = fill}, 7));
      std::printf("%-12s %-8s %8.4f %8.4f %8.3f %8.3f %8.4f\n", std::string(type_name(type)).c_str(), kind, m.mean,
                  m.variance, m.least, m.most, m.lag);
      EXPECT_LT(std::abs(m.lag), 0.005) << type_name(type) << kind;
      return m;
    };
    const Moments normal = row("normal", {.kind = Fill::Kind::kNormal, .scale = scale});
    EXPECT_NEAR(normal.mean / scale, 0, 0.005);             // 5 standard errors of 2^-10
    EXPECT_NEAR(normal.variance / scale / scale, 1, 0.01);  // 7 standard errors of sqrt(2) 2^-10
    EXPECT_LT(normal.least, -4 * scale);
    EXPECT_GT(normal.most, 4 * scale);
    const Moments uniform = row("uniform", {.kind = Fill::Kind::kUniform, .scale = scale});
    EXPECT_NEAR(uniform.mean / scale, 0.5, 0.003);
    EXPECT_NEAR(uniform.variance / scale / scale, 1.0 / 12, 0.002);
    EXPECT_GE(uniform.least, 0);
    EXPECT_LE(uniform.most, scale);
    const Moments index = row("indices", {.kind = Fill::Kind::kIndices, .limit = 16});
    EXPECT_NEAR(index.mean, 7.5, 0.03);        // (16 - 1) / 2
    EXPECT_NEAR(index.variance, 21.25, 0.15);  // (16^2 - 1) / 12
    EXPECT_EQ(index.least, 0);
    EXPECT_EQ(index.most, 15);
  }
}

TEST(Fill, LargeIndicesStayBelowTheLimit) {
  const std::vector<double> values = filled({.name = "t",
                                             .type = Type::kInt32,
                                             .elements = kMany,
                                             .fill = {.kind = Fill::Kind::kIndices, .limit = 2'000'000'001}},
                                            3);
  const Moments m = moments(values);
  EXPECT_GE(m.least, 0);
  EXPECT_LT(m.most, 2'000'000'001.0);
  EXPECT_GT(m.most, 1'999'000'000.0);
}

TEST(Fill, PermutationsAndZeros) {
  std::vector<double> values =
      filled({.name = "t", .type = Type::kInt32, .elements = 4099, .fill = {.kind = Fill::Kind::kPermutation}}, 5);
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<double>(i));
  for (const double value :
       filled({.name = "t", .type = Type::kFloat16, .elements = 99, .fill = {.kind = Fill::Kind::kZero}}, 5)) {
    ASSERT_EQ(value, 0);
  }
}

TEST(Fill, TheSameBySeedWhateverTheAlignment) {
  const TensorSpec spec{.name = "t", .type = Type::kBfloat16, .elements = 100'001};
  const std::vector<double> first = filled(spec, 1);
  EXPECT_EQ(first, filled(spec, 1));
  EXPECT_EQ(first, filled(spec, 1, 2));
  EXPECT_NE(first, filled(spec, 2));
}

TEST(Fill, GigabytesInMilliseconds) {
  const TensorSpec spec{.name = "t", .type = Type::kBfloat16, .elements = std::int64_t{1} << 30};
  const Buffer buffer = must(gpu().allocate(spec.bytes()));
  must(fill_random(gpu(), buffer.pointer(), spec, 1));
  const double seconds = must(gpu().time([&] { return fill_random(gpu(), buffer.pointer(), spec, 1); }));
  std::printf("2 GiB of normal bfloat16 in %.2f ms: %.0f GB/s\n", seconds * 1e3,
              static_cast<double>(spec.bytes()) / seconds * 1e-9);
  EXPECT_LT(seconds, 0.1);
}

}  // namespace
}  // namespace llmprof::bench::cuda
