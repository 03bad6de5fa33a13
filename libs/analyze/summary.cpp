#include "analyze/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/context.h"
#include "analyze/counters/stages.h"
#include "analyze/derive.h"
#include "analyze/model/efficiency.h"
#include "analyze/model/model_passes.h"
#include "analyze/passes/busy.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/rules/rule.h"
#include "analyze/sections/sections.h"
#include "analyze/steps/waterfall.h"
#include "base/human.h"
#include "hw/roof.h"

namespace llmprof::analyze {
namespace {

void fill_context(const AnalysisContext& analysis, const std::string& type, Summary& summary) {
  summary.devices = analysis.devices;
  summary.on_gpu = !analysis.devices.empty() && analysis.devices.front().kind != "cpu";
  summary.busy_devices = analysis.busy_devices;
  summary.job = analysis.job;
  for (std::size_t i = 0; i < summary.devices.size(); ++i) {
    DeviceCard& card = summary.devices[i];
    card.type = type;
    if (const auto peak = hw::flops_peak(counters::peaks_of(analysis, analysis.device_ids[i]), type, card.name)) {
      if (!peak->note.empty()) card.type = peak->peak_type;
      card.peak_flops = peak->per_second;
      card.peak_flops_method = peak->method;
      card.peak_flops_source = peak->source;
    }
    if (const PeakRate* memory = analysis.memory_peak(analysis.device_ids[i])) {
      card.peak_bandwidth = memory->value;
      card.peak_bandwidth_method = memory->method;
      card.peak_bandwidth_source = memory->source;
      card.peak_bandwidth_name = analysis.memory_peak_in_words(analysis.device_ids[i]);
    }
  }
  summary.model = analysis.model_text;
  summary.model_why = analysis.model_why;
  summary.model_source = analysis.model_source;
  summary.model_origin = analysis.model_origin;
  summary.model_note = analysis.model_note;
  if (!analysis.model) return;
  summary.model_family = analysis.model->config().family;
  summary.parameters = model::parameters(*analysis.whole);
  summary.weights_read_bytes = model::weights_read_bytes(*analysis.whole);
}

// The arithmetic of the run: the model's, else that of most FLOPs, else float32.
std::string arithmetic_type(const AnalysisContext& analysis, const std::vector<Shape>& shapes) {
  if (analysis.model) return analysis.model->config().arithmetic;
  std::map<std::string, double> flops;
  for (const Shape& shape : shapes) flops[shape.gemm.type] += shape.flops;
  const auto most =
      std::max_element(flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == flops.end() || most->first.empty() ? "float32" : most->first;
}

struct FirstTokens {
  std::optional<std::int64_t> ttft_ns, ttft_p90_ns, ttft_p99_ns, cold_ttft_ns;
  std::int64_t prefills = 0;
};
struct NextTokens {
  std::int64_t samples = 0;
  std::optional<std::int64_t> tpot_p50_ns, tpot_p90_ns, tpot_p99_ns;
};

Result<void> fill_stages(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(summary.stages, ask_rows<Stage>(run, "sql/stages"));
  LLMPROF_LET(const FirstTokens first, ask_row<FirstTokens>(run, "sql/ttft"));
  LLMPROF_LET(const NextTokens next, ask_row<NextTokens>(run, "sql/tpot"));
  const bool tokens = std::ranges::any_of(summary.stages, &Stage::makes_tokens);
  for (Stage& stage : summary.stages) {
    stage.label = stage.name + (stage.declared() ? "" : "*");
    if (stage.name == "prefill") {
      stage.ttft_ns = first.ttft_ns, stage.ttft_p90_ns = first.ttft_p90_ns, stage.ttft_p99_ns = first.ttft_p99_ns;
      stage.cold_ttft_ns = first.cold_ttft_ns, stage.prefills = first.prefills;
    }
    if (stage.name == "decode") {
      stage.tpot_p50_ns = next.tpot_p50_ns, stage.tpot_p90_ns = next.tpot_p90_ns, stage.tpot_p99_ns = next.tpot_p99_ns;
    }
    stage.latency_p50_ns = stage.tpot_p50_ns, stage.latency_p90_ns = stage.tpot_p90_ns;
    stage.latency_p99_ns = stage.tpot_p99_ns;
    // Beside stages that make tokens others may repeat: their steps are timed.
    if (!tokens || stage.times_steps()) {
      stage.latency_p50_ns = stage.step_p50_ns, stage.latency_p90_ns = stage.step_p90_ns;
      stage.latency_p99_ns = stage.step_p99_ns;
    }
  }
  return {};
}

struct Tokens {
  std::int64_t tokens = 0, checked = 0, least_taken = 0;
  bool any() const { return tokens > 0 || checked > 0; }
  void operator+=(const Tokens& other) {
    tokens += other.tokens, checked += other.checked, least_taken += other.least_taken;
  }
};

// A token passes through every rank of a copy of the model: the first that says its tokens counts. Whoever is no rank
// stands for all that compute for it.
Result<void> fill_tokens(const trace::Run& run, const Job& job, Summary& summary) {
  if (!job.known) return {};  // how many copies there are is unknown
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_tokens"));
  std::map<std::pair<std::string, const JobRank*>, Tokens> said;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    said[{row.text("stage"), job.rank_of(row.integer("process_id"))}] +=
        {row.integer("tokens"), row.integer("checked"), row.integer("least_taken")};
  }
  for (Stage& stage : summary.stages) {
    Tokens sum = said[{stage.name, nullptr}];
    std::set<std::int64_t> counted;  // copies of the model
    for (const JobRank& rank : job.ranks) {
      const Tokens& own = said[{stage.name, &rank}];
      if (own.any() && counted.insert(rank.place.data).second) sum += own;
    }
    stage.tokens = sum.tokens, stage.checked = sum.checked, stage.least_taken = sum.least_taken;
  }
  return {};
}

Result<void> fill_stage_work(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/stage_work"));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    for (Stage& stage : summary.stages) {
      if (stage.name != row.text("stage")) continue;
      stage.kernel_ns = row.integer("kernel_ns");
      stage.estimated_ns = row.integer("estimated_ns");
      stage.graph_launches = row.integer("launches");
      stage.graph_launches_by_node = row.integer("by_node");
    }
  }
  return {};
}

std::int64_t length_of(const std::vector<Window>& windows) {
  std::int64_t total = 0;
  for (const Window& window : windows) total += window.end_ns - window.begin_ns;
  return total;
}

// Of each process the union of its windows, added up.
std::int64_t length_of(const std::map<std::int64_t, std::vector<Window>>& processes) {
  std::int64_t total = 0;
  for (const auto& [process, windows] : processes) total += length_of(union_of(windows));
  return total;
}

// Union of the step windows, per stage and over all.
Result<void> fill_times(const trace::Run& run, std::int64_t busy_devices, Summary& summary) {
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "sql/step_windows"));
  std::vector<Window> all;
  for (std::size_t i = 0; i < steps.rows(); ++i) all.push_back({steps.values[1][i], steps.values[2][i]});
  summary.coverage.in_stages_ns = length_of(union_of(all));
  for (Stage& stage : summary.stages) {
    std::vector<Window> windows;
    std::map<std::int64_t, std::vector<Window>> processes;
    for (std::size_t i = 0; i < steps.rows(); ++i) {
      if (steps.names[steps.values[0][i]] != stage.name) continue;
      windows.push_back(all[i]);
      processes[steps.values[4][i]].push_back(all[i]);
      stage.device_busy_ns += steps.values[3][i];
    }
    stage.steps_ns = length_of(windows);
    stage.time_ns = length_of(union_of(std::move(windows)));
    if (processes.size() > 1 && stage.time_ns > 0)
      stage.ranks_at_once = static_cast<double>(length_of(processes)) / static_cast<double>(stage.time_ns);
    stage.idle_ns = busy_devices * stage.time_ns - stage.device_busy_ns;
    if (const std::int64_t all_ns = busy_devices * stage.time_ns; all_ns > 0)
      stage.busy = static_cast<double>(stage.device_busy_ns) / static_cast<double>(all_ns);
    if (summary.coverage.wall_ns > 0) {
      stage.share = static_cast<double>(stage.time_ns) / static_cast<double>(summary.coverage.wall_ns);
    }
    if (stage.tokens > 0 && stage.time_ns > 0) {
      stage.tokens_per_s = static_cast<double>(stage.tokens) / (stage.at_pace_ns() * 1e-9);
    }
  }
  return {};
}

// The upper bounds of a stage's costs: known only if they are known for every step.
struct Most {
  double flops = 0, bytes = 0, floor_ns = 0;
  bool known = true;

  // `compute_ns`: of the least FLOPs; what comes on top is taken to be of the same types.
  void add(const RowView& row, double steps, const Denominators& by, std::optional<double> compute_ns) {
    const std::optional<double> step_flops = row.maybe_real("flops_most"), step_bytes = row.maybe_real("bytes_most");
    known = known && step_flops && step_bytes;
    if (!known) return;
    flops += steps * *step_flops;
    bytes += steps * *step_bytes;
    const double least = row.real("flops");
    if (compute_ns) compute_ns = least > 0 ? std::optional(*compute_ns * *step_flops / least) : std::nullopt;
    floor_ns += steps * analyze::floor_ns(*step_flops, *step_bytes, by, compute_ns).value_or(0);
  }

  void tell(Stage& stage, const Denominators& by) const {
    Efficiency& e = stage.efficiency;
    constexpr double kSame = 1.001;  // a difference that no table shows
    if (known && flops <= kSame * *e.flops && bytes <= kSame * *e.bytes) return;
    e.at_least = true;
    if (!known) {
      add_why(
          e.why,
          "the lengths of the sequences are not known: FLOPs, bytes, MFU, MBU and floor are at least these, attention "
          "over earlier tokens not counted");
      return;
    }
    e.flops_most = flops;
    e.bytes_most = bytes;
    if (e.floor_ns) e.floor_most_ns = floor_ns;
    std::string text = fmt::format(
        "the sequences differ in length and only sums are known: at least what the table says, at most {}FLOP",
        base::human_count(flops));
    if (by.peak_flops && stage.time_ns > 0) {
      text += fmt::format(" (MFU {})",
                          base::human_percent(flops / (static_cast<double>(stage.time_ns) * 1e-9) / *by.peak_flops));
    }
    text += ", " + base::human_bytes(bytes);
    if (e.floor_most_ns) text += ", a floor of " + base::human_ns(floor_ns);
    add_why(e.why, text);
  }
};

// Model FLOPs, bytes and the floor: known only if they are known for every step.
Result<void> fill_stage_costs(const trace::Run& run, const AnalysisContext& analysis, const Denominators& all,
                              Summary& summary) {
  LLMPROF_LET(const trace::ResultTable passes, ask(run, "sql/stage_passes"));
  for (Stage& stage : summary.stages) {
    const Denominators by = for_stage(all, stage.name);
    double flops = 0, bytes = 0, floor = 0, recomputed = 0;
    std::optional<double> compute = 0.0;
    std::int64_t unknown = 0;
    bool floor_known = true;
    Most most;
    for (std::size_t i = 0; i < passes.rows.size(); ++i) {
      const RowView row{passes, i};
      if (row.text("stage") != stage.name) continue;
      const auto steps = row.real("steps");
      if (!row.maybe_real("flops")) {
        unknown += row.integer("steps");
        continue;
      }
      flops += steps * row.real("flops");
      bytes += steps * row.real("bytes");
      recomputed += steps * row.maybe_real("recomputed_flops").value_or(0);
      const std::optional<double> compute_ns = row.maybe_real("compute_ns");
      compute = compute && compute_ns ? std::optional(*compute + steps * *compute_ns) : std::nullopt;
      const std::optional<double> least = floor_ns(row.real("flops"), row.real("bytes"), by, compute_ns);
      floor_known = floor_known && least;
      floor += steps * least.value_or(0);
      most.add(row, steps, by, compute_ns);
    }
    if (unknown == 0 && analysis.model) {
      stage.efficiency.flops = flops;
      stage.efficiency.bytes = bytes;
      stage.efficiency.compute_ns = compute;
      if (recomputed > 0) stage.efficiency.recomputed_flops = recomputed;
      if (floor_known) stage.efficiency.floor_ns = floor;
      most.tell(stage, by);
    } else if (analysis.model) {
      add_why(stage.efficiency.why,
              analysis.parts.empty() ? analysis.job.why
              : has_formula(stage.name)
                  ? fmt::format("{} of {} steps do not say their batch, tokens and context", unknown, stage.steps)
                  : "the model analysis has no formula for this stage");
    }
    complete(stage.efficiency, stage.at_pace_ns(), by);
  }
  return {};
}

// Where the program annotates itself for llmprof, the tables of modules say all that a tree could.
Result<void> fill_ranges(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(const trace::ResultTable others,
              run.query("SELECT count(*) FROM range_meaning WHERE domain IS DISTINCT FROM 'llmprof'"));
  if (others.rows[0][0].as_int() == 0) return {};
  LLMPROF_LET(summary.range_tree, range_tree(run));
  return {};
}

// What a GPU library fused behind the product, and the type where it is not the run's own.
std::string label_of(const GemmShape& gemm, const std::string& type) {
  std::string name = gemm.batch > 1 ? fmt::format("{} x{}", gemm.function, gemm.batch) : gemm.function;
  if (!gemm.epilogue.empty()) name += " +" + gemm.epilogue;
  if (!gemm.peak_type.empty() && gemm.peak_type != type) name += " " + gemm.peak_type;
  return gemm.shared_ns > 0 ? name + " shared" : name;
}

void fill_stage_shapes(const std::vector<Shape>& shapes, Summary& summary) {
  for (Stage& stage : summary.stages) {
    double flops = 0;
    for (const Shape& shape : shapes) {
      if (shape.gemm.stage == stage.name) flops += shape.flops;
    }
    if (flops > 0) stage.efficiency.flops_shapes = flops;
  }
}

}  // namespace

double Stage::at_pace_ns() const {
  const std::int64_t others = steps - warm_up_steps;
  if (warm_up_steps == 0 || others <= 0) return static_cast<double>(time_ns);
  const double others_ns =
      std::max(0.0, static_cast<double>(time_ns) - static_cast<double>(warm_up_ns) / ranks_at_once);
  return others_ns * static_cast<double>(steps) / static_cast<double>(others);
}

Result<std::vector<Loss>> read_losses(const trace::Run& run) { return ask_rows<Loss>(run, "sql/losses"); }

Result<Summary> summarise(trace::Run& run, const Options& options, const base::Progress& progress) {
  LLMPROF_LET(const AnalysisContext analysis, find_context(run, options));
  LLMPROF_TRY(ensure_derived(run, analysis, progress));
  Summary summary;
  LLMPROF_LET(summary.coverage, ask_row<Coverage>(run, "sql/coverage"));
  LLMPROF_LET(summary.losses, read_losses(run));
  LLMPROF_LET(const std::vector<Shape> shapes, gemm_shapes(run, analysis));
  const std::string type = arithmetic_type(analysis, shapes);
  fill_context(analysis, type, summary);
  for (const Shape& shape : shapes) {
    summary.gemms.push_back(shape.gemm);
    summary.gemms.back().label = label_of(shape.gemm, type);
  }
  const Denominators by = denominators(analysis, type, Over::kJob);
  summary.weights_fit_cache = by.weights_fit_cache;
  summary.ridge = by.ridge();
  summary.peak_flops = by.peak_flops;
  summary.peak_bandwidth = by.peak_bandwidth;
  LLMPROF_TRY(fill_stages(run, summary));
  LLMPROF_TRY(fill_tokens(run, analysis.job, summary));
  LLMPROF_TRY(fill_stage_work(run, summary));
  LLMPROF_TRY(fill_times(run, analysis.busy_devices, summary));
  fill_stage_shapes(shapes, summary);
  LLMPROF_TRY(fill_stage_costs(run, analysis, by, summary));
  LLMPROF_TRY(fill_parts(run, denominators(analysis, type, Over::kDevice), summary));
  LLMPROF_TRY(fill_unmatched(run, summary));
  LLMPROF_TRY(fill_gpu(run, options.by, summary));
  LLMPROF_TRY(fill_cost(run, summary));
  LLMPROF_TRY(fill_host(run, summary.host));
  LLMPROF_LET(summary.life, life_of(run));
  LLMPROF_TRY(fill_functions(run, summary.host));
  LLMPROF_LET(summary.blocks, blocks_of(run, summary.on_gpu));
  LLMPROF_TRY(fill_ranges(run, summary));
  LLMPROF_LET(summary.training, training_series(run));
  LLMPROF_LET(summary.step_curves, step_curves(run));
  LLMPROF_LET(summary.idle, idle_time(run));
  // Stack samples tell where a loop is, not what executes: there is nothing to take apart.
  if (summary.host.sampled_stages.empty()) {
    LLMPROF_LET(summary.waterfalls, waterfalls(run, analysis, denominators(analysis, type, Over::kRank)));
  }
  LLMPROF_TRY(fill_telemetry(run, analysis, summary));
  LLMPROF_LET(summary.device_memory, device_memories(run));
  LLMPROF_LET(summary.allocators, allocators(run));
  LLMPROF_LET(summary.metrics, server_metrics(run));
  LLMPROF_TRY(fill_imported(run, analysis, summary.imported));
  LLMPROF_TRY(fill_counters(run, analysis, summary));
  LLMPROF_LET(summary.diagnosis, diagnose(run, analysis, summary));
  run.keep_answers();
  return summary;
}

}  // namespace llmprof::analyze
