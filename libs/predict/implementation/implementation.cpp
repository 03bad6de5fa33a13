#include "predict/implementation/implementation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "trace/recording_cost.h"

namespace llmprof::predict {
namespace {

// Steps of stages that can be predicted, with how many of their kernels have rows of their own.
constexpr std::string_view kSteps = R"(
WITH placed AS (
  SELECT a.step_id, count(*) AS rows, count(k.graph_launch_id) AS in_graph
  FROM attribution a JOIN kernel k ON k.id = a.kernel_id JOIN device d ON d.id = k.device_id
  WHERE a.step_id IS NOT NULL AND d.kind = 'gpu' GROUP BY 1),
graphs AS (SELECT step_id, count(*) AS launches FROM launch_place WHERE step_id IS NOT NULL GROUP BY 1)
SELECT s.id, s.stage, s.batch, coalesce(s.contexts, s.batch * s.context) AS contexts,
  coalesce(s.rows, s.batch * s.tokens) AS new_tokens, s.kernels,
  coalesce(p.rows, 0) AS placed, coalesce(p.in_graph, 0) AS in_graph, coalesce(g.launches, 0) AS graphs, s.warm_up
FROM step s LEFT JOIN placed p ON p.step_id = s.id LEFT JOIN graphs g ON g.step_id = s.id
WHERE s.stage IN ('prefill', 'decode', 'mixed') AND s.kernels > 0
ORDER BY s.id)";

struct SeenStep {
  std::int64_t id = 0;
  std::optional<std::int64_t> batch, contexts, rows;
  std::int64_t kernels = 0, placed = 0, in_graph = 0, graphs = 0;
  bool warm_up = false;
  bool whole() const { return placed == kernels; }
};

Result<std::map<std::string, std::vector<SeenStep>>> seen_steps(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, run.query(std::string(kSteps)));
  std::map<std::string, std::vector<SeenStep>> stages;
  for (const auto& row : table.rows) {
    stages[row[1].text].push_back({row[0].as_int(), row[2].maybe_int(), row[3].maybe_int(), row[4].maybe_int(),
                                   row[5].as_int(), row[6].as_int(), row[7].as_int(), row[8].as_int(),
                                   row[9].as_int() != 0});
  }
  return stages;
}

// The last step of the usual kind: launched as most steady steps are, with the usual number of kernels.
const SeenStep* typical(const std::vector<SeenStep>& steps) {
  const bool any_steady = std::ranges::any_of(steps, [](const SeenStep& s) { return !s.warm_up; });
  std::int64_t steady = 0, with_graphs = 0;
  for (const SeenStep& s : steps) {
    if (any_steady && s.warm_up) continue;
    ++steady, with_graphs += s.graphs > 0 ? 1 : 0;
  }
  const bool graphs = with_graphs * 2 > steady;
  std::map<std::int64_t, std::int64_t> counts;
  const auto fits = [&](const SeenStep& s) {
    return s.rows && s.batch && s.whole() && (s.in_graph * 2 > s.placed) == graphs;
  };
  for (const SeenStep& s : steps) {
    if (fits(s)) ++counts[s.kernels];
  }
  if (counts.empty()) return nullptr;
  const std::int64_t usual =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  const SeenStep* last = nullptr;
  for (const SeenStep& s : steps) {
    if (fits(s) && s.kernels == usual && (!s.warm_up || last == nullptr || last->warm_up)) last = &s;
  }
  return last;
}

constexpr std::string_view kKernels = R"(
SELECT k.name, coalesce(k.grid_x, 1)::BIGINT * coalesce(k.grid_y, 1) * coalesce(k.grid_z, 1) AS blocks,
  coalesce(k.block_x, 1)::BIGINT * coalesce(k.block_y, 1) * coalesce(k.block_z, 1) AS threads, coalesce(a.op, '') AS op,
  a.gemm_id, g.m, g.n, g.k, g.batch, coalesce(g.layout, '') AS layout, coalesce(g.type_a, '') AS type,
  coalesce(a.module, '') AS module
FROM attribution a JOIN kernel k ON k.id = a.kernel_id LEFT JOIN gemm g ON g.id = a.gemm_id
WHERE a.step_id = {} ORDER BY k.begin_ns, k.id)";

// Names of fused attention: what libraries call it.
bool is_attention(std::string_view name) {
  constexpr std::string_view kWords[] = {"flash_fwd",         "flash_fprop",      "fmha",           "sdpa",
                                         "attention_prefill", "attention_decode", "attention_join", "paged_attention",
                                         "mha_fwd",           "flashinfer",       "_attn_fwd",      "lean_reduction"};
  const std::string lower = base::lowercase(name);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return base::contains(lower, word); });
}

Result<std::vector<StepKernel>> kernels_of(const trace::Run& run, std::int64_t step) {
  LLMPROF_LET(const trace::ResultTable table, run.query(fmt::format(fmt::runtime(kKernels), step)));
  std::vector<StepKernel> kernels;
  std::optional<std::int64_t> call;  // of the kernel before
  for (const auto& row : table.rows) {
    StepKernel kernel{row[0].text, row[1].as_int(), row[2].as_int(), row[3].text, row[11].text, std::nullopt};
    const std::optional<std::int64_t> gemm = row[4].maybe_int();
    kernel.follows = gemm && gemm == call;
    // One product with a weight; several at once are those of an attention that is not fused.
    if (gemm && !kernel.follows && row[8].as_int() == 1) {
      const bool column = row[9].text != "row";
      kernel.product = {.rows = (column ? row[6] : row[5]).as_int(),
                        .n = (column ? row[5] : row[6]).as_int(),
                        .k = row[7].as_int(),
                        .type = row[10].text};
    }
    kernel.attention = !gemm && is_attention(kernel.name);
    call = gemm;
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// Which kernels have more blocks where the context is longer: those of another step as far away as there is.
Result<void> mark_growing(const trace::Run& run, const std::vector<SeenStep>& steps, const SeenStep& step,
                          StageSteps& stage) {
  const SeenStep* other = nullptr;
  const auto apart = [&](const SeenStep& s) { return std::abs(s.contexts.value_or(0) - step.contexts.value_or(0)); };
  for (const SeenStep& s : steps) {
    if (!s.whole() || s.kernels != step.kernels || s.rows != step.rows || s.batch != step.batch) continue;
    if (other == nullptr || apart(s) > apart(*other)) other = &s;
  }
  if (other == nullptr || apart(*other) == 0) return {};
  LLMPROF_LET(const std::vector<StepKernel> kernels, kernels_of(run, other->id));
  for (std::size_t i = 0; i < std::min(kernels.size(), stage.kernels.size()); ++i)
    stage.kernels[i].grows = kernels[i].name == stage.kernels[i].name && kernels[i].blocks != stage.kernels[i].blocks;
  return {};
}

// One row per steady step of the stage: the host's terms. A graph's launch counts as the launch of all of its kernels.
constexpr std::string_view kHost = R"(
WITH steps AS (
  SELECT id, begin_ns, end_ns, lead(begin_ns) OVER (PARTITION BY thread_id ORDER BY begin_ns) AS next_ns,
    lead(stage) OVER (PARTITION BY thread_id ORDER BY begin_ns) AS next_stage, stage, warm_up
  FROM step),
events AS (
  SELECT a.step_id, k.launch_begin_ns AS launch_ns, k.begin_ns, k.end_ns, k.estimated, k.estimated IS NULL AS timed
  FROM attribution a JOIN kernel k ON k.id = a.kernel_id
  WHERE a.step_id IS NOT NULL AND k.graph_launch_id IS NULL AND k.launch_begin_ns IS NOT NULL
  UNION ALL
  SELECT p.step_id, g.launch_begin_ns, g.begin_ns, g.end_ns, NULL, false
  FROM launch_place p JOIN graph_launch g ON g.id = p.graph_launch_id
  WHERE p.step_id IS NOT NULL AND g.launch_begin_ns IS NOT NULL),
sums AS (
  SELECT step_id, count(*) AS launches, min(launch_ns) AS first_ns, max(launch_ns) AS last_ns, min(begin_ns) AS begin_ns,
    max(end_ns) AS end_ns, avg(timed::INT) AS timed_share,
    -- Of a kernel that waited for nothing: there is one in a step, if only the first.
    min(begin_ns - launch_ns) FILTER (WHERE estimated IS NULL) AS latency_ns
  FROM events GROUP BY 1)
SELECT launches,
  -- Without what recording itself took.
  (last_ns - first_ns) / greatest(1, launches - 1) - {1} * timed_share AS launch_ns, latency_ns,
  CASE WHEN s.stage = 'prefill' OR next_stage IS DISTINCT FROM s.stage THEN
    greatest(0, first_ns - s.begin_ns) + greatest(0, s.end_ns - e.end_ns)
  ELSE next_ns - s.begin_ns - (e.end_ns - first_ns) END AS around_ns
FROM steps s JOIN sums e ON e.step_id = s.id
WHERE s.stage = '{0}' AND (NOT coalesce(s.warm_up, false) OR NOT EXISTS (
  SELECT 1 FROM steps o WHERE o.stage = '{0}' AND NOT coalesce(o.warm_up, false))))";

// Other programs on the host only ever make a step longer: of few steps, the shortest is nearest to what is usual.
constexpr std::size_t kFewSteps = 8;

Calibrated calibrated(std::vector<double> values) {
  Calibrated out;
  if (values.empty()) return out;
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  };
  const bool few = values.size() < kFewSteps;
  return {few ? values.front() : at(0.5), few ? values.front() : at(0.1), few ? values.back() : at(0.9),
          sum / static_cast<double>(values.size()), static_cast<std::int64_t>(values.size())};
}

Result<void> add_host(const trace::Run& run, StageSteps& stage) {
  LLMPROF_LET(const trace::ResultTable table,
              run.query(fmt::format(fmt::runtime(kHost), stage.stage, trace::kTimedKernelNs)));
  std::vector<double> launch, latency, around;
  std::map<std::int64_t, std::int64_t> launches;
  for (const auto& row : table.rows) {
    ++launches[row[0].as_int()];
    if (row[0].as_int() > 1) launch.push_back(row[1].as_double());
    if (const auto ns = row[2].maybe_double()) latency.push_back(*ns);
    if (const auto ns = row[3].maybe_double()) around.push_back(*ns);
  }
  if (!launches.empty())
    stage.launches = std::ranges::max_element(launches, {}, [](const auto& each) { return each.second; })->first;
  stage.host = {calibrated(std::move(launch)), calibrated(std::move(latency)), calibrated(std::move(around))};
  return {};
}

// The host launches kernels of one stage about as fast as those of another: many steps of it say more than few of
// one's own that a busy host made slow.
void share_launch_times(std::vector<StageSteps>& stages) {
  for (StageSteps& stage : stages) {
    Calibrated& own = stage.host.launch_ns;
    if (stage.graph || !own.known() || own.samples >= static_cast<std::int64_t>(kFewSteps)) continue;
    for (const StageSteps& other : stages) {
      const Calibrated& more = other.host.launch_ns;
      if (other.graph || more.samples < static_cast<std::int64_t>(kFewSteps) || more.value >= own.value) continue;
      own.value = more.value, own.low = std::min(own.low, more.low);  // sums are of what happened
    }
  }
}

}  // namespace

const StageSteps* Implementation::stage(std::string_view name) const {
  const auto found = std::ranges::find(stages, name, &StageSteps::stage);
  return found == stages.end() ? nullptr : &*found;
}

Result<Implementation> read_implementation(const trace::Run& run) {
  Implementation out{.run = run.folder(), .command = run.info().command};
  LLMPROF_LET(const auto seen, seen_steps(run));
  for (const auto& [name, steps] : seen) {
    const SeenStep* step = typical(steps);
    if (step == nullptr) continue;
    StageSteps stage{.stage = name,
                     .step_id = step->id,
                     .batch = *step->batch,
                     .rows = *step->rows,
                     .contexts = step->contexts.value_or(0)};
    stage.graph = step->in_graph * 2 > step->placed;
    LLMPROF_LET(stage.kernels, kernels_of(run, step->id));
    LLMPROF_TRY(mark_growing(run, steps, *step, stage));
    std::map<std::int64_t, int> counts;
    for (const SeenStep& each : steps) {
      if (!each.warm_up) counts[each.kernels] = 1;
    }
    stage.variants = std::max<std::int64_t>(1, static_cast<std::int64_t>(counts.size()));
    LLMPROF_TRY(add_host(run, stage));
    out.stages.push_back(std::move(stage));
  }
  share_launch_times(out.stages);
  if (out.stages.empty()) {
    return Error{ErrorCode::kUsage,
                 run.folder() + ": no step of prefill or decode has all of its kernels recorded on a GPU",
                 seen.empty() ? "llmprof report RUN shows the stages that it has"
                              : "record it with --kernels all, or more steps of it"};
  }
  return out;
}

}  // namespace llmprof::predict
