// Memory-bound stages: near the floor only fewer bytes help, far from it kernels do.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::bandwidth_floor {
namespace {

constexpr double kNear = 0.7;        // of the bandwidth, while kernels execute
constexpr double kAchievable = 0.9;  // of the peak: what the best kernels for large matrices reach
constexpr double kLeastGain = 0.02;  // of the stage

std::string peak_text(const Summary& summary) {
  std::string text = human_rate(summary.peak_bandwidth.value_or(0), "B/s");
  if (summary.devices.empty()) return text;
  const DeviceCard& device = summary.devices.front();
  if (!device.peak_bandwidth_name.empty()) text += " " + device.peak_bandwidth_name;
  return text + ", " + device.peak_bandwidth_source;
}

// The fastest product of the run that is large enough not to be latency: what is possible here.
double best_rate(const std::vector<WeightRead>& reads) {
  double most = 0, best = 0;
  for (const WeightRead& read : reads) most = std::max(most, read.bytes);
  for (const WeightRead& read : reads) {
    if (read.bytes >= 0.1 * most) best = std::max(best, read.of_floor);
  }
  return std::clamp(best, kNear, kAchievable);
}

Finding near_floor(const RuleInput& run, const StageView& view, double reached) {
  const std::string& stage = view.stage->name;
  Finding out{.stage = stage};
  out.title = fmt::format("{} moves its bytes at {} of the bandwidth: only moving fewer bytes helps", stage,
                          human_percent(reached));
  out.text = fmt::format("Better kernels for the same bytes are worth {} of its kernels' time at most.",
                         human_percent(1 - std::min(1.0, reached)));
  out.add_fraction("kernel_bandwidth", "bytes that must move / time with kernels executing", reached,
                   peak_text(run.summary), "measured");
  add_counted_bytes(run.summary, out);
  if (!makes_tokens(stage)) {
    out.advice = {"Move fewer bytes: narrower types."};
    return out;
  }
  out.advice = {"Move fewer bytes: narrower weights, a narrower or smaller KV cache.",
                "Share the weights' bytes among more sequences: a larger batch, or speculative decoding."};
  return out;
}

Finding far_from_floor(const RuleInput& run, const StageView& view, double reached,
                       const std::vector<WeightRead>& reads) {
  const std::string& stage = view.stage->name;
  const double busy = view.busy_ns(), floor = view.stage->efficiency.floor_ns.value_or(0);
  const double rate = best_rate(reads);
  double gain = 0, time = 0;
  for (const WeightRead& read : reads) {
    time += read.time_ns;
    gain += std::max(0.0, read.time_ns * (1 - read.of_floor / rate));
  }
  Finding out{.stage = stage};
  out.title = fmt::format("{}'s kernels move bytes at {} of the bandwidth", stage, human_percent(reached));
  out.text = fmt::format("They take {}; moving the bytes takes {} at peak bandwidth.", view.per_step(busy),
                         view.per_step(floor));
  out.lever = "better kernels for its matrix products";
  if (reads.empty()) gain = std::max(0.0, busy - floor);
  const std::string how =
      reads.empty()
          ? fmt::format("kernels {}, less the floor {}", view.per_step(busy), view.per_step(floor))
          : fmt::format(
                "products that read weights take {}; each at {} of the speed that its bytes and FLOPs permit ({}) they "
                "would take {}",
                view.per_step(time), human_percent(rate),
                rate == kAchievable || rate == kNear ? "what good kernels reach" : "what the best of them reaches here",
                view.per_step(time - gain));
  if (view.held_by_launches()) {
    out.text += hidden_by_launches(view);
  } else if (gain >= kLeastGain * view.total_ns) {
    out.set_gain(gain, view.total_ns, how);
  }
  out.add_fraction("kernel_bandwidth", "bytes that must move / time with kernels executing", reached,
                   peak_text(run.summary), "measured");
  for (const WeightRead& read : reads) {
    if (out.evidence.size() > 4) break;
    out.add_fraction(
        stage + "." + read.op + ".bandwidth", fmt::format("{} of kernel time", human_ns(read.time_ns)), read.bandwidth,
        peak_text(run.summary), "measured",
        fmt::format(
            "SELECT name, executions, time_ns, source FROM work WHERE stage = {} AND op = {} ORDER BY time_ns DESC",
            sql_literal(stage), sql_literal(read.op)));
  }
  add_counted_bytes(run.summary, out);
  if (stage == "optimizer") {
    out.lever = "a fused optimizer";
    out.advice = {"Update all parameters with one kernel, or a few (a fused or multi-tensor optimizer).",
                  "Keep less state per parameter: moments in a narrower type, or fewer of them."};
    return out;
  }
  out.advice = {
      "Let one product do the work of several that read the same input (q, k, v; gate, up): larger matrices reach more "
      "of the bandwidth.",
      "Try kernels made for few rows, of another library<torch> (torch.compile with max-autotune)</torch>.",
      "What no product explains is in other kernels: see unfused_chains and the waterfall."};
  out.next = "llmprof bench gemm --help";
  return out;
}

Finding from_totals(const TotalsFacts& totals) {
  const MeasuredFindings& f = totals.findings;
  const double reached = *f.linear_share_of_bandwidth;
  Finding out;
  const std::string rates =
      fmt::format("{} of {}", human_rate(*f.linear_bytes_per_s, "B/s"), human_rate(f.bandwidth->per_second, "B/s"));
  out.add_fraction("totals.linear_bandwidth", "weights of the linear layers / their time on the device", reached,
                   fmt::format("{}, {}", human_rate(f.bandwidth->per_second, "B/s"), f.bandwidth->source),
                   f.type_inferred ? "inferred" : "analytic");
  out.add_time("totals.linear_per_pass", "linear layers of one pass, on the device", f.linear_ns.value_or(0),
               "measured");
  if (reached >= kNear) {
    out.title = fmt::format("Decode's linear layers reach {} of the bandwidth: only moving fewer bytes helps",
                            human_percent(reached));
    out.text = fmt::format(
        "They read their weights at {}: better kernels for the same bytes are worth {} of their time at most.", rates,
        human_percent(1 - std::min(1.0, reached)));
    out.advice = {"Move fewer bytes: narrower weights.", "Share them among more sequences: a larger batch."};
    return out;
  }
  out.title = fmt::format("The linear layers read their weights at {} of the bandwidth", human_percent(reached));
  out.text = fmt::format("That is {}: kernels made for few rows would be faster.", rates);
  const double passes = f.passes.value_or(1);
  const double time = f.linear_ns.value_or(0) * passes;
  out.set_gain(time * (1 - reached), f.cpu_total_ns.value_or(time),
               fmt::format("{} in linear layers, at the full bandwidth {}", human_ns(time), human_ns(time * reached)));
  out.advice = {"Try kernels made for few rows, of another BLAS<torch> (torch.compile with max-autotune)</torch>."};
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.totals) {
    const MeasuredFindings& f = run.facts.totals->findings;
    if (!f.linear_share_of_bandwidth || !f.bandwidth)
      return not_applicable("how fast weights were read is unknown: " +
                            (f.floor_why.empty() ? "passes could not be counted" : f.floor_why));
    if (f.linear_bound != "memory") return not_found("the linear layers are bound by arithmetic");
    return {.findings = {from_totals(*run.facts.totals)}};
  }
  RuleResult out;
  for (const StageView& view : steady_stages(run.summary)) {
    const Efficiency& by = view.stage->efficiency;
    if (by.bound != "memory" || !by.bytes || !run.summary.peak_bandwidth || view.busy_ns() <= 0) continue;
    // Steps of several threads share the bandwidth: together they move at least what the stage does in wall time.
    const double reached = std::max(*by.bytes / view.busy_ns() * 1e9 / *run.summary.peak_bandwidth, by.mbu.value_or(0));
    out.findings.push_back(reached >= kNear ? near_floor(run, view, reached)
                                            : far_from_floor(run, view, reached, weight_reads(run, view)));
  }
  if (out.findings.empty())
    return not_applicable(run.summary.model.empty() ? "the model is unknown, and with it the bytes that must move"
                                                    : "no stage that repeats is known to be bound by memory");
  return out;
}

}  // namespace llmprof::analyze::bandwidth_floor
