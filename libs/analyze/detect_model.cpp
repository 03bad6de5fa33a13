#include "analyze/detect_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/questions.h"
#include "analyze/rows_of.h"
#include "model/checkpoint/open_model.h"

namespace llmprof::analyze {
namespace {

constexpr double kEnoughCalled = 0.8;  // of the products of a model, to be the one that ran

struct CalledSizes {
  SizeCounts usual;   // the matrix is where frameworks put it: B of row-major calls, A of column-major ones
  SizeCounts either;  // it may be A or B
  std::string type;  // of most FLOPs
};

Result<CalledSizes> called_sizes(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/gemm_sizes"));
  CalledSizes called;
  std::map<std::string, double> flops;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    const std::int64_t m = row.integer("m"), n = row.integer("n"), k = row.integer("k"), calls = row.integer("calls");
    called.usual[{k, row.text("layout") == "row" ? n : m}] += calls;
    called.either[{k, n}] += calls;
    if (m != n) called.either[{k, m}] += calls;
    flops[row.text("type")] += model::gemm_flops(m, n, k, calls);
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
  LLMPROF_LET(const trace::ResultTable mark, ask(run, "sql/model_mark"));
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
  return find_by_shapes(called, found);
}

}  // namespace

double share_called(const model::Config& config, const SizeCounts& counts) {
  const Products products = products_of(model::Graph(config), counts);
  if (products.slots.empty()) return 0;
  const auto called = std::count_if(products.slots.begin(), products.slots.end(),
                                    [&](const Slot& slot) { return counts.contains(slot.size); });
  return static_cast<double>(called) / static_cast<double>(products.slots.size());
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
  if (found.config && found.source != "declared") take_executed_type(called, found);
  return found;
}

}  // namespace llmprof::analyze
