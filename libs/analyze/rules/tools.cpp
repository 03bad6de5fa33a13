#include "analyze/rules/tools.h"

#include <array>
#include <functional>

#include "analyze/rules/rule.h"
#include "base/kernel_name.h"

namespace llmprof::analyze {

void Finding::set_gain(double ns, double of_ns, std::string how, bool upper_bound) {
  gain = Gain{.ns = ns, .of_ns = of_ns, .upper_bound = upper_bound, .how = std::move(how)};
}

void Finding::add_number(std::string name, std::string what, std::optional<double> value, std::string unit,
                         std::string source, std::string rows, std::string unknown) {
  if (!base::contains(name, ".")) name = stage + "." + name;
  if (value) unknown.clear();
  evidence.push_back({.name = std::move(name),
                      .what = std::move(what),
                      .value = value,
                      .unit = std::move(unit),
                      .source = std::move(source),
                      .rows = std::move(rows),
                      .why = std::move(unknown)});
}

void Finding::add_fraction(std::string name, std::string what, std::optional<double> value, std::string of,
                           std::string source, std::string rows, std::string unknown) {
  add_number(std::move(name), std::move(what), value, "1", std::move(source), std::move(rows), std::move(unknown));
  evidence.back().of = std::move(of);
}

void Finding::add_time(std::string name, std::string what, double ns, std::string source, std::string rows) {
  add_number(std::move(name), std::move(what), ns * 1e-9, "s", std::move(source), std::move(rows));
}

void RuleResult::add_why(std::string_view stage, std::string_view text) {
  why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", stage, text);
}

RuleResult not_found(std::string why) { return {.why = std::move(why)}; }

RuleResult not_applicable(std::string why) { return {.applicable = false, .why = std::move(why)}; }

void add_counted_bytes(const Summary& summary, Finding& finding) {
  for (const CountedStage& counted : summary.counters.stages) {
    if (counted.stage != finding.stage || !counted.work.dram_bytes) continue;
    finding.add_number("dram_bytes_per_step", "bytes that the device's memory moved in a step", counted.work.dram_bytes,
                       "B", "counted");
    if (counted.redundancy)
      finding.add_number("redundancy", "of these, for each byte that must move", counted.redundancy, "", "counted");
  }
}

const Stage* stage_named(const Summary& summary, std::string_view name) {
  return find_by(summary.stages, name, &Stage::name);
}

bool is_preparation(std::string_view stage) { return stage == "load" || stage == "warm-up"; }

std::optional<double> busy_share(const Stage& stage) {
  const double total = stage.device_busy_ns + stage.idle_ns;
  return total > 0 ? std::optional(static_cast<double>(stage.device_busy_ns) / total) : std::nullopt;
}

std::string count_of(double count, std::string_view plural) {
  const double shown = count < 10 ? std::round(count * 10) / 10 : std::round(count);
  return fmt::format("{} {}", shown, shown == 1 ? base::singular(plural) : std::string(plural));
}

std::string shape_text(const ProductKernel& product) {
  return fmt::format("[{}, {}] x [{}, {}]", product.m, product.k, product.k, product.n);
}

std::string product_rows(const ProductKernel& product) {
  return fmt::format(
      "SELECT k.* FROM kernel k JOIN gemm g ON g.id = k.gemm_id WHERE g.m = {} AND g.n = {} AND g.k = {} ORDER BY "
      "k.begin_ns",
      product.m, product.n, product.k);
}

std::string short_kernel(std::string_view name) {
  const std::string last = base::kernel_function(name);
  // PyTorch's reductions differ by an argument only.
  return base::contains(name, "ArgMaxOps") ? last + " (argmax)" : last;
}

std::string step_word(std::string_view stage, std::string_view word) {
  return stage == "steps" ? std::string(word) : fmt::format("{} {}", stage, word);
}

bool makes_tokens(std::string_view stage) {
  static constexpr std::array<std::string_view, 6> kMake{"prefill", "decode", "mixed", "draft", "verify", "generation"};
  return std::ranges::find(kMake, stage) != kMake.end();
}

bool is_training(std::string_view stage) {
  return stage == "forward" || stage == "backward" || stage == "optimizer" || stage == "training";
}

std::optional<double> StageView::term(std::string_view name) const {
  if (waterfall == nullptr || waterfall->measured_ns <= 0) return std::nullopt;
  std::optional<double> sum;
  for (const WaterfallTerm& each : waterfall->terms) {
    if (each.name == name && each.ns) sum = sum.value_or(0) + static_cast<double>(*each.ns);
  }
  if (!sum) return std::nullopt;
  return *sum / static_cast<double>(waterfall->measured_ns) * total_ns;
}

double StageView::idle_launching_ns() const { return term("gaps").value_or(0) + term("queued").value_or(0); }

double StageView::busy_ns() const {
  if (waterfall == nullptr) return static_cast<double>(stage->device_busy_ns);
  double idle = 0;
  for (const char* name : {"between_steps", "gaps", "queued", "waits", "copies", "other_kernels"})
    idle += term(name).value_or(0);
  return std::max(0.0, total_ns - idle);
}

std::string StageView::per_step(double ns) const {
  return human_ns(steps > 0 ? ns / steps : ns) + (steps > 1 ? " per step" : "");
}

StageView view_of(const Summary& summary, const Stage& stage) {
  StageView out{.stage = &stage, .steps = static_cast<double>(stage.steps)};
  out.total_ns = static_cast<double>(stage.time_ns);
  for (const Waterfall& waterfall : summary.waterfalls) {
    if (waterfall.stage != stage.name || waterfall.on_cpu != !summary.on_gpu || waterfall.samples <= 0) continue;
    out.waterfall = &waterfall;
    out.total_ns = waterfall.mean_ns(waterfall.measured_ns) * out.steps;
  }
  return out;
}

std::vector<StageView> steady_stages(const Summary& summary) {
  std::vector<StageView> out;
  for (const Stage& stage : summary.stages) {
    if (is_steady(stage.name) && stage.time_ns > 0 && stage.steps > 0) out.push_back(view_of(summary, stage));
  }
  return out;
}

void add_idle_causes(const Summary& summary, Finding& finding) {
  constexpr std::size_t kShown = 3;
  const std::string stage = sql_literal(finding.stage);
  const StageIdle* idle = find_idle(summary.idle, finding.stage);
  if (idle == nullptr || idle->idle_ns() <= 0) return;
  const double total = idle->idle_ns();
  const std::string of = human_ns(total) + " with nothing launched";
  for (std::size_t i = 0; i < std::min(kShown, idle->places.size()); ++i) {
    const IdlePlace& place = idle->places[i];
    if (place.name.empty()) continue;
    finding.add_fraction(
        finding.stage + ".idle_in." + place.name, place.name + " was open on the host", place.time_ns / total, of,
        "measured",
        fmt::format("SELECT * FROM idle_place WHERE stage = {} AND NOT warm_up ORDER BY time_ns DESC", stage));
  }
  if (idle->samples < kEnoughSamples) return;
  // A sample stands for the time around it: where idle times are short, samples may add up to more.
  const bool more = idle->cpu_ns() > idle->idle_ns();
  const double of_ns = more ? static_cast<double>(idle->cpu_ns()) : total;
  const std::string of_works = more ? human_ns(of_ns) + " of CPU time sampled then" : of;
  for (std::size_t i = 0; i < std::min(kShown, idle->works.size()); ++i) {
    const IdleWork& work = idle->works[i];
    finding.add_fraction(
        fmt::format("{}.idle_doing.{}", finding.stage, work_name(work.work)),
        fmt::format("{}{}: CPU time of the thread, by {}", work_name(work.work),
                    work.what.empty() ? "" : " (" + work.what + ")", count_of(work.samples, "stack samples")),
        work.cpu_ns / of_ns, of_works, "sampled", idle_sample_rows(finding.stage));
  }
}

std::string idle_sample_rows(const std::string& stage) {
  return fmt::format(
      "SELECT s.* FROM sample s JOIN sample_place p ON p.sample_id = s.id JOIN step t ON t.id = p.idle_in_step AND "
      "t.thread_id = s.thread_id WHERE t.stage = {} AND NOT t.warm_up ORDER BY s.ts_ns",
      sql_literal(stage));
}

double other_work_share(const Summary& summary, std::string_view stage) {
  const StageIdle* idle = find_idle(summary.idle, stage);
  if (idle == nullptr || idle->samples < kEnoughSamples || idle->idle_ns() <= 0) return 0;
  std::int64_t other = 0;
  for (const IdleWork& work : idle->works) other += is_launching(work.work) ? 0 : work.cpu_ns;
  return static_cast<double>(other) / static_cast<double>(std::max(idle->cpu_ns(), idle->idle_ns()));
}

std::string hidden_by_launches(const StageView& view) {
  if (!view.held_by_launches()) return "";
  return fmt::format(
      " The device idles {} of the stage because launches come late: shorter kernels would save "
      "nothing before that is solved.",
      human_percent(view.idle_launching()));
}

std::vector<WeightRead> weight_reads(const RuleInput& run, const StageView& view) {
  std::vector<WeightRead> out;
  const StageBytes* costs = find_by(run.facts.bytes, view.stage->name, &StageBytes::stage);
  if (costs == nullptr || !run.summary.peak_bandwidth) return out;
  for (const OperatorBytes& op : costs->operators) {
    if (op.weight_bytes <= 0 || op.flops <= 0) continue;  // tables of embeddings and norms are no product
    for (const Part& part : run.summary.ops) {
      if (part.stage != view.stage->name || part.name != op.op || part.time_ns <= 0) continue;
      const double time_ns = part.time_ns;
      const double bytes_ns = op.bytes() / *run.summary.peak_bandwidth * 1e9;
      const double flops_ns = run.summary.peak_flops ? op.flops / *run.summary.peak_flops * 1e9 : 0;
      out.push_back({.op = op.op,
                     .time_ns = time_ns,
                     .weight_bytes = op.weight_bytes,
                     .bytes = op.bytes(),
                     .flops = op.flops,
                     .of_floor = std::max(bytes_ns, flops_ns) / time_ns,
                     .bandwidth = bytes_ns / time_ns});
    }
  }
  std::ranges::sort(out, std::greater{}, &WeightRead::time_ns);
  return out;
}

}  // namespace llmprof::analyze
