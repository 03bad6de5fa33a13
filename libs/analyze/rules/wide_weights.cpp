// Weights in a wider type than needed.

#include "analyze/rules/tools.h"

namespace llmprof::analyze::wide_weights {
namespace {

constexpr double kWeightBound = 0.3;  // of its floor: slower products wait for something else than their weights
constexpr double kLeastGain = 0.02;   // of the stage

struct Narrower {
  std::string type;          // "bfloat16"
  std::string peak_type;     // whose arithmetic then counts
  double bytes = 0;          // of one value
  bool whole_model = false;  // activations and cache get narrower too
};

std::optional<Narrower> narrower_than(double bytes) {
  if (bytes >= 4) return Narrower{"bfloat16", "bfloat16", 2, true};
  if (bytes >= 2) return Narrower{"8-bit weights (fp8 or int8)", "bfloat16", 1, false};
  return std::nullopt;
}

std::vector<std::string> advice_for(const Narrower& to) {
  if (to.whole_model)
    return {
        "Load the model in bfloat16<torch> (torch_dtype=torch.bfloat16)</torch>, float16 on GPUs before Ampere: "
        "decoders lose no quality that tests show.",
        "8-bit or 4-bit weights save more, but need a check of the quality."};
  return {
      "Quantise the weights to fp8 or int8: half the bytes. Quality depends on model and method: check it on your "
      "task.",
      "4-bit weights (AWQ, GPTQ) save three quarters of the bytes, at more risk for quality."};
}

// Time of one product when its weights get narrower: the same share of the floor is reached.
double saved_ns(const RuleInput& run, const WeightRead& read, const Narrower& to, double from_bytes) {
  const double bandwidth = *run.summary.peak_bandwidth;
  const double peak = run.facts.peak(to.peak_type, run.summary.peak_flops.value_or(0));
  const double bytes = to.whole_model ? read.bytes * to.bytes / from_bytes
                                      : read.bytes - read.weight_bytes * (1 - to.bytes / from_bytes);
  const double now =
      std::max(read.bytes / bandwidth, run.summary.peak_flops ? read.flops / *run.summary.peak_flops : 0);
  const double flops_time = peak > 0 ? read.flops / peak : 0;
  if (flops_time > bytes / bandwidth) return 0;  // not its weights' bytes, but arithmetic
  return read.time_ns * (1 - std::min(1.0, std::max(bytes / bandwidth, flops_time) / now));
}

struct Saving {
  double ns = 0, time_ns = 0, others_ns = 0;  // in products that read weights; their time; the other kernels' time
  double bytes = 0, weight_bytes = 0;
};

Saving saving_of(const RuleInput& run, const StageView& view, const Narrower& to, double from_bytes) {
  Saving out;
  for (const WeightRead& read : weight_reads(run, view)) {
    out.weight_bytes += read.weight_bytes;
    if (read.of_floor < kWeightBound) continue;
    out.ns += saved_ns(run, read, to, from_bytes);
    out.time_ns += read.time_ns;
  }
  out.others_ns = std::max(0.0, view.busy_ns() - out.time_ns);
  return out;
}

std::optional<Finding> finding_of(const RuleInput& run, const StageView& view) {
  const ModelShape& model = run.facts.model;
  const std::optional<Narrower> to = narrower_than(model.weight_bytes_each);
  if (!to) return std::nullopt;
  const Saving saving = saving_of(run, view, *to, model.weight_bytes_each);
  const double factor = 1 - to->bytes / model.weight_bytes_each;
  // The rest of the model's values get narrower as well: its kernels may save as much, or, if they wait for
  // launches, nothing.
  const double others = to->whole_model ? saving.others_ns * factor : 0;
  if (saving.ns < kLeastGain * view.total_ns && !view.held_by_launches()) return std::nullopt;
  if (saving.ns <= 0 || (view.held_by_launches() && !to->whole_model)) return std::nullopt;
  const std::string& stage = view.stage->name;
  Finding out{.stage = stage};
  out.title = fmt::format("{} reads {} of {} weights per step", stage, human_bytes(saving.weight_bytes / view.steps),
                          model.weight_type);
  out.text = fmt::format("In {} it would be {}: the products that wait for them take {}.", to->type,
                         human_bytes(saving.weight_bytes / view.steps * (1 - factor)), view.per_step(saving.time_ns));
  out.lever = to->whole_model ? "bfloat16 weights" : "8-bit weights (if the quality allows)";
  if (view.held_by_launches()) {
    out.text += hidden_by_launches(view);
  } else {
    out.set_gain(
        saving.ns + others, view.total_ns,
        fmt::format("products that read weights: {} less of {}, at the bandwidth they reach now{}",
                    view.per_step(saving.ns), view.per_step(saving.time_ns),
                    others > 0 ? fmt::format("; other kernels, whose values get half as wide too: at most {} of {}",
                                             view.per_step(others), view.per_step(saving.others_ns))
                               : ""),
        false);
  }
  out.add_number("weight_bytes_per_step", "weights that products read", saving.weight_bytes / view.steps, "B",
                 "analytic",
                 "SELECT DISTINCT op, weight_bytes FROM model_op WHERE weight_bytes > 0 ORDER BY weight_bytes DESC");
  out.add_number("model.bytes_per_weight", model.weight_type, model.weight_bytes_each, "B", "analytic");
  out.add_time("weight_time", "kernel time of the products that wait for weights", saving.time_ns, "measured");
  out.add_time("weight_saving", "of that, saved by narrower weights", saving.ns, "analytic");
  add_counted_bytes(run.summary, out);
  out.advice = advice_for(*to);
  out.next = "llmprof diff RUN RUN_WITH_NARROWER_WEIGHTS";
  return out;
}

std::optional<Finding> from_totals(const TotalsFacts& totals) {
  const MeasuredFindings& f = totals.findings;
  const std::optional<Narrower> to = narrower_than(f.type_bytes);
  if (!to || !f.passes || !f.linear_ns || f.linear_bound != "memory") return std::nullopt;
  const double time = *f.linear_ns * static_cast<double>(*f.passes);
  const double saved = time * (1 - to->bytes / f.type_bytes);
  Finding out;
  out.title = fmt::format("Every token reads {} of {} weights", human_bytes(f.linear_bytes), f.stored_type);
  out.text = fmt::format("The linear layers are bound by that: in {} they would read half.",
                         to->whole_model ? "float16" : to->type);
  out.lever = to->whole_model ? "16-bit weights" : "8-bit weights (if the quality allows)";
  out.set_gain(
      saved, f.cpu_total_ns.value_or(f.device_total_ns.value_or(time)),
      fmt::format("linear layers {}; half the bytes at the same bandwidth {}", human_ns(time), human_ns(time - saved)));
  out.add_number("totals.bytes_per_parameter", "memory taken by the weights / parameters", f.bytes_per_parameter, "B",
                 "inferred", "", "the memory that the weights take is not in the run; their type is the config's");
  out.add_number("totals.linear_bytes", "weights of the linear layers, read by each pass", f.linear_bytes, "B",
                 "analytic");
  out.add_time("totals.linear_time", "linear layers on the device, all passes", time, "measured");
  out.advice = advice_for(*to);
  return out;
}

}  // namespace

RuleResult check(const RuleInput& run) {
  if (run.facts.totals) {
    const std::optional<Finding> found = from_totals(*run.facts.totals);
    return found ? RuleResult{.findings = {*found}}
                 : not_found("the linear layers are not known to be bound by the bytes of their weights");
  }
  if (!run.facts.model.known) return not_applicable("the model is unknown");
  if (!run.summary.peak_bandwidth) return not_applicable("the device's bandwidth is unknown");
  RuleResult out;
  for (const StageView& view : steady_stages(run.summary)) {
    if (view.stage->name != "decode" && view.stage->name != "mixed" && view.stage->name != "prefill") continue;
    if (std::optional<Finding> found = finding_of(run, view)) out.findings.push_back(std::move(*found));
  }
  out.why = run.facts.model.weight_bytes_each < 2
                ? fmt::format("weights are stored in {:.3g} bytes each already", run.facts.model.weight_bytes_each)
                : fmt::format("no stage waits for its {} weights", run.facts.model.weight_type);
  return out;
}

}  // namespace llmprof::analyze::wide_weights
