#include "model/families.h"

#include <algorithm>
#include <array>

namespace llmprof::model {

extern const Family kGpt2, kLlama;

std::span<const Family* const> families() {
  static constexpr std::array kFamilies{&kGpt2, &kLlama};
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
