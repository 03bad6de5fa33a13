#include "predict/implementation/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.h"

namespace llmprof::predict {
namespace {

std::set<std::int64_t> powers(std::int64_t first, std::int64_t most) {
  std::set<std::int64_t> all;
  for (std::int64_t n = first; n <= most; n *= 2) all.insert(n);
  return all;
}

struct Weight {
  bool last = true;  // only ever multiplied by the last token of each sequence
};

base::Json products_of(const Implementation& implementation) {
  std::map<std::pair<std::int64_t, std::int64_t>, Weight> weights;
  for (const StageSteps& stage : implementation.stages) {
    for (const StepKernel& kernel : stage.kernels) {
      if (!kernel.product) continue;
      Weight& weight = weights[{kernel.product->n, kernel.product->k}];
      if (stage.stage != "decode" && kernel.product->rows != stage.batch) weight.last = false;
    }
  }
  base::Json all = base::Json::array();
  for (const auto& [size, weight] : weights)
    all.push_back({{"n", size.first}, {"k", size.second}, {"last", weight.last}});
  return all;
}

base::Json places_of(const StageSteps& stage, const ProbeLimits& limits) {
  const bool decode = stage.stage == "decode";
  base::Json places = base::Json::array();
  for (const std::int64_t batch : powers(1, std::min<std::int64_t>(limits.max_batch, decode ? 64 : 32))) {
    for (const std::int64_t tokens : powers(128, limits.max_context)) {
      if (decode) {
        places.push_back({batch, 1, tokens});
      } else if (batch * tokens <= 8 * limits.max_tokens) {
        places.push_back({batch, tokens, tokens});
      }
    }
  }
  return places;
}

base::Json attention_of(const Implementation& implementation, const ProbeLimits& limits) {
  base::Json all = base::Json::array();
  for (const StageSteps& stage : implementation.stages) {
    const auto kernel = std::ranges::find_if(stage.kernels, &StepKernel::attention);
    if (kernel == stage.kernels.end() || (stage.stage != "decode" && stage.stage != "prefill")) continue;
    const std::int64_t contexts = stage.contexts > 0 ? stage.contexts : stage.rows;
    all.push_back({{"stage", stage.stage},
                   {"kernel", kernel->name},
                   {"blocks", kernel->blocks},
                   {"batch", stage.batch},
                   {"q", std::max<std::int64_t>(1, stage.rows / stage.batch)},
                   {"kv", std::max<std::int64_t>(1, contexts / stage.batch)},
                   {"places", places_of(stage, limits)}});
  }
  return all;
}

// Doubling, and half-way between from 256 on: times of products are not smooth there.
std::set<std::int64_t> prefill_rows(const ProbeLimits& limits) {
  std::set<std::int64_t> rows = powers(64, limits.max_tokens);
  for (const std::int64_t n : powers(384, limits.max_tokens)) rows.insert(n);
  return rows;
}

// Rows of one step of a run: by the place of each kernel among those that are neither products nor attention, which
// is the same at all sizes of an implementation: libraries split these two into several kernels at some sizes.
void add_step(const StageSteps& stage, const std::vector<double>& ns, ProbedRows& out) {
  const double batch = static_cast<double>(stage.batch), rows = static_cast<double>(stage.rows);
  const double contexts = static_cast<double>(stage.contexts > 0 ? stage.contexts : stage.rows);
  std::int64_t place = 0;
  for (std::size_t i = 0; i < stage.kernels.size(); ++i) {
    const StepKernel& kernel = stage.kernels[i];
    if (kernel.follows) continue;
    double call_ns = ns[i];
    std::vector<std::string> names{kernel.name};
    for (std::size_t j = i + 1; j < stage.kernels.size() && stage.kernels[j].follows; ++j)
      call_ns += ns[j], names.push_back(stage.kernels[j].name);
    if (kernel.product) {
      const WeightProduct& p = *kernel.product;
      out.products.push_back({static_cast<double>(p.rows), static_cast<double>(p.n), static_cast<double>(p.k), p.type,
                              stage.stage, stage.graph, names, call_ns});
    } else if (kernel.attention) {
      if (i > 0 && stage.kernels[i - 1].attention) continue;
      for (std::size_t j = i + 1; j < stage.kernels.size() && stage.kernels[j].attention; ++j) call_ns += ns[j];
      out.attention.push_back({stage.stage, "as recorded", kernel.name, true, 1, 1, 1, batch, rows / batch,
                               contexts / batch, names, call_ns});
    } else {
      out.kernels.push_back({kernel.name, fmt::format("kernel {}", place++), kernel.grows ? "context" : "rows",
                             stage.stage, stage.graph, kernel.grows ? contexts : rows,
                             static_cast<double>(kernel.blocks), static_cast<double>(kernel.threads), call_ns});
    }
  }
}

constexpr std::string_view kTimes = R"(
SELECT (k.end_ns - k.begin_ns)::DOUBLE,
  (k.begin_ns - lag(k.end_ns) OVER (ORDER BY k.begin_ns, k.id))::DOUBLE
FROM attribution a JOIN kernel k ON k.id = a.kernel_id
WHERE a.step_id = {} ORDER BY k.begin_ns, k.id)";

}  // namespace

std::string probe_spec(const Implementation& implementation, const model::Config& config, const ProbeLimits& limits) {
  const model::LayerKind& kind = config.kinds.front();
  base::Json spec{{"model",
                   {{"hidden", config.hidden},
                    {"heads", kind.attention.heads},
                    {"kv_heads", kind.attention.kv_heads},
                    {"head_dim", kind.attention.qk_dim},
                    {"intermediate", kind.mlp.width},
                    {"vocab", config.vocab},
                    {"dtype", config.weight.type}}},
                  {"seconds", limits.seconds},
                  {"products", products_of(implementation)},
                  {"attention", attention_of(implementation, limits)}};
  std::set<std::int64_t> graph_rows, eager_rows, prompts = prefill_rows(limits);
  bool grows = false;
  for (const StageSteps& stage : implementation.stages) {
    for (const StepKernel& kernel : stage.kernels) grows = grows || kernel.grows;
    if (stage.stage == "decode") {
      std::set<std::int64_t>& rows = stage.graph ? graph_rows : eager_rows;
      rows = powers(1, limits.max_batch);
      rows.insert(stage.rows);
    } else if (stage.rows <= limits.max_tokens) {
      prompts.insert(stage.rows);
    }
  }
  // What is done for the last token of each prompt is looked up there.
  if (graph_rows.empty() && eager_rows.empty()) eager_rows = powers(1, limits.max_batch);
  spec["decode_rows"] = graph_rows, spec["eager_rows"] = eager_rows, spec["prefill_rows"] = prompts;
  spec["contexts"] = grows ? base::Json(std::vector<std::int64_t>{512, 2048, 8192, 32768}) : base::Json::array();
  return spec.dump();
}

Result<ProbedRows> rows_of_run(const trace::Run& run) {
  LLMPROF_LET(const Implementation implementation, read_implementation(run));
  ProbedRows out{.framework = "recorded", .version = run.folder()};
  std::vector<double> graph_gaps, queued_gaps;
  for (const StageSteps& stage : implementation.stages) {
    LLMPROF_LET(const trace::ResultTable table, run.query(fmt::format(fmt::runtime(kTimes), stage.step_id)));
    std::vector<double> ns;
    for (const auto& row : table.rows) {
      ns.push_back(std::max(1.0, row[0].as_double()));
      // Gaps of kernels that waited for a launch are the host's.
      if (const auto gap = row[1].maybe_double(); gap && *gap > 0 && *gap < 3000)
        (stage.graph ? graph_gaps : queued_gaps).push_back(*gap);
    }
    if (ns.size() == stage.kernels.size()) add_step(stage, ns, out);
  }
  const auto median = [](std::vector<double>& all) {
    if (all.empty()) return 0.0;
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    return all[all.size() / 2];
  };
  out.graph_gap_ns = median(graph_gaps), out.queued_gap_ns = median(queued_gaps);
  return out;
}

}  // namespace llmprof::predict
