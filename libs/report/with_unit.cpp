#include "report/with_unit.h"

#include <fmt/format.h>

#include <cmath>

#include "base/human.h"

namespace llmprof::report {
namespace {

// Numbers of things: whole ones in full as long as one can read them.
std::string number(double value) {
  if (std::fabs(value) >= 1e6) return base::human_count(value);
  if (value == std::floor(value)) return fmt::format("{:.0f}", value);
  return std::fabs(value) < 0.1 ? fmt::format("{:.3g}", value) : base::three_digits(value);
}

}  // namespace

std::string with_unit(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "unknown";
  if (value < 0) return "-" + with_unit(-value, unit);
  if (unit == "s") return base::human_ns(value * 1e9);
  if (unit == "ns") return base::human_ns(value);
  if (unit == "B") return base::human_bytes(value);
  if (unit == "1") return base::human_percent(value);
  if (unit.empty()) return number(value);
  if (unit.starts_with("B/") || unit.starts_with("FLOP") || value >= 1e6)
    return base::human_rate(value, std::string(unit).c_str());
  return fmt::format("{} {}", number(value), unit);
}

}  // namespace llmprof::report
