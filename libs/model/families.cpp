#include "model/families.h"

#include <algorithm>
#include <array>

namespace llmprof::model {

extern const Family kCohere, kDeepseekV2, kDeepseekV3, kFalcon, kFalconTwoNorms, kGemma, kGemma2, kGemma3, kGeneric,
    kGlm, kGlm4, kGlm4Moe, kGpt2, kGptNeox, kGptOss, kGptj, kInferred, kLlama, kLlama4, kMixtral, kOlmo2, kOpt, kPhi,
    kPhi3, kQwen2, kQwen2Moe, kQwen3, kQwen3Moe, kStarcoder2;

std::span<const Family* const> families() {
  static constexpr std::array kFamilies{&kGpt2,           &kLlama,      &kQwen2,      &kQwen2Moe, &kQwen3,  &kQwen3Moe,
                                        &kMixtral,        &kGemma,      &kGemma2,     &kGemma3,   &kPhi,    &kPhi3,
                                        &kGptOss,         &kLlama4,     &kOlmo2,      &kGlm,      &kGlm4,   &kGlm4Moe,
                                        &kDeepseekV2,     &kDeepseekV3, &kCohere,     &kGptNeox,  &kGptj,   &kFalcon,
                                        &kFalconTwoNorms, &kOpt,        &kStarcoder2, &kInferred, &kGeneric};
  return kFamilies;
}

const Family* find_family(std::string_view name) {
  for (const Family* family : families()) {
    if (family->name == name) return family;
  }
  return nullptr;
}

const Family* family_of_model_type(std::string_view type) {
  for (const Family* family : families()) {
    if (std::ranges::find(family->model_types, type) != family->model_types.end()) return family;
  }
  return nullptr;
}

}  // namespace llmprof::model
