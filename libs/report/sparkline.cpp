#include "report/sparkline.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace llmprof::report {
namespace {

constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kAscii{"_", ".", "-", "~", "=", "+", "*", "#"};

}  // namespace

std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode, SparkRange range) {
  if (values.empty() || width == 0) return "";
  const std::size_t bars = std::min(width, values.size());
  const double whole = static_cast<double>(range.high) - static_cast<double>(range.low);
  std::string out;
  for (std::size_t bar = 0; bar < bars; ++bar) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(bar * values.size() / bars);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>((bar + 1) * values.size() / bars);
    const double above = static_cast<double>(*std::max_element(begin, end)) - static_cast<double>(range.low);
    const double part = whole > 0 ? std::clamp(above / whole, 0.0, 1.0) : 0;
    const std::size_t level = std::min<std::size_t>(7, static_cast<std::size_t>(part * 8));
    out += unicode ? kBars[level] : kAscii[level];
  }
  return out;
}

std::string sparkline(const std::vector<std::int64_t>& values, std::size_t width, bool unicode) {
  if (values.empty()) return "";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return sparkline(values, width, unicode, {*low, *high});
}

}  // namespace llmprof::report
