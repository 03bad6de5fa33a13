#include "analyze/rules/facts.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "analyze/measures/totals_findings.h"
#include "analyze/model/efficiency.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "base/strings.h"

namespace llmprof::analyze {
namespace {

// Rows of questions that become facts after some thought.
struct Program {
  bool torch = false, known = false;
};
struct PinnedRate {
  std::string direction;
  double bytes_per_s = 0;
  std::int64_t copies = 0;
};
struct Wait {  // of a stage, in one function
  std::string stage, name;
  std::int64_t calls = 0, steps = 0, time_ns = 0;
};
struct LogitRows {
  std::string stage;
  double rows_per_step = 0, batch = 0, tokens = 0;
};

// By the names of its kernels, operators, ranges and sampled functions.
Result<std::optional<bool>> uses_torch(const trace::Run& run) {
  LLMPROF_LET(const Program program, ask_row<Program>(run, "program"));
  return program.torch || program.known ? std::optional(program.torch) : std::nullopt;
}

// Stages in which nothing was allocated are asked for only where something was recorded at all.
Result<AllocationFacts> allocation_facts(const trace::Run& run) {
  AllocationFacts facts;
  LLMPROF_LET(facts.recorded, ask_number(run,
                                         "SELECT count(*) FROM allocation WHERE kind IN ('device', 'managed', "
                                         "'segment') AND device_id IS NOT NULL"));
  if (facts.recorded == 0) return facts;
  LLMPROF_LET(facts.stages, ask_rows<StageAllocations>(run, "stage_allocations"));
  return facts;
}

Result<HostCopies> host_copies(const trace::Run& run) {
  HostCopies out;
  LLMPROF_LET(out.stages, ask_rows<StageCopies>(run, "stage_copies"));
  LLMPROF_LET(const std::vector<PinnedRate> rates, ask_rows<PinnedRate>(run, "pinned_rates"));
  for (const PinnedRate& rate : rates) out.pinned_rate[rate.direction] = rate.bytes_per_s;
  return out;
}

Result<HostWaits> host_waits(const trace::Run& run) {
  HostWaits out;
  LLMPROF_LET(const std::int64_t any, ask_number(run, "SELECT count(*) FROM (SELECT 1 FROM api LIMIT 1)"));
  out.recorded = any > 0;
  if (!out.recorded) return out;
  LLMPROF_LET(const std::vector<Wait> waits, ask_rows<Wait>(run, "stage_waits"));
  for (const Wait& wait : waits) {  // by stage, most time first
    if (out.stages.empty() || out.stages.back().stage != wait.stage)
      out.stages.push_back({.stage = wait.stage, .function = wait.name});
    StageWaits& stage = out.stages.back();
    stage.calls += wait.calls;
    stage.steps = std::max(stage.steps, wait.steps);
    stage.time_ns += wait.time_ns;
  }
  return out;
}

// Sizes of the steps and of the products of lm_head.
Result<void> fill_logit_rows(const trace::Run& run, std::vector<StageLogits>& stages) {
  if (stages.empty()) return {};
  LLMPROF_LET(const std::vector<LogitRows> rows, ask_rows<LogitRows>(run, "logit_rows"));
  for (StageLogits& stage : stages) {
    const auto found = std::ranges::find(rows, stage.stage, &LogitRows::stage);
    if (found == rows.end()) continue;
    stage.rows_per_step = found->rows_per_step, stage.batch = found->batch, stage.tokens = found->tokens;
  }
  return {};
}

struct Transfer {
  std::int64_t device = 0, begin = 0, end = 0, hidden = 0;
  Transfers* owner = nullptr;
};

// Disjoint intervals by device and time: what overlaps counts for the first.
class TransferTimes {
 public:
  void add(std::int64_t device, std::int64_t begin, std::int64_t end, Transfers* owner) {
    if (!all_.empty() && all_.back().device == device) begin = std::max(begin, all_.back().end);
    if (begin >= end) return;
    all_.push_back({device, begin, end, 0, owner});
    total_ns_ += end - begin;
  }

  // Kernels come by device and begin.
  void hide(std::int64_t device, std::int64_t begin, std::int64_t end) {
    if (device != device_) device_ = device, covered_ = INT64_MIN;
    begin = std::max(begin, covered_);
    covered_ = std::max(covered_, end);
    if (begin >= end) return;
    while (at_ < all_.size() && std::tie(all_[at_].device, all_[at_].end) <= std::tie(device, begin)) ++at_;
    for (std::size_t i = at_; i < all_.size() && all_[i].device == device && all_[i].begin < end; ++i) {
      all_[i].hidden += std::max<std::int64_t>(0, std::min(end, all_[i].end) - std::max(begin, all_[i].begin));
    }
  }

  void finish() {
    for (const Transfer& transfer : all_) {
      transfer.owner->time_ns += transfer.end - transfer.begin;
      transfer.owner->exposed_ns += transfer.end - transfer.begin - transfer.hidden;
    }
  }
  // Whether transfers could take 1 % of some stage.
  bool matter(const Summary& summary) const {
    return total_ns_ > 0 &&
           std::ranges::any_of(summary.stages, [&](const Stage& stage) { return 100 * total_ns_ >= stage.time_ns; });
  }

 private:
  std::vector<Transfer> all_;
  std::size_t at_ = 0;
  std::int64_t device_ = INT64_MIN, covered_ = INT64_MIN, total_ns_ = 0;
};

Result<std::vector<StageOverlap>> overlaps(const trace::Run& run, const Summary& summary) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "step_transfers"));
  std::map<std::string, StageOverlap> stages;
  TransferTimes times;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const auto& v = columns.values;
    StageOverlap& stage = stages[columns.names[v[0][i]]];
    Transfers& kind = v[6][i] != 0 ? stage.collectives : stage.copies;
    ++kind.count, kind.bytes += v[4][i], kind.pageable += v[5][i];
    times.add(v[1][i], v[2][i], v[3][i], &kind);
  }
  if (times.matter(summary)) {
    const std::string computing(sql_of("computing"));
    LLMPROF_TRY(run.column_chunks(computing, [&](const trace::ColumnChunk& chunk) {
      for (std::size_t i = 0; i < chunk.count; ++i)
        times.hide(chunk.values[0][i], chunk.values[1][i], chunk.values[2][i]);
      return true;
    }));
  }
  times.finish();
  std::vector<StageOverlap> out;
  for (auto& [name, stage] : stages) {
    stage.stage = name;
    out.push_back(std::move(stage));
  }
  return out;
}

std::vector<DevicePeak> arithmetic_peaks(const AnalysisContext& analysis) {
  std::vector<DevicePeak> out;
  for (const PeakRate& peak : analysis.peaks) {
    if (!analysis.device_ids.empty() && peak.device_id == analysis.device_ids.front() && peak.quantity == "flops")
      out.push_back({peak.type, peak.value, peak.source});
  }
  return out;
}

// Nothing if the run has no totals, or its model is unknown.
Result<std::optional<TotalsFacts>> totals_of(const trace::Run& run, const AnalysisContext& analysis,
                                             const Summary& summary) {
  std::optional<TotalsFacts> out;
  if (!analysis.model || summary.imported.totals.empty()) return out;
  LLMPROF_LET(const MeasuredTable table, totals_table(run));
  LLMPROF_LET(std::optional<MeasuredFindings> findings, totals_findings(run, analysis, summary));
  if (!findings) return out;
  out = totals_facts(table);
  out->findings = std::move(*findings);
  return out;
}

// A thread that begins anew (the same number of sequences, shorter than before) is not interrupted: nobody waited.
bool goes_on(const PassStep& before, const PassStep& step) {
  if (before.context == 0 || step.context == 0) return true;
  return step.context > before.context || step.batch > before.batch;
}

// The smallest value that this share of them does not exceed; 0 of none.
std::int64_t quantile_of(std::vector<std::int64_t> values, std::size_t percent) {
  if (values.empty()) return 0;
  const std::size_t rank = std::max<std::size_t>(1, (values.size() * percent + 99) / 100);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::ranges::nth_element(values, at);
  return *at;
}

// Prefills of other threads beside the time of a step; few, so a search per step is cheap enough.
bool beside(const std::vector<PassStep>& prefills, std::int64_t longest, const PassStep& step) {
  auto at = std::ranges::lower_bound(prefills, step.begin_ns - longest, {}, &PassStep::begin_ns);
  for (; at != prefills.end() && at->begin_ns < step.end_ns; ++at) {
    if (at->thread_id != step.thread_id && at->end_ns > step.begin_ns) return true;
  }
  return false;
}

Result<InterferenceFacts> interference(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "token_steps"));
  std::vector<PassStep> steps;
  const auto& v = columns.values;
  for (std::size_t i = 0; i < columns.rows(); ++i)
    steps.push_back({v[0][i], v[1][i], v[2][i], v[3][i], v[4][i], static_cast<PassStep::Kind>(v[5][i])});
  return interference_of(steps);
}

Result<std::vector<StageRanks>> rank_facts(const trace::Run& run) {
  LLMPROF_LET(const std::int64_t ranks, ask_number(run, "SELECT count(DISTINCT rank) FROM process"));
  if (ranks < 2) return std::vector<StageRanks>{};
  LLMPROF_LET(const std::vector<RankStep> steps, ask_rows<RankStep>(run, "rank_steps"));
  return ranks_of(steps);
}

}  // namespace

ModelShape model_shape(const AnalysisContext& analysis) {
  if (!analysis.model) return {};
  const model::Config& config = analysis.model->config();
  const auto& weight = config.quantization ? config.quantization->weight : config.weight;
  ModelShape out{.known = true,
                 .weight_type = weight.type,
                 .kv_type = config.kv.type,
                 .weight_bytes_each = weight.bytes,
                 .kv_bytes_each = config.kv.bytes,
                 .quantized = config.quantization.has_value(),
                 .layers = config.layers(),
                 .weights_read_bytes = model::weights_read_bytes(*analysis.model)};
  for (const std::uint32_t kind : config.kind_of_layer)
    out.kv_bytes_per_token += static_cast<double>(config.kinds[kind].attention.kv_values()) * config.kv.bytes;
  if (config.kinds.empty()) return out;
  const model::Attention& attention = config.kinds.front().attention;
  out.heads = attention.heads, out.kv_heads = attention.kv_heads, out.head_size = attention.qk_dim;
  out.latent = attention.latent();
  return out;
}

double Facts::peak(std::string_view type, double unknown) const {
  const auto found = std::ranges::find(peaks, type, &DevicePeak::type);
  return found == peaks.end() ? unknown : found->per_second;
}

double ProductKernel::bytes() const {
  return model::gemm_bytes(m, n, k, batch, element_bytes(type).value_or(2)) * static_cast<double>(executions);
}

OperatorBytes StageBytes::all() const {
  OperatorBytes out;
  for (const OperatorBytes& op : operators) {
    out.flops += op.flops;
    out.weight_bytes += op.weight_bytes;
    out.kv_bytes += op.kv_bytes;
    out.activation_bytes += op.activation_bytes;
  }
  return out;
}

Result<std::vector<StageBytes>> stage_bytes(const trace::Run& run) {
  LLMPROF_LET(std::vector<StageBytes> out, ask_rows<StageBytes>(run, "stage_sizes"));
  LLMPROF_LET(const std::vector<OperatorBytes> operators, ask_rows<OperatorBytes>(run, "stage_operator_bytes"));
  for (StageBytes& stage : out) {
    for (const OperatorBytes& op : operators) {
      if (op.stage == stage.stage) stage.operators.push_back(op);
    }
  }
  return out;
}

TotalsFacts totals_facts(const MeasuredTable& table) {
  static constexpr std::array<std::string_view, 5> kWaitingCalls = {"aten::item", "aten::_local_scalar_dense",
                                                                    "cudaStreamSynchronize", "cudaDeviceSynchronize",
                                                                    "cudaEventSynchronize"};
  TotalsFacts out;
  double copies_ns = 0;
  for (const MeasuredRow& row : table.rows) {
    const double calls = row.calls;
    if (row.name.starts_with("Memcpy ")) {
      copies_ns += row.self_device_ns.value_or(0);
      if (base::contains(row.name, "Pageable"))
        out.pageable_ns += row.self_device_ns.value_or(0), out.pageable_copies += calls;
    }
    if (std::ranges::count(kWaitingCalls, row.name) > 0 && calls > out.sync_calls)
      out.sync_calls = calls, out.sync_name = row.name;
  }
  out.device_work_ns = std::max(0.0, table.device_total_ns.value_or(0) - copies_ns);
  if (const MeasuredRow* copy = table.find("aten::copy_"))
    out.copy_wait_ns =
        std::max(0.0, copy->self_cpu_ns.value_or(0) - std::max(copies_ns, copy->self_device_ns.value_or(0)));
  return out;
}

InterferenceFacts interference_of(const std::vector<PassStep>& steps) {
  using Kind = PassStep::Kind;
  std::vector<PassStep> prefills;
  std::int64_t longest = 0;
  for (const PassStep& step : steps) {
    if (step.kind != Kind::kPrefill && step.kind != Kind::kMixed) continue;
    prefills.push_back(step);
    longest = std::max(longest, step.end_ns - step.begin_ns);
  }
  std::ranges::sort(prefills, {}, &PassStep::begin_ns);
  InterferenceFacts out{.prefills = std::ssize(prefills)};
  std::vector<std::int64_t> clean, interrupted;
  const PassStep* before = nullptr;  // the last step of the thread that made tokens
  bool prefill_between = false;
  for (const PassStep& step : steps) {
    if (before != nullptr && before->thread_id != step.thread_id) before = nullptr, prefill_between = false;
    if (step.kind == Kind::kPrefill) prefill_between = true;
    if (step.kind == Kind::kOther) before = nullptr;
    if (step.kind != Kind::kDecode && step.kind != Kind::kMixed) continue;
    if (before != nullptr && goes_on(*before, step) && step.end_ns > before->end_ns) {
      const bool hit = prefill_between || step.kind == Kind::kMixed || beside(prefills, longest, step);
      (hit ? interrupted : clean).push_back(step.end_ns - before->end_ns);
    }
    before = &step;
    prefill_between = false;
  }
  out.clean_p50_ns = quantile_of(clean, 50), out.interrupted_p50_ns = quantile_of(interrupted, 50);
  out.interrupted = std::ssize(interrupted);
  for (const std::int64_t ns : interrupted) out.extra_ns += std::max<std::int64_t>(0, ns - out.clean_p50_ns);
  std::vector<std::int64_t> all = std::move(clean);
  all.insert(all.end(), interrupted.begin(), interrupted.end());
  out.intervals = std::ssize(all);
  for (const std::int64_t ns : all) out.all_ns += ns;
  out.p99_ns = quantile_of(std::move(all), 99);
  return out;
}

std::vector<StageRanks> ranks_of(const std::vector<RankStep>& steps) {
  std::map<std::string, std::map<std::int64_t, std::vector<const RankStep*>>> stages;
  std::map<std::string, std::set<std::int64_t>> ranks;
  for (const RankStep& step : steps) {
    stages[step.stage][step.number].push_back(&step);
    ranks[step.stage].insert(step.rank);
  }
  std::vector<StageRanks> out;
  for (const auto& [name, numbers] : stages) {
    StageRanks stage{.stage = name};
    for (const std::int64_t rank : ranks[name]) stage.ranks.push_back({.rank = rank});
    for (const auto& [number, made] : numbers) {
      if (number == 0 || made.size() != stage.ranks.size()) continue;
      ++stage.steps;
      double sum = 0;
      for (const RankStep* step : made) {
        RankTime& time = *std::ranges::find(stage.ranks, step->rank, &RankTime::rank);
        time.own_ns += step->own_ns, time.collective_ns += step->collective_ns;
        sum += step->own_ns;
      }
      const RankStep* slowest = *std::ranges::max_element(made, {}, &RankStep::own_ns);
      ++std::ranges::find(stage.ranks, slowest->rank, &RankTime::rank)->slowest_in;
      stage.slowest_ns += slowest->own_ns;
      stage.mean_ns += sum / static_cast<double>(made.size());
    }
    out.push_back(std::move(stage));
  }
  return out;
}

Result<Facts> gather_facts(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary) {
  Facts facts;
  LLMPROF_LET(facts.torch, uses_torch(run));
  facts.windowed = !run.info().window.empty();
  facts.model = model_shape(analysis);
  facts.peaks = arithmetic_peaks(analysis);
  LLMPROF_LET(facts.bytes, stage_bytes(run));
  LLMPROF_LET(facts.waits, host_waits(run));
  LLMPROF_LET(facts.launches, ask_rows<StageLaunches>(run, "stage_launches"));
  LLMPROF_LET(facts.copies, host_copies(run));
  LLMPROF_LET(facts.products, ask_rows<ProductKernel>(run, "product_kernels"));
  LLMPROF_LET(facts.totals, totals_of(run, analysis, summary));
  LLMPROF_LET(const StepKernels step_kernels, read_step_kernels(run));
  facts.chains = chains_of(step_kernels);
  facts.logits = logits_of(step_kernels);
  LLMPROF_TRY(fill_logit_rows(run, facts.logits));
  LLMPROF_LET(facts.overlaps, overlaps(run, summary));
  LLMPROF_LET(facts.load, ask_row<LoadFacts>(run, "load"));
  LLMPROF_LET(facts.allocations, allocation_facts(run));
  LLMPROF_LET(facts.launch_shapes, ask_rows<LaunchShape>(run, "launch_shapes"));
  LLMPROF_LET(facts.needed_bytes, ask_rows<NeededBytes>(run, "needed_bytes"));
  LLMPROF_LET(facts.experts, ask_rows<StageExperts>(run, "expert_balance"));
  LLMPROF_LET(facts.interference, interference(run));
  LLMPROF_LET(facts.graph_buckets, ask_rows<GraphBucket>(run, "graph_buckets"));
  LLMPROF_LET(facts.ranks, rank_facts(run));
  return facts;
}

}  // namespace llmprof::analyze
