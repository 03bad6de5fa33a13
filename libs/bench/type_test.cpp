#include "bench/type.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace llmprof::bench {
namespace {

template <class Bits>
Bits bits_of(double value, Type type) {
  std::array<std::byte, 8> out{};
  encode(std::span(&value, 1), type, out.data());
  Bits bits;
  std::memcpy(&bits, out.data(), sizeof bits);
  return bits;
}

TEST(Type, NamesRoundTrip) {
  for (const Type type : kAllTypes) EXPECT_EQ(parse_type(type_name(type)), type);
  EXPECT_EQ(parse_type("bf16"), Type::kBfloat16);
  EXPECT_EQ(parse_type("int32"), std::nullopt);  // not a type to ask for
  EXPECT_EQ(parse_type("float4"), std::nullopt);
}

TEST(Type, BitsByHand) {
  EXPECT_EQ(bits_of<std::uint16_t>(1, Type::kFloat16), 0x3c00);
  EXPECT_EQ(bits_of<std::uint16_t>(-2.5, Type::kFloat16), 0xc100);   // -1.25 * 2^1: exponent 16, fraction 0x100
  EXPECT_EQ(bits_of<std::uint16_t>(0x1p-24, Type::kFloat16), 1);     // the smallest subnormal
  EXPECT_EQ(bits_of<std::uint16_t>(65520, Type::kFloat16), 0x7c00);  // rounds up to infinity
  EXPECT_EQ(bits_of<std::uint16_t>(1, Type::kBfloat16), 0x3f80);
  EXPECT_EQ(bits_of<std::uint16_t>(1 + 0x1p-8, Type::kBfloat16), 0x3f80);  // a tie goes to even
  EXPECT_EQ(bits_of<std::uint16_t>(1 + 0x3p-8, Type::kBfloat16), 0x3f82);
  EXPECT_EQ(bits_of<std::uint8_t>(1, Type::kFloat8E4m3), 0x38);
  EXPECT_EQ(bits_of<std::uint8_t>(448, Type::kFloat8E4m3), 0x7e);
  EXPECT_EQ(bits_of<std::uint8_t>(1000, Type::kFloat8E4m3), 0x7e);  // saturates
  EXPECT_EQ(bits_of<std::uint8_t>(0x1p-9, Type::kFloat8E4m3), 0x01);
  EXPECT_EQ(bits_of<std::uint8_t>(-300, Type::kInt8), 0x80);
}

TEST(Type, EveryBitPatternOfASmallTypeRoundTrips) {
  for (const Type type : {Type::kFloat8E4m3, Type::kFloat16, Type::kBfloat16}) {
    const std::uint32_t patterns = type_bytes(type) == 1 ? 256 : 65536;
    for (std::uint32_t bits = 0; bits < patterns; ++bits) {
      std::array<std::byte, 2> in{static_cast<std::byte>(bits & 0xff), static_cast<std::byte>(bits >> 8)};
      double value = 0;
      decode(in.data(), type, std::span(&value, 1));
      if (std::isnan(value)) continue;
      const std::uint32_t again =
          type_bytes(type) == 1 ? bits_of<std::uint8_t>(value, type) : bits_of<std::uint16_t>(value, type);
      ASSERT_EQ(again, bits) << type_name(type) << ' ' << value;
    }
  }
}

TEST(Type, RoundedIsTheNearest) {
  EXPECT_EQ(rounded(17, Type::kFloat8E4m3), 16);  // between 16 and 18: a tie goes to even
  EXPECT_EQ(rounded(19, Type::kFloat8E4m3), 20);
  EXPECT_EQ(rounded(2049, Type::kFloat16), 2048);
  EXPECT_EQ(rounded(0.1, Type::kFloat32), static_cast<double>(0.1f));
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<double>::quiet_NaN(), Type::kBfloat16)));
}

}  // namespace
}  // namespace llmprof::bench
