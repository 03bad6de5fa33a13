#include "analyze/model/detect_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyze/model/work_reader.h"
#include "analyze/passes/repeated_products.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "analyze/steps/infer_steps.h"
#include "model/checkpoint/open_model.h"
#include "model/shard.h"

namespace llmprof::analyze {

namespace {

constexpr double kEnoughCalled = 0.8;  // of the products of a model, to be the one that ran

struct CalledSizes {
  SizeCounts usual;   // the matrix is where frameworks put it: B of row-major calls, A of column-major ones
  SizeCounts either;  // it may be A or B
  std::vector<SizedCalls> all;
  std::string type;  // of most FLOPs
};

struct GemmSizeRow {
  std::int64_t m = 0, n = 0, k = 0;
  std::string type, layout;
  std::int64_t calls = 0;
};

Result<CalledSizes> called_sizes(const trace::Run& run) {
  LLMPROF_LET(const std::vector<GemmSizeRow> rows, ask_rows<GemmSizeRow>(run, "gemm_sizes"));
  CalledSizes called;
  std::map<std::string, double> flops;
  for (const auto& [m, n, k, type, layout, calls] : rows) {
    called.usual[{k, layout == "row" ? n : m}] += calls;
    called.either[{k, n}] += calls;
    if (m != n) called.either[{k, m}] += calls;
    called.all.push_back({m, n, k, calls});
    flops[type] += model::gemm_flops(m, n, k, calls);
  }
  const auto most =
      std::max_element(flops.begin(), flops.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != flops.end()) called.type = most->first;
  return called;
}

// Products are executed in the type of their operands. A plain checkpoint that is loaded in another type has weights of
// that one; a quantised one is left as it says.
void take_executed_type(const CalledSizes& called, FoundModel& found) {
  model::Config& config = *found.config;
  const auto number = model::number_of(called.type);
  if (!number || config.quantization || number->type == config.arithmetic) return;
  for (const auto& [module, stored] : config.stored) {
    if (stored != config.weight && !model::number_of(stored.type)) return;
  }
  const std::string before = config.arithmetic;
  config.stored.clear();
  config.set_type(*number);
  if (!found.note.empty()) found.note += "; ";
  found.note += fmt::format("counted in {}, the type of the run's products (the config says {})", number->type, before);
}

Result<model::Config> config_of(const trace::NotedModel& noted) {
  LLMPROF_LET(model::Config config, model::parse_config(noted.text, noted.origin));
  constexpr double kMostBytes = 16;  // of one weight; a run may come from a stranger
  for (const auto& [module, number] : noted.stored) {
    if (number.second > 0 && number.second <= kMostBytes) config.stored[module] = {number.first, number.second};
  }
  LLMPROF_TRY(
      model::set_types(config, {noted.weights_type, noted.kv_type, noted.activations_type, noted.arithmetic_type}));
  return config;
}

void use(const trace::NotedModel& noted, Result<model::Config> config, FoundModel& found) {
  found.text = noted.text;
  found.source = noted.source;
  found.origin = noted.origin;
  if (config) {
    found.config = std::move(*config);
  } else {
    found.why = config.error().message;
  }
}

bool find_given(const trace::Run& run, FoundModel& found) {
  for (const trace::NotedModel& noted : run.info().models) {
    if (noted.source != "given") continue;
    use(noted, config_of(noted), found);
    return true;
  }
  return false;
}

Result<bool> find_declared(const trace::Run& run, FoundModel& found) {
  LLMPROF_LET(const trace::ResultTable mark, ask(run, "model_mark"));
  if (mark.rows.empty()) return false;
  const trace::NotedModel noted{"declared", "declared by the program", mark.rows[0][0].text, {}};
  use(noted, model::parse_config(noted.text, "the model the run declares"), found);
  return true;
}

// Of several the one whose products were called most, the last opened among equals.
bool find_opened(const trace::Run& run, const CalledSizes& called, FoundModel& found) {
  double best = -1;
  int candidates = 0;
  for (const trace::NotedModel& noted : run.info().models) {
    if (noted.source != "opened") continue;
    auto config = config_of(noted);
    if (!config) continue;
    ++candidates;
    const double share = share_called(*config, called.either);
    if (share < best) continue;
    best = share;
    use(noted, std::move(config), found);
  }
  if (candidates > 1) {
    found.note = best > 0 ? fmt::format("one of {} that the program used: {:.0f} % of its products were called",
                                        candidates, 100 * best)
                          : fmt::format("the last of {} that the program used", candidates);
  } else if (candidates == 1 && !called.either.empty() && best < kEnoughCalled) {
    found.note = fmt::format("only {:.0f} % of its products were seen to be called", 100 * best);
  }
  return candidates > 0;
}

std::string listed(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

Result<bool> find_by_shapes(const CalledSizes& called, FoundModel& found) {
  if (called.either.empty()) return false;
  Recognised recognised = recognise(called.usual);
  if (recognised.name.empty()) recognised = recognise(called.either);
  if (recognised.name.empty()) {
    if (!recognised.near.empty())
      found.why = fmt::format("the shapes of its matrix products are near those of {}", listed(recognised.near));
    return false;
  }
  LLMPROF_LET(model::OpenedModel opened, model::open_model(recognised.name));
  found.config = std::move(opened.config);
  found.text = std::move(opened.config_text);
  found.source = "shapes";
  found.origin = fmt::format("inferred from GEMM shapes: {}", recognised.name);
  if (!recognised.same.empty()) found.note = fmt::format("{} has the same products", listed(recognised.same));
  return true;
}

// ---- a model that no library has ----------------------------------------------------------------------------------

struct SeenPasses {
  std::vector<std::vector<PassProduct>> passes;  // forward
  bool trains = false, rotates = false;
  std::int64_t updates = 0;
  std::vector<CallShape> gradients;  // of weights
};

// A product with weights; one of two vectors makes angles of positions.
void add_product(const CallShape& s, std::vector<PassProduct>& pass, bool& rotates) {
  if (s.batch != 1 || s.m <= 0 || s.n <= 0) return;
  rotates = rotates || s.k == 1;
  if (s.k <= 1) return;
  const bool by_rows = s.order == CallShape::Order::kRowMajor;
  pass.push_back({{s.k, by_rows ? s.n : s.m}, by_rows ? s.m : s.n});
}

void add_passes(const Calls& calls, const Matches& matches, SeenPasses& seen) {
  std::vector<std::vector<PassProduct>> passes(matches.passes.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::int32_t pass = matches.calls[i].pass;
    if (pass != kNone) add_product(calls.shapes[calls.shape[i]], passes[pass], seen.rotates);
  }
  for (std::size_t i = 0; i < passes.size(); ++i) {  // encoders and models that draft are others
    if (matches.passes[i].of == MatchedPass::Of::kModel) seen.passes.push_back(std::move(passes[i]));
  }
}

void add_training(const Calls& calls, const std::vector<TrainingPass>& training, SeenPasses& seen) {
  std::map<std::int64_t, std::vector<const TrainingPass*>> forward;  // by thread, by begin
  for (const TrainingPass& pass : training) {
    if (pass.kind == TrainingPass::Kind::kOptimizer) ++seen.updates;
    if (pass.kind == TrainingPass::Kind::kForward) forward[pass.thread_id].push_back(&pass);
  }
  std::map<const TrainingPass*, std::vector<PassProduct>> products;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CallShape& shape = calls.shapes[calls.shape[i]];
    const auto thread = forward.find(calls.thread_id[i]);
    if (thread == forward.end()) continue;
    const auto behind = std::ranges::upper_bound(thread->second, calls.begin_ns[i], {}, &TrainingPass::begin_ns);
    if (behind == thread->second.begin() || (*std::prev(behind))->end_ns <= calls.begin_ns[i]) continue;
    add_product(shape, products[*std::prev(behind)], seen.rotates);
  }
  for (auto& [pass, list] : products) seen.passes.push_back(std::move(list));
  for (const CallShape& shape : calls.shapes) {
    if (adds_up_rows(shape)) seen.gradients.push_back(shape);
  }
}

// Of the first calls: what repeats is there.
Result<SeenPasses> seen_passes(const trace::Run& run) {
  LLMPROF_LET(const ProcessOfThread process_of_thread, read_threads(run));
  LLMPROF_LET(RunCalls direct, read_calls(run, process_of_thread, 1));
  LLMPROF_LET(const RunCalls captured, read_captured_calls(run));
  LLMPROF_LET(const std::vector<TrainingPass> training, find_training(run, direct.calls, process_of_thread));
  SeenPasses seen;
  seen.trains = !training.empty();
  if (seen.trains) {
    add_training(direct.calls, training, seen);
    return seen;
  }
  direct.calls.segment.assign(direct.calls.size(), 0);
  const std::optional<MatrixSize> separator = separating_matrix(direct.calls, captured.calls);
  if (!separator) return seen;
  add_passes(direct.calls, repeated_passes(direct.calls, *separator), seen);
  add_passes(captured.calls, repeated_passes(captured.calls, *separator), seen);
  return seen;
}

// The products that most passes are made of; empty if fewer than half are.
std::vector<PassProduct> usual_pass(const std::vector<std::vector<PassProduct>>& passes) {
  std::map<std::vector<MatrixSize>, std::vector<const std::vector<PassProduct>*>> alike;
  for (const std::vector<PassProduct>& pass : passes) {
    std::vector<MatrixSize> sizes;
    for (const PassProduct& product : pass) sizes.push_back(product.size);
    alike[std::move(sizes)].push_back(&pass);
  }
  const auto most = std::ranges::max_element(alike, {}, [](const auto& entry) { return entry.second.size(); });
  if (most == alike.end() || 2 * most->second.size() < passes.size()) return {};
  return *most->second.back();
}

// Optimizers of PyTorch that update many parameters at once work on 65,536 values a block: how many they update, not
// more than a block for each too high. nullopt: there is none.
Result<std::optional<double>> updated_parameters(const trace::Run& run, std::int64_t updates) {
  constexpr double kBlockValues = 65536;
  if (updates == 0) return std::optional<double>{};
  LLMPROF_LET(const std::int64_t blocks,
              ask_number(run,
                         "SELECT mode(blocks) FROM (SELECT sum(grid_x)::BIGINT AS blocks FROM kernel WHERE name LIKE "
                         "'%multi_tensor_apply%' GROUP BY name)"));
  if (blocks == 0) return std::optional<double>{};
  return std::optional(static_cast<double>(blocks) / static_cast<double>(updates) * kBlockValues);
}

// Heads, biases, whether logits and embeddings share their matrix: none of it changes what products cost.
Result<void> add_details(const trace::Run& run, const SeenPasses& seen, const std::string& type, ShapesModel& model) {
  LLMPROF_LET(const trace::ResultTable names, run.query("SELECT DISTINCT name FROM kernel WHERE name IS NOT NULL"));
  std::set<std::int64_t> dims;
  for (const auto& row : names.rows) {
    if (const std::int64_t dim = head_dim_of_kernel(row[0].text); dim > 0) dims.insert(dim);
  }
  if (dims.size() == 1 && model.q % *dims.begin() == 0 && model.kv % *dims.begin() == 0) model.head_dim = *dims.begin();
  LLMPROF_LET(const std::int64_t biased, ask_number(run, "SELECT count(*) FROM gemm WHERE epilogue ILIKE '%bias%'"));
  model.bias = biased > 0;
  model.rope = seen.rotates || model.gated;
  if (model::number_of(type)) model.type = type;
  const auto is_gradient = [&](const CallShape& s) {
    return (s.m == model.hidden && s.n == model.width) || (s.n == model.hidden && s.m == model.width);
  };
  model.frozen = seen.trains && !model.adapters.empty() && std::ranges::none_of(seen.gradients, is_gradient);
  LLMPROF_LET(const std::optional<double> updated, updated_parameters(run, seen.updates));
  if (!updated || model.frozen || model.vocab == 0) return {};
  ShapesModel apart = model;
  apart.tied = false;
  LLMPROF_LET(const model::Config config, model::parse_config(apart.config(), "inferred"));
  model.tied = *updated < static_cast<double>(model::parameters(model::Graph(config)));
  return {};
}

Result<bool> find_by_products(const trace::Run& run, const CalledSizes& called, FoundModel& found) {
  constexpr double kLeastExplained = 0.95;  // of the FLOPs of all products
  LLMPROF_LET(const SeenPasses seen, seen_passes(run));
  Inferred inferred = infer_model(usual_pass(seen.passes), seen.trains);
  if (!inferred.model) {
    if (!inferred.why.empty()) found.why = inferred.why;
    return false;
  }
  const double share = explained(*inferred.model, called.all);
  if (share < kLeastExplained) {
    found.why = fmt::format(
        "{:.0f} % of the FLOPs of its matrix products are no part of the model that most of its "
        "passes are made of ({})",
        100 * (1 - share), inferred.model->words());
    return false;
  }
  LLMPROF_TRY(add_details(run, seen, called.type, *inferred.model));
  found.text = inferred.model->config();
  LLMPROF_LET(found.config, model::parse_config(found.text, "the model that the run's products tell"));
  found.source = "products";
  found.origin = fmt::format("inferred from the shapes of its matrix products: {}", inferred.model->words());
  found.why = "";
  if (inferred.model->vocab > 0 && !inferred.model->tied)
    found.note = "logits and embeddings are counted as one matrix, which they may not be";
  if (inferred.model->vocab == 0) {
    found.note = "parameters: those of its layers";
    if (inferred.model->causal) found.note += "; attention is counted as causal, which it may not be";
  }
  return true;
}

Result<bool> find_any(const trace::Run& run, const Options& options, const CalledSizes& called, FoundModel& found) {
  if (!options.model.empty()) {
    LLMPROF_LET(model::OpenedModel opened, model::open_model(options.model));
    found.config = std::move(opened.config);
    found.text = std::move(opened.config_text);
    found.source = "option";
    found.origin = fmt::format("--model {}", options.model);
    return true;
  }
  if (find_given(run, found)) return true;
  LLMPROF_LET(const bool declared, find_declared(run, found));
  if (declared || find_opened(run, called, found)) return true;
  LLMPROF_LET(const bool built_in, find_by_shapes(called, found));
  return built_in || called.all.empty() ? Result<bool>(built_in) : find_by_products(run, called, found);
}

}  // namespace

double share_called(const model::Config& config, const SizeCounts& counts) {
  const Products products = products_of(model::Graph(config), counts);
  if (products.slots.empty()) return 0;
  const auto called = std::count_if(products.slots.begin(), products.slots.end(),
                                    [&](const Slot& slot) { return counts.contains(slot.size); });
  return static_cast<double>(called) / static_cast<double>(products.slots.size());
}

std::optional<std::int64_t> tensor_ranks(const model::Config& whole, const SizeCounts& counts) {
  if (counts.empty()) return std::nullopt;
  if (share_called(whole, counts) >= kEnoughCalled) return 1;
  for (const std::int64_t ranks : {2, 4, 8, 16, 32}) {
    const auto part = model::shard(whole, {.tensor = ranks}, {});
    if (part && share_called(*part, counts) >= kEnoughCalled) return ranks;
  }
  return std::nullopt;
}

Result<FoundModel> find_model(const trace::Run& run, const Options& options) {
  FoundModel found;
  LLMPROF_LET(const CalledSizes called, called_sizes(run));
  LLMPROF_LET(const bool any, find_any(run, options, called, found));
  if (!any) {
    const std::string hint = "pass --model, to record or to report, or annotate with llmprof_model()";
    found.why = found.why.empty() ? fmt::format("the run does not say its model; {}", hint)
                                  : fmt::format("the run does not say its model; {}; {}", found.why, hint);
  }
  if (found.config) found.tensor = tensor_ranks(*found.config, called.either);
  if (found.config && found.source != "declared") take_executed_type(called, found);
  return found;
}

}  // namespace llmprof::analyze
