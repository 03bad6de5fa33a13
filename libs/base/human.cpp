#include "base/human.h"

#include <fmt/format.h>

#include <cmath>

namespace llmprof::base {
namespace {

std::string scaled(double value, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  double magnitude = std::fabs(value);
  while (magnitude >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    magnitude /= 1000;
    value /= 1000;
    ++prefix;
  }
  const std::string number =
      prefix == 0 && value == std::floor(value) ? fmt::format("{:.0f}", value) : three_digits(value);
  const std::string suffix = std::string(kPrefixes[prefix]) + unit;
  return suffix.empty() ? number : number + " " + suffix;
}

}  // namespace

std::string three_digits(double value) {
  const double magnitude = std::fabs(value);
  if (!std::isfinite(value)) return "-";
  if (magnitude >= 99.95) return fmt::format("{:.0f}", value);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string human_ns(double ns) {
  const double magnitude = std::fabs(ns);
  if (magnitude < 999.5) return fmt::format("{:.0f} ns", ns);
  if (magnitude < 999.5e3) return three_digits(ns / 1e3) + " us";
  if (magnitude < 999.5e6) return three_digits(ns / 1e6) + " ms";
  if (magnitude < 120e9) return three_digits(ns / 1e9) + " s";
  const auto seconds = static_cast<std::int64_t>(std::llround(ns / 1e9));
  if (seconds < 7200) return fmt::format("{} min {:02d} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02d} min", seconds / 3600, seconds / 60 % 60);
}

std::string human_bytes(double bytes) { return scaled(bytes, "B"); }
std::string human_count(double count) { return scaled(count, ""); }
std::string human_rate(double per_second, const char* unit) { return scaled(per_second, unit); }

std::string singular(std::string_view plural) {
  if (plural.ends_with("ies")) return std::string(plural.substr(0, plural.size() - 3)) + "y";
  if (plural.ends_with("sses")) return std::string(plural.substr(0, plural.size() - 2));
  return std::string(plural.ends_with("s") ? plural.substr(0, plural.size() - 1) : plural);
}

std::string human_percent(double fraction) {
  const double percent = fraction * 100;
  if (percent > 0 && percent < 0.1) return "<0.1 %";
  return fmt::format("{:.1f} %", percent);
}

std::string human_percent(std::optional<double> fraction) { return fraction ? human_percent(*fraction) : "-"; }

}  // namespace llmprof::base
