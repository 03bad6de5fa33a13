#pragma once
// The tables of the section of hardware counters. Each is "" where it has no rows.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/layout.h"
#include "report/page.h"

namespace llmprof::report {

inline constexpr std::string_view kCountersInFull = "llmprof report --counters shows all";

std::size_t hardware_rows(const Page& page);  // of each table: all if counters were asked for, else few, or --top
std::string rows_left(const Page& page, std::size_t all, std::string_view what);

const analyze::CounterValue* counter_of(const std::vector<analyze::CounterValue>& values, std::string_view name);
std::string value_text(double value, std::string_view unit);  // "1.24 GB", "42.3 %"
std::string with_error(const analyze::CounterValue& value);   // "1.24 GB/s ±3.1 %"
std::string bytes_cell(std::optional<double> bytes);
// A percentage of the chip as a cell: its unit stands in the title.
std::string percent_of(const std::vector<analyze::CounterValue>& values, std::string_view name);

std::string counted_stages(const Page& page);
std::string counted_modules(const Page& page);
std::string counted_values(const Page& page);  // every counter of every stage
std::string evidence_table(const Page& page);

std::string unmixed_table(const Page& page);
std::string occupancy_table(const Page& page);
std::string stall_tables(const Page& page);

}  // namespace llmprof::report
