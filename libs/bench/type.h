#pragma once
// Types of the values that operators are measured with, and their bits: what a device stores, a reference reads.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace llmprof::bench {

enum class Type : std::uint8_t {
  kFloat64,
  kFloat32,
  kTf32,  // stored as float32, multiplied with 10 bits of mantissa
  kFloat16,
  kBfloat16,
  kFloat8E4m3,  // finite: 448 is the largest, no infinities
  kInt8,
  kInt32,  // indices and the sums of int8 products; not a type an operator is asked for
};

inline constexpr Type kAllTypes[] = {Type::kFloat64,  Type::kFloat32,    Type::kTf32, Type::kFloat16,
                                     Type::kBfloat16, Type::kFloat8E4m3, Type::kInt8};

std::string_view type_name(Type type);                  // "bfloat16": the names of runs and of the device catalogue
std::optional<Type> parse_type(std::string_view text);  // also "bf16", "fp16", "half", "fp8", "fp32", "f64", …
std::int64_t type_bytes(Type type);
// The type of what a product of this type gives: bfloat16 for float8, int32 for int8, else itself.
Type product_type(Type type);

// The nearest value the type can hold (ties to even); float8 and the integers saturate. tf32 rounds as float32.
double rounded(double value, Type type);
void encode(std::span<const double> values, Type type, std::byte* out);
void decode(const std::byte* in, Type type, std::span<double> values);

// Largest ‖result - reference‖ / ‖reference‖ that arithmetic in this type, with float32 sums, may give.
double tolerance(Type type);

}  // namespace llmprof::bench
