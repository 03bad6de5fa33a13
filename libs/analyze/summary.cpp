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
#include "analyze/requests/requests.h"
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

Result<void> fill_stages(const trace::Run& run, Summary& summary) {
  LLMPROF_LET(summary.stages, ask_rows<Stage>(run, "stages"));
  const bool tokens = std::ranges::any_of(summary.stages, &Stage::makes_tokens);
  for (Stage& stage : summary.stages) {
    stage.label = stage.name + (stage.declared() ? "" : stage.guessed() ? "?" : "*");
    // Beside stages that make tokens others may repeat: their steps are timed.
    const bool steps = !tokens || stage.times_steps();
    stage.latency_p50_ns = steps ? stage.step_p50_ns : stage.tpot_p50_ns;
    stage.latency_p90_ns = steps ? stage.step_p90_ns : stage.tpot_p90_ns;
    stage.latency_p99_ns = steps ? stage.step_p99_ns : stage.tpot_p99_ns;
  }
  return {};
}

struct Tokens {
  std::string stage;
  std::int64_t process_id = 0, tokens = 0, checked = 0, least_taken = 0;
  bool any() const { return tokens > 0 || checked > 0; }
  void operator+=(const Tokens& other) {
    tokens += other.tokens, checked += other.checked, least_taken += other.least_taken;
  }
};

// A token passes through every rank of a copy of the model: the first that says its tokens counts. Whoever is no rank
// stands for all that compute for it.
Result<void> fill_tokens(const trace::Run& run, const Job& job, Summary& summary) {
  if (!job.known) return {};  // how many copies there are is unknown
  LLMPROF_LET(const std::vector<Tokens> rows, ask_rows<Tokens>(run, "stage_tokens"));
  std::map<std::pair<std::string, const JobRank*>, Tokens> said;
  for (const Tokens& row : rows) said[{row.stage, job.rank_of(row.process_id)}] += row;
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

double fraction(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// Union of the step windows, per stage and over all.
Result<void> fill_times(const trace::Run& run, std::int64_t busy_devices, Summary& summary) {
  LLMPROF_LET(const trace::Columns steps, ask_columns(run, "step_windows"));
  std::vector<Window> all;
  for (std::size_t i = 0; i < steps.rows(); ++i) all.push_back({steps.values[1][i], steps.values[2][i]});
  summary.coverage.in_stages_ns = length_of(union_of(all));
  for (Stage& stage : summary.stages) {
    std::vector<Window> windows, steady;
    std::int64_t steady_busy_ns = 0;
    std::map<std::int64_t, std::vector<Window>> processes;
    for (std::size_t i = 0; i < steps.rows(); ++i) {
      if (steps.names[steps.values[0][i]] != stage.name) continue;
      windows.push_back(all[i]);
      processes[steps.values[4][i]].push_back(all[i]);
      stage.device_busy_ns += steps.values[3][i];
      if (steps.values[5][i] != 0) continue;
      steady.push_back(all[i]);
      steady_busy_ns += steps.values[3][i];
    }
    if (steady.empty()) steady = windows, steady_busy_ns = stage.device_busy_ns;
    stage.steps_ns = length_of(windows);
    stage.time_ns = length_of(union_of(std::move(windows)));
    if (processes.size() > 1 && stage.time_ns > 0)
      stage.ranks_at_once = static_cast<double>(length_of(processes)) / static_cast<double>(stage.time_ns);
    stage.idle_ns = busy_devices * stage.time_ns - stage.device_busy_ns;
    if (const std::int64_t all_ns = busy_devices * stage.time_ns; all_ns > 0)
      stage.busy = fraction(stage.device_busy_ns, all_ns);
    stage.steady_steps = static_cast<std::int64_t>(steady.size());
    stage.steady_ns = length_of(union_of(std::move(steady)));
    if (const std::int64_t all_ns = busy_devices * stage.steady_ns; all_ns > 0)
      stage.steady_busy = fraction(steady_busy_ns, all_ns);
    if (summary.coverage.wall_ns > 0) {
      stage.share = fraction(stage.time_ns, summary.coverage.wall_ns);
      stage.steady_share = fraction(stage.steady_ns, summary.coverage.wall_ns);
    }
    if (stage.tokens > 0 && stage.time_ns > 0) {
      stage.tokens_per_s = static_cast<double>(stage.tokens) / (stage.at_pace_ns() * 1e-9);
    }
  }
  return {};
}

// Passes over the model of one stage that cost the same, each.
struct PassCost {
  std::string stage;
  std::int64_t pass_id = 0, steps = 0;
  std::optional<double> flops, bytes;
  double recomputed_flops = 0;
  std::optional<double> flops_most, bytes_most, compute_ns;
};

// The upper bounds of a stage's costs: known only if they are known for every step.
struct Most {
  double flops = 0, bytes = 0, floor_ns = 0;
  bool known = true;

  void add(const PassCost& pass, const Denominators& by) {
    known = known && pass.flops_most && pass.bytes_most;
    if (!known) return;
    const auto steps = static_cast<double>(pass.steps);
    flops += steps * *pass.flops_most;
    bytes += steps * *pass.bytes_most;
    // What comes on top of the least FLOPs is taken to be of the same types.
    std::optional<double> compute_ns;
    if (pass.compute_ns && *pass.flops > 0) compute_ns = *pass.compute_ns * *pass.flops_most / *pass.flops;
    floor_ns += steps * analyze::floor_ns(*pass.flops_most, *pass.bytes_most, by, compute_ns).value_or(0);
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
  LLMPROF_LET(const std::vector<PassCost> passes, ask_rows<PassCost>(run, "stage_passes"));
  for (Stage& stage : summary.stages) {
    const Denominators by = for_stage(all, stage.name);
    double flops = 0, bytes = 0, floor = 0, recomputed = 0;
    std::int64_t unknown = 0;
    std::optional<double> compute = 0.0;
    bool floor_known = true;
    Most most;
    for (const PassCost& pass : passes) {
      if (pass.stage != stage.name) continue;
      if (!pass.flops) {
        unknown += pass.steps;
        continue;
      }
      const auto steps = static_cast<double>(pass.steps);
      flops += steps * *pass.flops;
      bytes += steps * pass.bytes.value_or(0);
      recomputed += steps * pass.recomputed_flops;
      compute = compute && pass.compute_ns ? std::optional(*compute + steps * *pass.compute_ns) : std::nullopt;
      const std::optional<double> least = floor_ns(*pass.flops, pass.bytes.value_or(0), by, pass.compute_ns);
      floor_known = floor_known && least;
      floor += steps * least.value_or(0);
      most.add(pass, by);
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

// What the sections are filled from.
struct Filling {
  trace::Run& run;
  const AnalysisContext& analysis;
  const Options& options;
  std::vector<Shape> shapes;
  std::string type;  // of the run's arithmetic
  Summary& summary;

  Denominators by(Over over) const { return denominators(analysis, type, over); }
};

Result<void> fill_run(Filling& f) {
  LLMPROF_LET(f.summary.coverage, ask_row<Coverage>(f.run, "coverage"));
  LLMPROF_LET(f.summary.losses, read_losses(f.run));
  LLMPROF_LET(f.shapes, gemm_shapes(f.run, f.analysis));
  f.type = arithmetic_type(f.analysis, f.shapes);
  fill_context(f.analysis, f.type, f.summary);
  for (const Shape& shape : f.shapes) {
    f.summary.gemms.push_back(shape.gemm);
    f.summary.gemms.back().label = label_of(shape.gemm, f.type);
  }
  const Denominators by = f.by(Over::kJob);
  f.summary.weights_fit_cache = by.weights_fit_cache;
  f.summary.ridge = by.ridge();
  f.summary.peak_flops = by.peak_flops;
  f.summary.peak_bandwidth = by.peak_bandwidth;
  return {};
}

template <class T>
Result<void> keep(T& into, Result<T> made) {
  LLMPROF_LET(into, std::move(made));
  return {};
}

struct SectionRow {
  Section section;
  std::vector<Section> needs;  // those before it in the list
  Result<void> (*fill)(Filling&);
};

const std::vector<SectionRow>& section_rows() {
  using enum Section;
  static const std::vector<SectionRow> rows = {
      {kStages,
       {},
       [](Filling& f) -> Result<void> {
         LLMPROF_TRY(fill_stages(f.run, f.summary));
         LLMPROF_TRY(fill_tokens(f.run, f.analysis.job, f.summary));
         LLMPROF_TRY(fill_times(f.run, f.analysis.busy_devices, f.summary));
         fill_stage_shapes(f.shapes, f.summary);
         return fill_stage_costs(f.run, f.analysis, f.by(Over::kJob), f.summary);
       }},
      {kParts,
       {kStages},
       [](Filling& f) -> Result<void> {
         LLMPROF_TRY(fill_parts(f.run, f.by(Over::kDevice), f.summary));
         return fill_unmatched(f.run, f.summary);
       }},
      {kGpu, {kStages}, [](Filling& f) { return fill_gpu(f.run, f.options.by, f.summary); }},
      {kCost, {kStages}, [](Filling& f) { return fill_cost(f.run, f.summary); }},
      {kHost,
       {},
       [](Filling& f) -> Result<void> {
         LLMPROF_TRY(fill_host(f.run, f.summary.host));
         return fill_functions(f.run, f.summary.host);
       }},
      {kLife, {}, [](Filling& f) { return keep(f.summary.life, life_of(f.run)); }},
      {kSteps,
       {},
       [](Filling& f) -> Result<void> {
         LLMPROF_LET(f.summary.blocks, blocks_of(f.run, f.summary.on_gpu));
         LLMPROF_TRY(fill_ranges(f.run, f.summary));
         LLMPROF_LET(f.summary.training, training_series(f.run));
         return keep(f.summary.step_curves, step_curves(f.run));
       }},
      {kIdle, {}, [](Filling& f) { return keep(f.summary.idle, idle_time(f.run)); }},
      {kWaterfalls,
       {kHost},
       [](Filling& f) -> Result<void> {
         // Stack samples tell where a loop is, not what executes: there is nothing to take apart.
         if (!f.summary.host.sampled_stages.empty()) return {};
         return keep(f.summary.waterfalls, waterfalls(f.run, f.analysis, f.by(Over::kRank)));
       }},
      {kTelemetry, {kStages, kWaterfalls}, [](Filling& f) { return fill_telemetry(f.run, f.analysis, f.summary); }},
      {kMemory,
       {},
       [](Filling& f) -> Result<void> {
         LLMPROF_LET(f.summary.device_memory, device_memories(f.run));
         return keep(f.summary.allocators, allocators(f.run));
       }},
      {kMetrics, {}, [](Filling& f) { return keep(f.summary.metrics, server_metrics(f.run)); }},
      {kRequests,
       {},
       [](Filling& f) {
         return keep(f.summary.requests, requests_of(f.run, f.analysis, {f.options.price_per_hour, f.options.engine}));
       }},
      {kImported, {}, [](Filling& f) { return fill_imported(f.run, f.analysis, f.summary.imported); }},
      {kCounters, {kStages, kImported}, [](Filling& f) { return fill_counters(f.run, f.analysis, f.summary); }},
      {kDiagnosis,  // rules may read everything
       {kParts, kGpu, kCost, kHost, kLife, kSteps, kIdle, kTelemetry, kMemory, kMetrics, kRequests, kCounters},
       [](Filling& f) { return keep(f.summary.diagnosis, diagnose(f.run, f.analysis, f.summary)); }},
  };
  return rows;
}

}  // namespace

double Stage::at_pace_ns() const {
  const std::int64_t others = steps - warm_up_steps;
  if (warm_up_steps == 0 || others <= 0) return static_cast<double>(time_ns);
  const double others_ns =
      std::max(0.0, static_cast<double>(time_ns) - static_cast<double>(warm_up_ns) / ranks_at_once);
  return others_ns * static_cast<double>(steps) / static_cast<double>(others);
}

Result<std::vector<Loss>> read_losses(const trace::Run& run) { return ask_rows<Loss>(run, "losses"); }

Result<Summary> summarise(trace::Run& run, const Options& options, const base::Progress& progress) {
  LLMPROF_LET(const AnalysisContext analysis, find_context(run, options));
  LLMPROF_TRY(ensure_derived(run, analysis, progress));
  const auto& rows = section_rows();
  std::set<Section> wanted(options.sections.begin(), options.sections.end());
  if (wanted.empty()) wanted.insert(rows.back().section);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (wanted.contains(row->section)) wanted.insert(row->needs.begin(), row->needs.end());
  }
  Summary summary;
  Filling filling{run, analysis, options, {}, {}, summary};
  LLMPROF_TRY(fill_run(filling));
  for (const SectionRow& row : rows) {
    if (wanted.contains(row.section)) LLMPROF_TRY(row.fill(filling));
  }
  run.keep_answers();
  return summary;
}

}  // namespace llmprof::analyze
