// Hardware counters of kernels: told apart in samples, how full the device was, what warps waited for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/text_table.h"
#include "report/gpu.h"
#include "report/hardware_parts.h"

namespace llmprof::report {
namespace {

using analyze::CounterValue;
using analyze::KernelStalls;
using analyze::StallPlace;
using analyze::UnmixedClass;
using base::Align;
using base::TextTable;

constexpr std::size_t kMostColumns = 3, kMostReasons = 2, kFewPlaces = 5;

// The counters that most readers want, as far as they are there; then the others.
std::vector<std::string> columns_of(const std::vector<UnmixedClass>& classes) {
  static constexpr std::array<std::string_view, 5> kFirst{"dram_read_bytes", "dram_bytes", "tensor_active_pct",
                                                          "l2_hit_pct", "achieved_occupancy_pct"};
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  for (const std::string_view name : kFirst)
    if (std::any_of(classes.begin(), classes.end(),
                    [&](const UnmixedClass& c) { return counter_of(c.values, name) != nullptr; }))
      add(name);
  for (const UnmixedClass& c : classes)
    for (const CounterValue& value : c.values) add(value.counter);
  if (names.size() > kMostColumns) names.resize(kMostColumns);
  return names;
}

std::string few_columns(const Page& page) {
  const auto& classes = page.summary.counters.unmixed;
  const std::vector<std::string> names = columns_of(classes);
  std::vector<TextTable::Column> columns = {{"kernel", Align::kLeft, true}, {"in samples"}};
  for (const std::string& name : names) columns.push_back({name});
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < std::min(classes.size(), hardware_rows(page)); ++i) {
    std::vector<std::string> cells = {short_kernel_name(classes[i].name), time_cell(classes[i].time_ns)};
    for (const std::string& name : names) {
      const CounterValue* value = counter_of(classes[i].values, name);
      cells.push_back(value != nullptr ? with_error(*value) : "-");
    }
    table.add(std::move(cells));
  }
  return table.render(kWidth);
}

std::string every_value(const Page& page) {
  TextTable table({{"kernel", Align::kLeft, true}, {"in samples"}, {"counter", Align::kLeft}, {"value"}});
  for (const UnmixedClass& c : page.summary.counters.unmixed) {
    std::string name = short_kernel_name(c.name), time = time_cell(c.time_ns);
    for (const CounterValue& value : c.values) {
      table.add({std::move(name), std::move(time), value.counter, with_error(value)});
      name.clear(), time.clear();  // once for all of its counters
    }
  }
  return table.render(kWidth);
}

std::string place_text(const StallPlace& place) {
  if (place.file.empty()) return fmt::format("+{:#x}", place.pc_offset);
  return place.line ? fmt::format("{}:{}", place.file, *place.line) : place.file;
}

std::string reasons_text(const KernelStalls& kernel, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(kernel.reasons.size(), most); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", kernel.reasons[i].reason,
                       base::human_percent(kernel.reasons[i].share));
  return out;
}

std::string reasons_table(const Page& page) {
  const auto& all = page.summary.counters.stalls;
  TextTable table({{"kernel", Align::kLeft, true}, {"samples"}, {"share %"}, {"its warps waited for", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(all.size(), hardware_rows(page)); ++i) {
    table.add({short_kernel_name(all[i].kernel), std::to_string(all[i].samples), percent_cell(all[i].share),
               cut_off(reasons_text(all[i], kMostReasons), 44)});
  }
  return table.render(kWidth) + rows_left(page, all.size(), "kernels");
}

// The places of all kernels, most samples first.
std::string places_table(const Page& page) {
  std::vector<const StallPlace*> places;
  for (const KernelStalls& kernel : page.summary.counters.stalls)
    for (const StallPlace& place : kernel.places) places.push_back(&place);
  if (places.empty()) return "";
  std::stable_sort(places.begin(), places.end(),
                   [](const StallPlace* a, const StallPlace* b) { return a->samples > b->samples; });
  TextTable table({{"kernel", Align::kLeft, true},
                   {"place", Align::kLeft, true},
                   {"reason", Align::kLeft},
                   {"samples"},
                   {"kernel %"}});
  for (std::size_t i = 0; i < std::min(places.size(), hardware_rows(page)); ++i) {
    table.add({short_kernel_name(places[i]->kernel), place_text(*places[i]), places[i]->reason,
               std::to_string(places[i]->samples), percent_cell(places[i]->share)});
  }
  return "\n" + table.render(kWidth) + rows_left(page, places.size(), "places");
}

}  // namespace

std::string unmixed_table(const Page& page) {
  const analyze::Counters& c = page.summary.counters;
  if (c.unmixed.empty()) return c.unmixed_why.empty() ? "" : wrapped("Kernels not told apart: " + c.unmixed_why + ".");
  return "\n" + (page.counters ? every_value(page) : few_columns(page)) + rows_left(page, c.unmixed.size(), "kernels") +
         wrapped(
             "Told apart in samples of the whole device, by which kernels ran in each; ±: the error of that. Rates "
             "are those while the kernel runs.");
}

std::string occupancy_table(const Page& page) {
  const auto& all = page.summary.counters.occupancy;
  if (all.empty()) return "";
  TextTable table({{"kernel", Align::kLeft, true}, {"achieved %"}, {"possible %"}, {"limited by", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(all.size(), hardware_rows(page)); ++i) {
    table.add({short_kernel_name(all[i].kernel), percent_cell(all[i].achieved), percent_cell(all[i].theoretical),
               all[i].limiter.empty() ? "-" : all[i].limiter});
  }
  return "\n" + table.render(kWidth) + rows_left(page, all.size(), "kernels") +
         wrapped("Occupancy, of the warps that a multiprocessor can hold: as counted, and as the launch allows.");
}

std::string stall_tables(const Page& page) {
  const analyze::Counters& c = page.summary.counters;
  if (c.stalls.empty() && c.stall_samples == 0) return "";
  std::string out = "\n";
  if (!c.stalls.empty()) out += reasons_table(page) + places_table(page);
  const double unknown = c.stall_samples > 0 ? double(c.stall_unknown) / double(c.stall_samples) : 0;
  return out + wrapped(fmt::format("Warps were looked at {} times; {} of it in code that is not known. share %: of all "
                                   "samples; of reasons and kernel %: of the kernel's samples. +0x…: bytes from the "
                                   "kernel's begin.",
                                   c.stall_samples, base::human_percent(unknown)));
}

}  // namespace llmprof::report
