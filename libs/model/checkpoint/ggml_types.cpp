#include "model/checkpoint/ggml_types.h"

#include <algorithm>
#include <array>

namespace llmprof::model {
namespace {

// Numbers and block layouts: ggml.h and ggml-common.h of llama.cpp (April 2026). The sums name the parts of a block:
// scales and minima first, then the packed values. Missing numbers were removed from the format.
constexpr std::array kTypes{
    GgmlType{0, "F32", 1, 4},
    GgmlType{1, "F16", 1, 2},
    GgmlType{2, "Q4_0", 32, 2 + 16},
    GgmlType{3, "Q4_1", 32, 2 + 2 + 16},
    GgmlType{6, "Q5_0", 32, 2 + 4 + 16},
    GgmlType{7, "Q5_1", 32, 2 + 2 + 4 + 16},
    GgmlType{8, "Q8_0", 32, 2 + 32},
    GgmlType{9, "Q8_1", 32, 2 + 2 + 32},
    GgmlType{10, "Q2_K", 256, 2 + 2 + 16 + 64},
    GgmlType{11, "Q3_K", 256, 2 + 12 + 32 + 64},
    GgmlType{12, "Q4_K", 256, 2 + 2 + 12 + 128},
    GgmlType{13, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    GgmlType{14, "Q6_K", 256, 2 + 16 + 64 + 128},
    GgmlType{15, "Q8_K", 256, 4 + 32 + 256},
    GgmlType{16, "IQ2_XXS", 256, 2 + 64},
    GgmlType{17, "IQ2_XS", 256, 2 + 8 + 64},
    GgmlType{18, "IQ3_XXS", 256, 2 + 96},
    GgmlType{19, "IQ1_S", 256, 2 + 16 + 32},
    GgmlType{20, "IQ4_NL", 32, 2 + 16},
    GgmlType{21, "IQ3_S", 256, 2 + 4 + 8 + 32 + 64},
    GgmlType{22, "IQ2_S", 256, 2 + 8 + 8 + 64},
    GgmlType{23, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    GgmlType{24, "I8", 1, 1},
    GgmlType{25, "I16", 1, 2},
    GgmlType{26, "I32", 1, 4},
    GgmlType{27, "I64", 1, 8},
    GgmlType{28, "F64", 1, 8},
    GgmlType{29, "IQ1_M", 256, 8 + 16 + 32},
    GgmlType{30, "BF16", 1, 2},
    GgmlType{34, "TQ1_0", 256, 2 + 4 + 48},
    GgmlType{35, "TQ2_0", 256, 2 + 64},
    GgmlType{39, "MXFP4", 32, 1 + 16},
    GgmlType{40, "NVFP4", 64, 4 + 32},
    GgmlType{41, "Q1_0", 128, 2 + 16},
};

}  // namespace

std::span<const GgmlType> ggml_types() { return kTypes; }

const GgmlType* find_ggml_type(std::uint32_t id) {
  const auto* const found = std::ranges::find(kTypes, id, &GgmlType::id);
  return found != kTypes.end() ? found : nullptr;
}

}  // namespace llmprof::model
