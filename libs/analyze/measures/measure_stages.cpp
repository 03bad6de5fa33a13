// Measures of a stage: what each is, and where its value comes from.

#include <fmt/format.h>

#include "analyze/measures/measure_values.h"
#include "base/human.h"

namespace llmprof::analyze {

namespace {

constexpr double kSeconds = 1e-9;
using From = const MeasureFrom&;

std::string or_else(const std::string& why, std::string_view instead) {
  return why.empty() ? std::string(instead) : why;
}

// ---- times -----------------------------------------------------------------------------------------------------

MeasureValue share_of_wall(From from) {
  const std::int64_t wall = from.summary.coverage.wall_ns;
  if (wall <= 0) return {std::nullopt, "", "the run has no wall time"};
  return {from.stage->share, base::human_ns(static_cast<double>(wall)) + " from the first to the last event", ""};
}

std::string no_tokens(From from) { return or_else(from.summary.job.why, "its steps do not say their tokens"); }

MeasureValue tokens(From from) {
  if (from.stage->tokens <= 0) return {std::nullopt, "", no_tokens(from)};
  return MeasureValue::count(from.stage->tokens);
}

MeasureValue step_mean(From from) {
  if (from.stage->steps <= 0) return {std::nullopt, "", "it has no steps"};
  const double time_ns = static_cast<double>(from.stage->time_ns) * from.stage->ranks_at_once;
  return {time_ns / static_cast<double>(from.stage->steps) * kSeconds, "", ""};
}

constexpr const char* kNoSteps = "it has no steps";

constexpr const char* kNoTpot = "no two decode steps of as many sequences follow each other on a thread";

// ---- the device ------------------------------------------------------------------------------------------------

MeasureValue of_device_time(From from, std::int64_t ns) {
  const std::int64_t all = from.stage->device_busy_ns + from.stage->idle_ns;
  if (all <= 0) return {std::nullopt, "", "no device executed anything in the run"};
  return {static_cast<double>(ns) / static_cast<double>(all),
          fmt::format("{} of {} {}", base::human_ns(static_cast<double>(all)), from.summary.busy_devices,
                      from.summary.busy_devices == 1 ? "device" : "devices"),
          ""};
}

MeasureValue per_step(From from, double amount) {
  if (from.stage->steps <= 0) return {std::nullopt, "", kNoSteps};
  return {amount / static_cast<double>(from.stage->steps), "", ""};
}

MeasureValue estimated(From from) {
  if (from.stage->kernel_ns <= 0) return {std::nullopt, "", "it has no kernels"};
  return {static_cast<double>(from.stage->estimated_ns) / static_cast<double>(from.stage->kernel_ns),
          base::human_ns(static_cast<double>(from.stage->kernel_ns)) + " of kernels", ""};
}

// ---- efficiency ------------------------------------------------------------------------------------------------

// "989 TFLOP/s bfloat16, spec"
std::string peak_text(const Summary& summary, double peak, const char* unit, bool bandwidth) {
  std::string text = base::human_rate(peak, unit);
  if (summary.devices.empty()) return text;
  const DeviceCard& device = summary.devices.front();
  if (!bandwidth && !device.type.empty()) text += " " + device.type;
  if (bandwidth && !device.peak_bandwidth_name.empty()) text += " " + device.peak_bandwidth_name;
  const std::string& source = bandwidth ? device.peak_bandwidth_source : device.peak_flops_source;
  if (!source.empty()) text += ", " + source;
  if (summary.busy_devices > 1) text += fmt::format(", {} devices together", summary.busy_devices);
  return text;
}

std::string efficiency_why(From from) {
  return or_else(from.stage->efficiency.why, or_else(from.summary.model_why, "the model or the peaks are not known"));
}

MeasureValue analytic(From from, const std::optional<double>& value, double scale = 1) {
  return known(value, scale, efficiency_why(from));
}

MeasureValue mfu(From from) {
  MeasureValue value = analytic(from, from.stage->efficiency.mfu);
  if (value.value) value.of = peak_text(from.summary, from.summary.peak_flops.value_or(0), "FLOP/s", false);
  return value;
}
MeasureValue mbu(From from) {
  MeasureValue value = analytic(from, from.stage->efficiency.mbu);
  if (value.value) value.of = peak_text(from.summary, from.summary.peak_bandwidth.value_or(0), "B/s", true);
  return value;
}
MeasureValue of_floor(From from) {
  MeasureValue value = analytic(from, from.stage->efficiency.of_floor);
  if (value.value) value.of = base::human_ns(static_cast<double>(from.stage->time_ns)) + " of the stage";
  return value;
}

// ---- the waterfall, per sample -----------------------------------------------------------------------------------

MeasureValue term(From from, std::string_view name) {
  if (from.waterfall == nullptr || from.waterfall->samples <= 0) return {std::nullopt, "", "it has no waterfall"};
  for (const WaterfallTerm& each : from.waterfall->terms) {
    if (each.name != name) continue;
    if (!each.ns) return {std::nullopt, "", or_else(each.why, "the waterfall does not know it")};
    return {from.waterfall->mean_ns(*each.ns) * kSeconds, "", ""};
  }
  return {std::nullopt, "", "its waterfall has no such term"};
}

// ---- telemetry -------------------------------------------------------------------------------------------------

constexpr const char* kNoTelemetry = "no device was read";

MeasureValue reading(From from, std::optional<double> StageTelemetry::*field, std::string StageTelemetry::*why,
                     double scale = 1) {
  if (from.telemetry == nullptr) return {std::nullopt, "", kNoTelemetry};
  return known(from.telemetry->*field, scale, or_else(from.telemetry->*why, "it was not read"));
}
using T = StageTelemetry;
MeasureValue joules_per_token(From from) {
  MeasureValue value = reading(from, &T::joules_per_token, &T::energy_why);
  if (!value.value && from.telemetry != nullptr && from.telemetry->energy_j) value.why = no_tokens(from);
  return value;
}

MeasureValue slow_clock(From from) {
  MeasureValue value = reading(from, &T::slow_clock_share, &T::clock_why);
  if (value.value) value.of = fmt::format("{} readings of the clock", from.telemetry->clock_readings);
  return value;
}

MeasureValue activity(From from, std::optional<double> StageTelemetry::*field) {
  MeasureValue value = reading(from, field, &T::activity_why);
  if (value.value) value.of = fmt::format("the device's time in {} readings", from.telemetry->activity_readings);
  return value;
}
MeasureValue sm_occupancy(From from) {
  MeasureValue value = activity(from, &T::sm_occupancy);
  if (value.value) value.of = fmt::format("the warps that fit, in {} readings", from.telemetry->activity_readings);
  return value;
}

constexpr auto kLower = Better::kLower;
constexpr auto kHigher = Better::kHigher;
constexpr auto kNeither = Better::kNeither;

// name, unit, source, better, meaning, formula; value; only of this stage
const MeasureRow kRows[] = {
    {{"time", "s", "measured", kLower, "wall time in the stage", "union of its step windows"},
     [](From from) { return MeasureValue::seconds(from.stage->time_ns); }},
    {{"share_of_wall", "1", "measured", kNeither, "how much of the run the stage takes", "time / run.wall"},
     share_of_wall},
    {{"steps", "", "counted", kNeither, "passes over the model", "steps of the stage"},
     [](From from) { return MeasureValue::count(from.stage->steps); }},
    {{"tokens", "", "counted", kNeither, "new tokens over all sequences",
      "sum of batch x tokens of its steps, of one rank of each copy of the model"},
     tokens},
    {{"tokens_per_s", "1/s", "measured", kHigher, "throughput of new tokens", "tokens / time"},
     [](From from) { return known(from.stage->tokens_per_s, 1, no_tokens(from)); }},
    {{"step_mean", "s", "measured", kLower, "mean time of a step", "time x ranks at once / steps"}, step_mean},
    {{"step_p50", "s", "measured", kLower, "median duration of a step",
      "from its turn until its range and its kernels are done, of prefill from its begin; quantile over steps"},
     [](From from) { return known(from.stage->step_p50_ns, kSeconds, kNoSteps); }},
    {{"step_p90", "s", "measured", kLower, "duration that 90 % of the steps do not exceed", "as step_p50"},
     [](From from) { return known(from.stage->step_p90_ns, kSeconds, kNoSteps); }},
    {{"step_p99", "s", "measured", kLower, "duration that 99 % of the steps do not exceed", "as step_p50"},
     [](From from) { return known(from.stage->step_p99_ns, kSeconds, kNoSteps); }},
    {{"ttft", "s", "measured", kLower, "time to the first token",
      "begin to end of a prefill step: the median of those in which the program does not warm up"},
     [](From from) { return known(from.stage->ttft_ns, kSeconds, "the run has no prefill step"); },
     "prefill"},
    {{"tpot_p50", "s", "measured", kLower, "median time per output token",
      "time from a decode step to the next of its series; quantile over these"},
     [](From from) { return known(from.stage->tpot_p50_ns, kSeconds, kNoTpot); },
     "decode"},
    {{"tpot_p90", "s", "measured", kLower, "time that 90 % of the output tokens do not exceed", "as tpot_p50"},
     [](From from) { return known(from.stage->tpot_p90_ns, kSeconds, kNoTpot); },
     "decode"},
    {{"tpot_p99", "s", "measured", kLower, "time that 99 % of the output tokens do not exceed", "as tpot_p50"},
     [](From from) { return known(from.stage->tpot_p99_ns, kSeconds, kNoTpot); },
     "decode"},
    {{"busy", "1", "measured", kHigher, "share of the time with a kernel executing",
      "union of kernel intervals in its windows / (time x devices of the job)"},
     [](From from) { return of_device_time(from, from.stage->device_busy_ns); }},
    {{"idle", "1", "measured", kLower, "share of the time without a kernel executing", "1 - busy"},
     [](From from) { return of_device_time(from, from.stage->idle_ns); }},
    {{"kernels_per_step", "", "counted", kLower, "kernels or BLAS calls of a step", "kernels / steps"},
     [](From from) { return per_step(from, static_cast<double>(from.stage->kernels)); }},
    {{"graphs_per_step", "", "counted", kNeither, "launches of CUDA graphs by a step", "graph launches / steps"},
     [](From from) { return per_step(from, static_cast<double>(from.stage->graph_launches)); }},
    {{"kernel_time", "s", "measured", kLower, "durations of its kernels, added up", "sum over kernels of its steps"},
     [](From from) { return MeasureValue::seconds(from.stage->kernel_ns); }},
    {{"kernel_time_per_step", "s", "measured", kLower, "durations of the kernels of a step", "kernel_time / steps"},
     [](From from) { return per_step(from, static_cast<double>(from.stage->kernel_ns) * kSeconds); }},
    {{"estimated", "1", "inferred", kNeither,
      "share of the kernel time in graph launches that were not recorded node by node",
      "estimated kernel time / kernel_time"},
     estimated},
    {{"unrecorded", "s", "measured", kNeither, "time of its steps that was not recorded", "gaps inside its windows"},
     [](From from) { return MeasureValue::seconds(from.stage->gap_ns); }},
    {{"mfu", "1", "analytic", kHigher, "model FLOP/s, of the peak",
      "flops / time / peak FLOP/s of all devices of the job"},
     mfu},
    {{"mbu", "1", "analytic", kHigher, "bytes that must move per second, of the peak bandwidth",
      "bytes / time / peak bandwidth of all devices of the job"},
     mbu},
    {{"flops", "FLOP", "analytic", kNeither, "FLOPs of the model in all steps",
      "the cost of each step: of a rank's part of the model"},
     [](From from) { return analytic(from, from.stage->efficiency.flops); }},
    {{"flops_shapes", "FLOP", "counted", kNeither, "FLOPs of its matrix products", "2 m n k of each BLAS call"},
     [](From from) { return known(from.stage->efficiency.flops_shapes, 1, "no matrix product was seen in it"); }},
    {{"bytes", "B", "analytic", kLower, "bytes that must move in all steps",
      "weights, KV cache, activations that cannot stay on chip, of each step"},
     [](From from) { return analytic(from, from.stage->efficiency.bytes); }},
    {{"flops_per_s", "FLOP/s", "analytic", kHigher, "model FLOPs per second", "flops / time"},
     [](From from) { return analytic(from, from.stage->efficiency.flops_per_s); }},
    {{"bytes_per_s", "B/s", "analytic", kHigher, "bytes that must move per second", "bytes / time"},
     [](From from) { return analytic(from, from.stage->efficiency.bytes_per_s); }},
    {{"intensity", "FLOP/B", "analytic", kNeither, "arithmetic intensity", "flops / bytes"},
     [](From from) { return analytic(from, from.stage->efficiency.intensity); }},
    {{"floor", "s", "analytic", kLower, "minimum time at peak rates",
      "the longer of FLOPs / peak and bytes / bandwidth of each step, peaks of all devices of the job, added up"},
     [](From from) { return analytic(from, from.stage->efficiency.floor_ns, kSeconds); }},
    {{"of_floor", "1", "analytic", kHigher, "share of the possible speed that was reached", "floor / time"}, of_floor},
    {{"between_steps", "s", "measured", kLower, "from the end of a step to the begin of the next, nothing executing",
      "waterfall term, mean of its samples"},
     [](From from) { return term(from, "between_steps"); }},
    {{"gaps", "s", "measured", kLower, "GPU idle, waiting for CPU: nothing is launched",
      "waterfall term, mean of its samples"},
     [](From from) { return term(from, "gaps"); }},
    {{"queued", "s", "measured", kLower, "GPU idle although work is queued", "waterfall term, mean of its samples"},
     [](From from) { return term(from, "queued"); }},
    {{"waits", "s", "measured", kLower, "GPU idle while the CPU waits for it", "waterfall term, mean of its samples"},
     [](From from) { return term(from, "waits"); }},
    {{"copies", "s", "measured", kLower, "a copy executes and no kernel", "waterfall term, mean of its samples"},
     [](From from) { return term(from, "copies"); }},
    {{"energy", "J", "measured", kLower, "energy of the devices used", "energy counter, or power x time"},
     [](From from) { return reading(from, &T::energy_j, &T::energy_why); }},
    {{"joules_per_token", "J", "measured", kLower, "energy of a token", "energy / tokens"}, joules_per_token},
    {{"power", "W", "measured", kNeither, "mean power of the devices used", "energy / time"},
     [](From from) { return reading(from, &T::power_w, &T::energy_why); }},
    {{"sm_clock", "Hz", "measured", kHigher, "clock of the multiprocessors", "mean of the readings in its windows"},
     [](From from) { return reading(from, &T::sm_clock_mhz, &T::clock_why, 1e6); }},
    {{"memory_clock", "Hz", "measured", kHigher, "clock of the memory", "mean of the readings in its windows"},
     [](From from) { return reading(from, &T::memory_clock_mhz, &T::clock_why, 1e6); }},
    {{"slow_clock", "1", "measured", kLower, "share of the readings with a clock below 90 % of the highest",
      "slow readings / readings in its windows"},
     slow_clock},
    {{"temperature", "degC", "measured", kLower, "temperature of the devices used",
      "mean of the readings in its windows"},
     [](From from) { return reading(from, &T::temperature_c, &T::clock_why); }},
    {{"sm_active", "1", "measured", kHigher, "multiprocessors with a warp, over time", "GPM, mean in its windows"},
     [](From from) { return activity(from, &T::sm_active); }},
    {{"sm_occupancy", "1", "measured", kNeither, "warps on the multiprocessors, of those that fit",
      "GPM, mean in its windows"},
     sm_occupancy},
    {{"tensor_active", "1", "measured", kHigher, "tensor cores at work, over time", "GPM, mean in its windows"},
     [](From from) { return activity(from, &T::tensor_active); }},
    {{"dram_active", "1", "measured", kHigher, "memory at work, over time", "GPM, mean in its windows"},
     [](From from) { return activity(from, &T::dram_active); }},
};

}  // namespace

std::span<const MeasureRow> stage_measure_rows() { return kRows; }

}  // namespace llmprof::analyze
