// The types that values are stored in. Bytes of block formats include their scales.

#include <algorithm>
#include <array>
#include <cctype>

#include "model/config.h"

namespace llmprof::model {
namespace {

struct Spelling {
  std::string_view text, type;
  double bytes;
};

// The first spelling of a type is its own name.
constexpr std::array kSpellings{
    Spelling{"float64", "float64", 8},
    Spelling{"fp64", "float64", 8},
    Spelling{"f64", "float64", 8},
    Spelling{"double", "float64", 8},
    Spelling{"float32", "float32", 4},
    Spelling{"fp32", "float32", 4},
    Spelling{"f32", "float32", 4},
    Spelling{"float", "float32", 4},
    Spelling{"bfloat16", "bfloat16", 2},
    Spelling{"bf16", "bfloat16", 2},
    Spelling{"float16", "float16", 2},
    Spelling{"fp16", "float16", 2},
    Spelling{"f16", "float16", 2},
    Spelling{"half", "float16", 2},
    Spelling{"float8_e4m3", "float8_e4m3", 1},
    Spelling{"float8_e4m3fn", "float8_e4m3", 1},
    Spelling{"float8_e4m3fnuz", "float8_e4m3", 1},
    Spelling{"fp8_e4m3", "float8_e4m3", 1},
    Spelling{"f8_e4m3", "float8_e4m3", 1},
    Spelling{"e4m3", "float8_e4m3", 1},
    Spelling{"float8", "float8_e4m3", 1},
    Spelling{"fp8", "float8_e4m3", 1},
    Spelling{"float8_e5m2", "float8_e5m2", 1},
    Spelling{"float8_e5m2fnuz", "float8_e5m2", 1},
    Spelling{"fp8_e5m2", "float8_e5m2", 1},
    Spelling{"f8_e5m2", "float8_e5m2", 1},
    Spelling{"e5m2", "float8_e5m2", 1},
    Spelling{"int8", "int8", 1},
    Spelling{"uint8", "int8", 1},
    Spelling{"i8", "int8", 1},
    Spelling{"u8", "int8", 1},
    Spelling{"int6", "int6", 0.75},
    Spelling{"int5", "int5", 0.625},
    Spelling{"int4", "int4", 0.5},
    Spelling{"uint4", "int4", 0.5},
    Spelling{"i4", "int4", 0.5},
    Spelling{"u4", "int4", 0.5},
    Spelling{"int3", "int3", 0.375},
    Spelling{"int2", "int2", 0.25},
    Spelling{"float4_e2m1", "float4_e2m1", 0.5},
    Spelling{"float4_e2m1fn_x2", "float4_e2m1", 0.5},
    Spelling{"float4", "float4_e2m1", 0.5},
    Spelling{"fp4", "float4_e2m1", 0.5},
    Spelling{"f4", "float4_e2m1", 0.5},
    Spelling{"nf4", "nf4", 0.5},
    // OCP microscaling: one power of two per 32 values. NVFP4: one float8 per 16.
    Spelling{"mxfp8", "mxfp8", 1 + 1.0 / 32},
    Spelling{"mxfp6", "mxfp6", 0.75 + 1.0 / 32},
    Spelling{"mxfp4", "mxfp4", 0.5 + 1.0 / 32},
    Spelling{"nvfp4", "nvfp4", 0.5 + 1.0 / 16},
    // GGUF: bytes of a block over the values in it, as the format's block structures define them.
    Spelling{"q4_0", "q4_0", 18.0 / 32},
    Spelling{"q4_1", "q4_1", 20.0 / 32},
    Spelling{"q5_0", "q5_0", 22.0 / 32},
    Spelling{"q5_1", "q5_1", 24.0 / 32},
    Spelling{"q8_0", "q8_0", 34.0 / 32},
    Spelling{"q2_k", "q2_k", 84.0 / 256},
    Spelling{"q3_k", "q3_k", 110.0 / 256},
    Spelling{"q4_k", "q4_k", 144.0 / 256},
    Spelling{"q5_k", "q5_k", 176.0 / 256},
    Spelling{"q6_k", "q6_k", 210.0 / 256},
    Spelling{"q8_k", "q8_k", 292.0 / 256},
    Spelling{"iq1_s", "iq1_s", 50.0 / 256},
    Spelling{"iq1_m", "iq1_m", 56.0 / 256},
    Spelling{"iq2_xxs", "iq2_xxs", 66.0 / 256},
    Spelling{"iq2_xs", "iq2_xs", 74.0 / 256},
    Spelling{"iq2_s", "iq2_s", 82.0 / 256},
    Spelling{"iq3_xxs", "iq3_xxs", 98.0 / 256},
    Spelling{"iq3_s", "iq3_s", 110.0 / 256},
    Spelling{"iq4_nl", "iq4_nl", 18.0 / 32},
    Spelling{"iq4_xs", "iq4_xs", 136.0 / 256},
    Spelling{"tq1_0", "tq1_0", 54.0 / 256},
    Spelling{"tq2_0", "tq2_0", 66.0 / 256},
};

constexpr std::size_t kLongest = 32;

}  // namespace

std::optional<Number> number_of(std::string_view type) {
  constexpr std::string_view kTorch = "torch.";
  if (type.starts_with(kTorch)) type.remove_prefix(kTorch.size());
  if (type.size() > kLongest) return std::nullopt;
  std::string lower(type);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const Spelling& spelling : kSpellings) {
    if (spelling.text == lower) return Number{std::string(spelling.type), spelling.bytes};
  }
  return std::nullopt;
}

}  // namespace llmprof::model
