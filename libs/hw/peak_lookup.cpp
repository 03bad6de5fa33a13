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

namespace {

int rank_of(const Peak& peak) {
  if (peak.quantity == "flops") return principal(peak) ? 0 : 1;
  if (peak.quantity == "bandwidth") return peak.type == "read" ? 2 : is_memory_stream(peak.type) ? 3 : 4;
  return 5;
}

}  // namespace

bool principal(const Peak& peak) {
  if (peak.quantity == "bandwidth") return peak.type == "read" || peak.type == "triad";
  return peak.quantity == "flops" && peak.type.find(',') == std::string::npos;
}

bool short_of_cpu(const Peak& peak) { return peak.method.find(kShortOfCpu) != std::string::npos; }

bool measured_while_busy(const std::vector<Peak>& peaks) {
  return std::any_of(peaks.begin(), peaks.end(),
                     [](const Peak& peak) { return principal(peak) && short_of_cpu(peak); });
}

namespace {

// Whether a new figure may be worse than what the device can do, for a reason that the stored one need not have.
bool doubtful(const Peak& peak) {
  return short_of_cpu(peak) || peak.method.find(kShortMeasurement) != std::string::npos;
}

bool better(const Peak& a, const Peak& b) { return a.quantity == "latency" ? a.value < b.value : a.value > b.value; }

}  // namespace

std::vector<Peak> merged_peaks(const std::vector<Peak>& stored, const std::vector<Peak>& fresh) {
  std::vector<Peak> all = fresh;
  for (const Peak& old : stored) {
    const auto renewed = std::find_if(all.begin(), all.end(), [&](const Peak& peak) {
      return peak.quantity == old.quantity && peak.type == old.type;
    });
    if (renewed == all.end()) {
      all.push_back(old);
    } else if (doubtful(*renewed) && old.source == "measured" && better(old, *renewed)) {
      *renewed = old;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Peak& a, const Peak& b) { return rank_of(a) < rank_of(b); });
  return all;
}

bool is_memory_stream(std::string_view type) {
  // On a busy or an odd machine one core may reach more than all of them did.
  if (constexpr std::string_view kOneCore = ", one core"; type.ends_with(kOneCore)) type.remove_suffix(kOneCore.size());
  return type == "read" || type == "write" || type == "copy" || type == "triad";
}

const Peak* find_peak(const std::vector<Peak>& peaks, std::string_view quantity, std::string_view type) {
  if (quantity == "bandwidth" && type == kMemoryStream) {
    const Peak* best = nullptr;
    for (const Peak& peak : peaks) {
      const bool stream = peak.quantity == quantity && is_memory_stream(peak.type) && peak.value > 0;
      if (stream && (best == nullptr || better_memory_peak(peak, *best))) best = &peak;
    }
    return best;
  }
  for (const Peak& peak : peaks) {
    if (peak.quantity == quantity && (type.empty() || peak.type == peak_type(type))) return &peak;
  }
  return nullptr;
}

}  // namespace llmprof::hw
