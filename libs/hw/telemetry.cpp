#include "hw/telemetry.h"

#include <time.h>

namespace llmprof::hw {

std::string_view name_of(ReadGroup group) {
  static constexpr std::array<std::string_view, kReadGroups> kNames{
      "power and energy", "clocks, temperature and utilisation", "activity", "memory of processes", "limits"};
  return kNames[static_cast<std::size_t>(group)];
}

std::uint64_t raw_now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

bool parse_uuid(std::string_view text, std::uint64_t& high, std::uint64_t& low) {
  if (text.starts_with("GPU-")) text.remove_prefix(4);
  std::uint64_t halves[2] = {0, 0};
  int digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits == 32) return false;
    std::uint64_t& half = halves[digits++ / 16];
    half = half << 4 | static_cast<std::uint64_t>(digit);
  }
  if (digits != 32) return false;
  high = halves[0];
  low = halves[1];
  return true;
}

}  // namespace llmprof::hw
