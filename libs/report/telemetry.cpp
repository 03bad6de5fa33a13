#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "report/layout.h"

namespace llmprof::report {
namespace {

using analyze::DeviceTelemetry;
using analyze::StageTelemetry;
using analyze::Telemetry;

constexpr double kWorthSaying = 0.01;  // share of the readings that a limit must have

std::vector<const StageTelemetry*> shown_stages(const Page& page) {
  std::vector<const StageTelemetry*> stages;
  for (const StageTelemetry& stage : page.summary.telemetry.stages) {
    if (shown(page, stage.stage)) stages.push_back(&stage);
  }
  return stages;
}

std::string power_line(const DeviceTelemetry& device, bool unicode) {
  if (device.power_over_time_w.empty()) return "";
  std::vector<std::int64_t> milliwatts;
  for (const double watts : device.power_over_time_w) milliwatts.push_back(std::llround(watts * 1e3));
  const auto [low, high] = std::minmax_element(milliwatts.begin(), milliwatts.end());
  constexpr std::size_t kPowerWords = 26;  // beside the curve
  return fmt::format("  power  {}  {} to {} W\n", sparkline(milliwatts, line_width() - kPowerWords, unicode),
                     base::three_digits(static_cast<double>(*low) * 1e-3),
                     base::three_digits(static_cast<double>(*high) * 1e-3));
}

std::string device_lines(const Telemetry& telemetry, bool unicode) {
  std::string out;
  for (const DeviceTelemetry& device : telemetry.devices) {
    std::string line = device.name + (device.used ? "" : " (not used by this program)");
    if (device.energy_j) line += fmt::format(": {} J in all", base::three_digits(*device.energy_j));
    if (device.power_w) line += fmt::format(", mean {} W", base::three_digits(*device.power_w));
    if (device.highest_power_w) line += fmt::format(", highest {} W", base::three_digits(*device.highest_power_w));
    if (device.power_limit_w) line += fmt::format(" of {:.0f} W allowed", *device.power_limit_w);
    if (device.readings_per_s) {
      line += fmt::format("; read {} times a second", base::three_digits(*device.readings_per_s));
    }
    out += wrapped(line + ".") + power_line(device, unicode);
  }
  if (telemetry.sampler_core_share) {
    out += wrapped(fmt::format("Reading took {} of one core, in a process of its own.",
                               base::human_percent(*telemetry.sampler_core_share)));
  }
  return out;
}

std::string unknowns(const std::vector<const StageTelemetry*>& stages) {
  std::string out;
  for (const StageTelemetry* s : stages) {
    if (!s->energy_why.empty()) out += wrapped(fmt::format("{}: energy unknown: {}.", s->stage, s->energy_why));
    if (!s->clock_why.empty()) out += wrapped(fmt::format("{}: clocks unknown: {}.", s->stage, s->clock_why));
    if (!s->activity_why.empty() && s->clock_why.empty()) {
      out += wrapped(fmt::format("{}: activity unknown: {}.", s->stage, s->activity_why));
    }
  }
  return out;
}

std::optional<double> reference_clock(const Telemetry& telemetry) {
  for (const DeviceTelemetry& device : telemetry.devices) {
    if (device.used && device.reference_clock_mhz) return device.reference_clock_mhz;
  }
  return std::nullopt;
}

// What makes the times of a stage those of a slower device.
std::string confounders(const Telemetry& telemetry, const StageTelemetry& stage) {
  std::string limits;
  for (const analyze::ClockLimitShare& limit : stage.clock_limits) {
    if (limit.share < kWorthSaying) continue;
    limits += fmt::format("{}{} in {}", limits.empty() ? "" : ", ", limit.why, base::human_percent(limit.share));
  }
  const bool slow = stage.slow_clock_share.value_or(0) >= kWorthSaying;
  if (!slow && limits.empty()) return "";
  std::string line = fmt::format("{}: ", stage.stage);
  if (slow) {
    line += fmt::format("the clock was below {:.0f} % of {:.0f} MHz in {} of ", 100 * analyze::kSlowClock,
                        reference_clock(telemetry).value_or(0), base::human_percent(*stage.slow_clock_share));
    line += counted(stage.clock_readings, "reading");
  }
  if (!limits.empty()) line += (slow ? "; held back by: " : "the clock was held back: ") + limits;
  return line + ". Its times are those of a slower device.";
}

std::string notes(const std::vector<const StageTelemetry*>& stages) {
  const auto any = [&](auto what) { return std::ranges::any_of(stages, what); };
  std::string out;
  if (any([](const StageTelemetry* s) { return s->energy_source == "counter"; })) {
    out += wrapped(
        "energy: by the device's counter, over the stage's steps; of the whole device, whoever used it. ±: from the "
        "edges "
        "of the steps, as the counter moves in steps of time; not the sensor's own error.");
  } else if (any([](const StageTelemetry* s) { return s->energy_source == "power"; })) {
    out += wrapped("energy: power added up over the stage's steps, as the device has no counter. ±: from their edges.");
  }
  if (any([](const StageTelemetry* s) { return s->sm_active.has_value(); })) {
    out += wrapped(
        "SM %, tensor %, DRAM %: GPM, of the possible, between readings that lie in the stage. Clocks and temperature: "
        "NVML, mean of the readings in it.");
  }
  return out;
}

// A trace of another tool may bring a few readings, such as of memory, and none of what this section is about.
bool says_nothing(const Telemetry& telemetry) {
  for (const DeviceTelemetry& device : telemetry.devices) {
    if (device.energy_j || device.power_w) return false;
  }
  for (const StageTelemetry& stage : telemetry.stages) {
    if (stage.sm_clock_mhz || stage.sm_active || stage.temperature_c) return false;
  }
  return true;
}

}  // namespace

std::string telemetry_section(const Page& page, const Style& style, const TableText& tables) {
  const Telemetry& telemetry = page.summary.telemetry;
  if (telemetry.devices.empty() || (is_imported(page) && says_nothing(telemetry))) return "";
  std::string out = style.heading("Power, energy, clocks") + device_lines(telemetry, page.unicode);
  const std::vector<const StageTelemetry*> stages = shown_stages(page);
  if (stages.empty()) return out;
  out += tables.rows("telemetry.stages[]", tables.report()["telemetry"]["stages"], SIZE_MAX);
  for (const StageTelemetry* stage : stages) {
    const std::string line = confounders(telemetry, *stage);
    if (!line.empty()) out += style.warning(wrapped(line));
  }
  return out + unknowns(stages) + notes(stages);
}

}  // namespace llmprof::report
