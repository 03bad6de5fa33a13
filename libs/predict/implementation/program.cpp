#include "predict/implementation/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace llmprof::predict {
namespace {

// How far apart, as a logarithm, numbers of blocks of the same call may be: sizes are rounded up to blocks.
constexpr double kSameBlocks = 0.25;
constexpr double kTie = 0.02;

Grid line() { return Grid(1, Blend::kOverhead); }

Answer ask(const Grid& grid, double at) { return grid.ask(std::array{at}); }

// A call of the prober over numbers of tokens.
struct Series {
  struct Point {
    double tokens, blocks;
    std::string name;
  };
  std::vector<Point> points;  // by tokens
  Grid ns = line();
  Grid blocks = line();
  std::string scale, stage;
  bool graph = false;

  // The same kernel as this one, at about so many tokens.
  bool launches(const std::string& name, double tokens) const {
    const auto above = std::ranges::lower_bound(points, tokens, {}, &Point::tokens);
    if (above != points.end() && above->name == name) return true;
    return above != points.begin() && std::prev(above)->name == name;
  }
};

std::string template_of(const std::string& name) { return name.substr(0, name.find('<')); }

// Distance of two numbers of blocks; one block more or less is rounding.
double apart(double a, double b) {
  if (std::abs(a - b) <= 1) return std::abs(a - b) < 0.5 ? 0 : kSameBlocks / 2;
  return std::abs(std::log(a / b));
}

double prefill_tokens(const StepSize& size) {
  return static_cast<double>(size.rows) / static_cast<double>(std::max<std::int64_t>(1, size.batch));
}

double context_of(const StepSize& size) {
  return static_cast<double>(size.contexts) / static_cast<double>(std::max<std::int64_t>(1, size.batch));
}

}  // namespace

struct ProgramCost::Known {
  std::vector<Series> series;
  std::map<std::string, Grid> by_blocks, by_template;
  std::map<std::string, Grid> products;   // "n|k|type|graph"
  std::map<std::string, Grid> attention;  // "stage|kernel", and "stage|"
  Grid any = line();                      // of all kernels, by blocks

  static std::string product_key(double n, double k, std::string_view type, bool graph) {
    return fmt::format("{}|{}|{}|{}", n, k, type, graph);
  }
  const Grid* product(const WeightProduct& p, bool graph) const {
    for (const bool as_asked : {true, false}) {
      const auto found = products.find(
          product_key(static_cast<double>(p.n), static_cast<double>(p.k), p.type, as_asked ? graph : !graph));
      if (found != products.end()) return &found->second;
    }
    return nullptr;
  }
  const Grid* attended(const std::string& stage, const std::string& kernel) const {
    for (const std::string& key : {stage + "|" + comparable_name(kernel), stage + "|"}) {
      const auto found = attention.find(key);
      if (found != attention.end()) return &found->second;
    }
    return nullptr;
  }
};

// What a size is counted by, for one kernel.
enum class Counts : std::uint8_t { kRows, kBatch, kContexts, kAttention, kNothing };

struct ProgramCost::Source {
  std::vector<const Grid*> grids;  // several that fit equally well: their mean
  Counts counts = Counts::kNothing;
  double scale = 1;  // of the size, before it is looked up
  Basis weakest = Basis::kMeasured;
  bool unknown = false;

  double place(const StepSize& size) const {
    const double of = static_cast<double>(counts == Counts::kRows       ? size.rows
                                          : counts == Counts::kContexts ? size.contexts
                                                                        : size.batch);
    return of * scale;
  }
  Answer at(const StepSize& size, bool decode) const {
    Answer sum{0, weakest};
    for (const Grid* grid : grids) {
      const Answer one =
          counts == Counts::kAttention
              ? grid->ask(std::array{static_cast<double>(size.batch), decode ? context_of(size) : prefill_tokens(size)})
              : ask(*grid, place(size));
      sum.ns += std::max(0.0, one.ns) / static_cast<double>(grids.size());
      sum.basis = std::max(sum.basis, one.basis);
    }
    return sum;
  }
};

ProgramCost::ProgramCost(Implementation implementation, ProbedRows rows)
    : implementation_(std::move(implementation)), rows_(std::move(rows)), known_(std::make_unique<Known>()) {}
ProgramCost::ProgramCost(ProgramCost&&) noexcept = default;
ProgramCost& ProgramCost::operator=(ProgramCost&&) noexcept = default;
ProgramCost::~ProgramCost() = default;

Result<ProgramCost> ProgramCost::make(Implementation implementation, ProbedRows rows) {
  if (rows.empty()) {
    return Error{ErrorCode::kNotFound, "no kernel times were measured",
                 "llmprof bench --for RUN measures the kernels that the program of a run uses"};
  }
  ProgramCost cost(std::move(implementation), std::move(rows));
  Known& known = *cost.known_;
  std::map<std::string, std::vector<const ProbedKernel*>> calls;
  for (const ProbedKernel& k : cost.rows_.kernels) {
    const std::string name = comparable_name(k.kernel);
    calls[fmt::format("{}|{}|{}|{}", k.op, k.scale, k.stage, k.graph)].push_back(&k);
    for (Grid* grid : {&known.by_blocks.try_emplace(name, line()).first->second,
                       &known.by_template.try_emplace(template_of(name), line()).first->second, &known.any})
      grid->add(std::array{k.blocks}, k.ns);
  }
  for (auto& [key, points] : calls) {
    std::ranges::sort(points, {}, &ProbedKernel::tokens);
    Series series;
    series.scale = points.front()->scale, series.stage = points.front()->stage, series.graph = points.front()->graph;
    for (const ProbedKernel* k : points) {
      series.points.push_back({k->tokens, k->blocks, comparable_name(k->kernel)});
      series.ns.add(std::array{k->tokens}, k->ns);
      series.blocks.add(std::array{k->tokens}, k->blocks);
    }
    series.ns.settle(nullptr), series.blocks.settle(nullptr);
    known.series.push_back(std::move(series));
  }
  for (const ProbedProduct& p : cost.rows_.products)
    known.products.try_emplace(Known::product_key(p.n, p.k, p.dtype, p.graph), line())
        .first->second.add(std::array{p.m}, p.ns);
  for (const ProbedAttention& a : cost.rows_.attention) {
    for (const std::string& key : {a.stage + "|" + comparable_name(a.asked), a.stage + "|"})
      // Prompts attend to themselves: their time grows with the square of their length, sooner or later.
      known.attention.try_emplace(key, Grid(2, a.stage == "decode" ? Blend::kOverhead : Blend::kPower))
          .first->second.add(std::array{a.batch, a.stage == "decode" ? a.kv : a.q}, a.ns);
  }
  for (auto* grids : {&known.by_blocks, &known.by_template, &known.products, &known.attention}) {
    for (auto& [key, grid] : *grids) grid.settle(nullptr);
  }
  known.any.settle(nullptr);
  for (const StageSteps& stage : cost.implementation_.stages) {
    std::vector<Source>& sources = cost.sources_.emplace_back();
    bool attending = false;
    for (const StepKernel& kernel : stage.kernels) {
      // Several kernels in a row make one attention: its time is that of all of them.
      const bool joined = kernel.follows || (kernel.attention && attending);
      attending = kernel.attention;
      sources.push_back(joined ? Source{} : cost.source_of(stage, kernel));
    }
  }
  return cost;
}

ProgramCost::Source ProgramCost::source_of(const StageSteps& stage, const StepKernel& kernel) const {
  const StepSize seen{stage.batch, stage.rows, stage.contexts > 0 ? stage.contexts : stage.rows};
  const std::string name = comparable_name(kernel.name);
  if (kernel.product) {
    if (const Grid* grid = known_->product(*kernel.product, stage.graph)) {
      const bool rows = kernel.product->rows != stage.batch || stage.rows == stage.batch;
      return {{grid},
              rows ? Counts::kRows : Counts::kBatch,
              static_cast<double>(kernel.product->rows) / static_cast<double>(rows ? stage.rows : stage.batch)};
    }
  }
  if (kernel.attention) {
    if (const Grid* grid = known_->attended(stage.stage, kernel.name)) return {{grid}, Counts::kAttention};
  }
  struct Candidate {
    double distance;
    const Series* series;
    Counts counts;
  };
  std::vector<Candidate> fits;
  for (const Series& series : known_->series) {
    const bool context = series.scale == "context";
    const bool same_stage = series.stage == stage.stage || (stage.stage == "mixed" && series.stage == "prefill");
    // What is done for the last token of each prompt is measured as a decode of so many sequences.
    const Counts counts = context ? Counts::kContexts : same_stage ? Counts::kRows : Counts::kBatch;
    if (!context && series.stage == "prefill" && !same_stage) continue;
    if (kernel.grows && !context) continue;
    Source probe{{}, counts};
    const double tokens = probe.place(seen);
    if (!series.launches(name, tokens)) continue;
    // A graph's kernels are a little slower than the same launched one by one.
    const double distance = apart(ask(series.blocks, tokens).ns, static_cast<double>(kernel.blocks)) +
                            (series.graph == stage.graph ? 0 : kTie * 1.5) + (same_stage ? 0 : kTie * 1.5);
    if (distance <= kSameBlocks) fits.push_back({distance, &series, counts});
  }
  if (!fits.empty()) {
    const Candidate best = *std::ranges::min_element(fits, {}, &Candidate::distance);
    Source source{{}, best.counts};
    for (const Candidate& each : fits) {
      if (each.counts == best.counts && each.distance <= best.distance + kTie) source.grids.push_back(&each.series->ns);
    }
    return source;
  }
  // By blocks, in proportion to what the step has more of.
  const Counts counts = kernel.grows ? Counts::kContexts : Counts::kRows;
  const double scale = static_cast<double>(kernel.blocks) / std::max(1.0, Source{{}, counts}.place(seen));
  if (const auto found = known_->by_blocks.find(name); found != known_->by_blocks.end())
    return {{&found->second}, counts, scale, Basis::kInterpolated};
  if (const auto found = known_->by_template.find(template_of(name)); found != known_->by_template.end())
    return {{&found->second}, counts, scale, Basis::kExtrapolated};
  Source source{{}, counts, scale, Basis::kAssumed, true};
  if (!known_->any.empty()) source.grids.push_back(&known_->any);
  return source;
}

ProgramStep ProgramCost::step(const StageSteps& stage, const StepSize& size, const HostTerms& host) const {
  const auto place = static_cast<std::size_t>(&stage - implementation_.stages.data());
  const std::vector<Source>& sources = sources_.at(place);
  const bool decode = stage.stage == "decode";
  const double gap_ns = stage.graph ? rows_.graph_gap_ns : rows_.queued_gap_ns;
  const double launch_ns = stage.graph ? 0 : host.launch_ns.known() ? host.launch_ns.value : rows_.op_ns;
  // What recording adds to a step of a graph is before its first kernel and after its last one.
  double recording_ns = stage.graph ? rows_.recording_ns : 0;
  const double latency_ns = std::max(0.0, host.latency_ns.value - recording_ns);
  recording_ns -= host.latency_ns.value - latency_ns;
  ProgramStep step;
  double end_ns = latency_ns;  // of the kernel before
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Answer answer = sources[i].at(size, decode);
    const double launched_ns = static_cast<double>(i) * launch_ns + latency_ns;
    const double ready_ns = end_ns + (i == 0 ? 0 : gap_ns), begin_ns = std::max(ready_ns, launched_ns);
    if (i > 0) step.gaps_ns += gap_ns;
    step.waits_ns += begin_ns - ready_ns;
    step.kernels_ns += answer.ns;
    step.kernels.push_back({answer.ns, answer.basis, begin_ns});
    end_ns = begin_ns + answer.ns;
  }
  step.waits_ns += latency_ns;
  step.around_ns = std::max(0.0, host.around_ns.value - recording_ns);
  return step;
}

ProbedRows ProgramCost::used_rows() const {
  if (!unknown().empty()) return rows_;  // these take the time of any kernel
  std::set<std::string> templates, calls;
  std::set<std::pair<double, double>> weights;
  for (const StageSteps& stage : implementation_.stages) {
    for (const StepKernel& kernel : stage.kernels) {
      templates.insert(template_of(comparable_name(kernel.name)));
      if (kernel.product) weights.emplace(kernel.product->n, kernel.product->k);
    }
  }
  const auto asked = [&](const ProbedKernel& k) { return templates.contains(template_of(comparable_name(k.kernel))); };
  for (const ProbedKernel& k : rows_.kernels) {
    if (asked(k)) calls.insert(k.op);
  }
  ProbedRows out = rows_;
  std::erase_if(out.kernels, [&](const ProbedKernel& k) { return !asked(k) && !calls.contains(k.op); });
  std::erase_if(out.products, [&](const ProbedProduct& p) { return !weights.contains({p.n, p.k}); });
  std::erase_if(out.attention, [&](const ProbedAttention& a) { return implementation_.stage(a.stage) == nullptr; });
  return out;
}

std::vector<std::string> ProgramCost::unknown() const {
  std::vector<std::string> names;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    for (std::size_t i = 0; i < sources_[s].size(); ++i) {
      const std::string& name = implementation_.stages[s].kernels[i].name;
      if (sources_[s][i].unknown && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace llmprof::predict
