#pragma once
// Numbers of any measure as people read them.

#include <string>
#include <string_view>

namespace llmprof::report {

// `value` in base units, as measures and evidence have it: with_unit(0.00206, "s") = "2.06 ms", (0.42, "1") =
// "42.0 %", (17, "") = "17".
std::string with_unit(double value, std::string_view unit);

}  // namespace llmprof::report
