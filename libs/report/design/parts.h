#pragma once
// Pieces that the pages of a design share.

#include <cstdint>
#include <optional>
#include <string>

#include "analyze/design/design.h"
#include "report/layout.h"

namespace llmprof::report {

// What the model is and what to read before its numbers.
std::string head_section(const analyze::design::Design& design, const Style& style);
// Which peaks the floors and percentages rest on, or why there are none.
std::string peaks_sentence(const analyze::design::Design& design);

std::string grouped(std::int64_t count);               // "1,235,814,400"
std::string number_cell(std::optional<double> value);  // three digits
std::string bytes_cell(std::optional<double> bytes);
std::string floor_cell(std::optional<double> ns);             // "1.53 ms"
std::string bound_cell(const analyze::design::Floor& floor);  // "memory"
std::string model_name(const analyze::design::Design& design);

}  // namespace llmprof::report
