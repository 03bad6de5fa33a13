#include "model/families.h"

#include <array>

namespace llmprof::model {

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

}  // namespace llmprof::model
