#include "model/config.h"

namespace llmprof::model {

bool covers(const Quantization& quantization, std::string_view module) {
  for (const std::string& ignored : quantization.ignore) {
    if (module.find(ignored) != std::string_view::npos) return false;
  }
  return true;
}

}  // namespace llmprof::model
