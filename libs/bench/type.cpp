#include "bench/type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace llmprof::bench {
namespace {

struct TypeInfo {
  std::string_view name;
  std::int64_t bytes;
  double tolerance;
};
// In the order of Type. float8's tolerance is that of its bfloat16 results: the inputs are rounded before.
constexpr TypeInfo kTypes[] = {{"float64", 8, 1e-12}, {"float32", 4, 1e-5},     {"tf32", 4, 2e-3}, {"float16", 2, 2e-3},
                               {"bfloat16", 2, 1e-2}, {"float8_e4m3", 1, 1e-2}, {"int8", 1, 0},    {"int32", 4, 0}};

const TypeInfo& info_of(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

struct Spelling {
  std::string_view text;
  Type type;
};
// Beside the names.
constexpr Spelling kSpellings[] = {
    {"fp64", Type::kFloat64},      {"f64", Type::kFloat64},         {"double", Type::kFloat64},
    {"fp32", Type::kFloat32},      {"f32", Type::kFloat32},         {"float", Type::kFloat32},
    {"tfloat32", Type::kTf32},     {"fp16", Type::kFloat16},        {"f16", Type::kFloat16},
    {"half", Type::kFloat16},      {"bf16", Type::kBfloat16},       {"fp8", Type::kFloat8E4m3},
    {"float8", Type::kFloat8E4m3}, {"fp8_e4m3", Type::kFloat8E4m3}, {"i8", Type::kInt8},
};

// A binary floating-point format without subtleties of its own: rounds to `mantissa` bits, with subnormals.
double round_bits(double value, int mantissa, int least_exponent, double largest, bool saturates) {
  if (!std::isfinite(value)) return saturates && std::isinf(value) ? std::copysign(largest, value) : value;
  int exponent = 0;
  std::frexp(value, &exponent);  // value = f * 2^exponent, f in [0.5, 1)
  const int scale = std::max(exponent - 1, least_exponent) - mantissa;
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -scale)), scale);
  if (std::abs(result) <= largest) return result;
  return saturates ? std::copysign(largest, value) : std::copysign(std::numeric_limits<double>::infinity(), value);
}

double rounded_integer(double value, double least, double most) {
  return std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), least, most);
}

// Bits of a value that the small format holds exactly: sign, exponent of `bits` with `bias`, mantissa.
std::uint32_t small_bits(double value, int mantissa, int bias, int total, std::uint32_t nan, std::uint32_t infinity) {
  const std::uint32_t sign = std::signbit(value) ? 1u << (total - 1) : 0;
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = 0;
  std::frexp(std::abs(value), &exponent);
  const int stored = exponent - 1 + bias;
  if (stored < 1) return sign | static_cast<std::uint32_t>(std::ldexp(std::abs(value), bias - 1 + mantissa));
  const auto fraction = static_cast<std::uint32_t>(std::ldexp(std::abs(value), mantissa - (exponent - 1)));
  return sign | (static_cast<std::uint32_t>(stored) << mantissa) | (fraction & ((1u << mantissa) - 1));
}

double from_small_bits(std::uint32_t bits, int mantissa, int bias, int total) {
  const double sign = (bits >> (total - 1)) != 0 ? -1 : 1;
  const auto exponent = static_cast<int>((bits & ((1u << (total - 1)) - 1)) >> mantissa);
  const std::uint32_t fraction = bits & ((1u << mantissa) - 1);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp(fraction + (1u << mantissa), exponent - bias - mantissa);
}

template <class T>
void put(std::byte* out, std::size_t index, T value) {
  std::memcpy(out + index * sizeof(T), &value, sizeof(T));
}
template <class T>
T get(const std::byte* in, std::size_t index) {
  T value;
  std::memcpy(&value, in + index * sizeof(T), sizeof(T));
  return value;
}

void encode_one(double value, Type type, std::byte* out, std::size_t i) {
  const double held = rounded(value, type);
  switch (type) {
    case Type::kFloat64:
      return put(out, i, held);
    case Type::kFloat32:
    case Type::kTf32:
      return put(out, i, static_cast<float>(held));
    case Type::kFloat16:
      return put(out, i, static_cast<std::uint16_t>(small_bits(held, 10, 15, 16, 0x7e00, 0x7c00)));
    case Type::kBfloat16:
      return put(out, i, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(held)) >> 16));
    case Type::kFloat8E4m3:
      return put(out, i, static_cast<std::uint8_t>(small_bits(held, 3, 7, 8, 0x7f, 0x7e)));
    case Type::kInt8:
      return put(out, i, static_cast<std::int8_t>(held));
    case Type::kInt32:
      return put(out, i, static_cast<std::int32_t>(held));
  }
}

double decode_one(const std::byte* in, Type type, std::size_t i) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  switch (type) {
    case Type::kFloat64:
      return get<double>(in, i);
    case Type::kFloat32:
    case Type::kTf32:
      return static_cast<double>(get<float>(in, i));
    case Type::kFloat16: {
      const auto bits = get<std::uint16_t>(in, i);
      if ((bits & 0x7c00) == 0x7c00) return (bits & 0x3ff) != 0 ? kNan : (bits & 0x8000) != 0 ? -kInfinity : kInfinity;
      return from_small_bits(bits, 10, 15, 16);
    }
    case Type::kBfloat16:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(get<std::uint16_t>(in, i)) << 16));
    case Type::kFloat8E4m3: {
      const auto bits = get<std::uint8_t>(in, i);
      return (bits & 0x7f) == 0x7f ? kNan : from_small_bits(bits, 3, 7, 8);
    }
    case Type::kInt8:
      return get<std::int8_t>(in, i);
    case Type::kInt32:
      return get<std::int32_t>(in, i);
  }
  return 0;
}

}  // namespace

std::string_view type_name(Type type) { return info_of(type).name; }
std::int64_t type_bytes(Type type) { return info_of(type).bytes; }
double tolerance(Type type) { return info_of(type).tolerance; }

std::optional<Type> parse_type(std::string_view text) {
  for (const Type type : kAllTypes) {
    if (type_name(type) == text) return type;
  }
  for (const Spelling& spelling : kSpellings) {
    if (spelling.text == text) return spelling.type;
  }
  return std::nullopt;
}

Type product_type(Type type) {
  if (type == Type::kFloat8E4m3) return Type::kBfloat16;
  if (type == Type::kInt8) return Type::kInt32;
  return type == Type::kTf32 ? Type::kFloat32 : type;
}

double rounded(double value, Type type) {
  switch (type) {
    case Type::kFloat64:
      return value;
    case Type::kFloat32:
    case Type::kTf32:
      return static_cast<double>(static_cast<float>(value));
    case Type::kFloat16:
      return round_bits(value, 10, -14, 65504, false);
    case Type::kBfloat16:
      return round_bits(value, 7, -126, 0x1.fep127, false);
    case Type::kFloat8E4m3:
      return round_bits(value, 3, -6, 448, true);
    case Type::kInt8:
      return rounded_integer(value, -128, 127);
    case Type::kInt32:
      return rounded_integer(value, -2147483648.0, 2147483647.0);
  }
  return value;
}

void encode(std::span<const double> values, Type type, std::byte* out) {
  for (std::size_t i = 0; i < values.size(); ++i) encode_one(values[i], type, out, i);
}

void decode(const std::byte* in, Type type, std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = decode_one(in, type, i);
}

}  // namespace llmprof::bench
