#include <algorithm>
#include <array>
#include <utility>

#include "hw/peaks.h"

namespace llmprof::hw {
namespace {

// Formats that hardware multiplies at the same rate.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSameRate{{{"float8_e4m3", "float8"},
                                                                                  {"float8_e5m2", "float8"},
                                                                                  {"mxfp8", "float8"},
                                                                                  {"mxfp6", "float6"},
                                                                                  {"float4_e2m1", "float4"},
                                                                                  {"mxfp4", "float4"},
                                                                                  {"nvfp4", "float4"}}};

}  // namespace

std::string_view peak_type(std::string_view type) {
  const auto* const found =
      std::find_if(kSameRate.begin(), kSameRate.end(), [&](const auto& pair) { return pair.first == type; });
  return found == kSameRate.end() ? type : found->second;
}

const Peak* find_peak(const std::vector<Peak>& peaks, std::string_view quantity, std::string_view type) {
  for (const Peak& peak : peaks) {
    if (peak.quantity == quantity && (type.empty() || peak.type == peak_type(type))) return &peak;
  }
  return nullptr;
}

}  // namespace llmprof::hw
