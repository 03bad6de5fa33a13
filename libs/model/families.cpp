#include "model/families.h"

#include <algorithm>
#include <array>

#include "model/families/standard.h"

namespace llmprof::model {

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
