#pragma once
// Numbers as people read them: three significant digits and a unit. Pure functions, no locale.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::base {

std::string human_ns(double ns);                              // "812 ns", "1.53 ms", "12.4 s", "3 min 12 s"
std::string human_bytes(double bytes);                        // decimal, as bandwidths are: "97.5 kB", "1.24 GB"
std::string human_count(double count);                        // "12.3 k", "4.50 M", "1.20 G"
std::string human_rate(double per_second, const char* unit);  // human_rate(9.3e10, "FLOP/s") = "93.0 GFLOP/s"
std::string human_percent(double fraction);                   // "42.3 %"; under 0.1 %: "<0.1 %"
std::string human_percent(std::optional<double> fraction);    // "-" when unknown
std::string singular(std::string_view plural);  // "processes" -> "process", "libraries" -> "library", "names" -> "name"
std::string three_digits(double value);         // "1.24", "12.4", "124", "1240"

}  // namespace llmprof::base
