#include "predict/backtests.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "base/asset.h"
#include "base/file.h"
#include "base/strings.h"
#include "importers/input.h"
#include "importers/serving_files.h"
#include "predict/tables/read_tables.h"

namespace llmprof::predict_backtests {
std::span<const base::Asset> assets();  // made by llmprof_embed_assets
}

namespace llmprof::predict {
namespace {

constexpr std::uint64_t kMostBytes = 64u << 20;

Result<std::string> plain(std::string_view path, std::string_view bytes) {
  importers::Input input = importers::Input::of_text(std::string(path), std::string(bytes), kMostBytes);
  return input.read_all(kMostBytes);
}

// Mean, p50 and p99 of a metric: whether the measured ones lie in the stated interval.
void count_covered(const serving::ComparedMetric& compared, const serving::Distribution& low,
                   const serving::Distribution& high, ServingBacktest& out) {
  const auto count = [&](double measured, double least, double most) {
    ++out.stated;
    out.covered += measured >= least && measured <= most ? 1 : 0;
  };
  count(compared.mean.measured, low.mean, high.mean);
  count(compared.p50.measured, low.p50, high.p50);
  count(compared.p99.measured, low.p99, high.p99);
}

Result<ServingBacktest> of_assets(const std::string& folder, bool with_tables) {
  OperatorTables tables;
  Deployment deployment;
  serving::Workload workload;
  std::vector<serving::MeasuredRequest> measured;
  for (const base::Asset& asset : predict_backtests::assets()) {
    if (!asset.path.starts_with(folder)) continue;
    LLMPROF_LET(const std::string text, plain(asset.path, asset.bytes));
    const std::string_view name = asset.path.substr(asset.path.rfind('/') + 1);
    if (name == "meta.json") {
      LLMPROF_LET(deployment, parse_deployment(text, std::string(asset.path)));
    } else if (name.starts_with("workload")) {
      LLMPROF_LET(workload, serving::parse_trace(text, asset.path));
    } else if (name.starts_with("measured")) {
      LLMPROF_LET(measured, serving::parse_measured(text, asset.path));
    } else if (const TableKind* kind = kind_of_file(name); kind != nullptr && with_tables) {
      LLMPROF_TRY(read_table_text(*kind, text, std::string(asset.path), tables));
    }
  }
  LLMPROF_LET(ServingInput input, serving_input(deployment, std::move(tables)));
  input.workload = std::move(workload);
  LLMPROF_LET(ServingBacktest out, backtest_serving(std::move(deployment), std::move(input), measured));
  out.with_tables = with_tables;
  return out;
}

// The file of a folder whose name contains this word.
Result<std::string> file_with(const std::string& folder, std::string_view word) {
  std::error_code error;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().find(word) != std::string::npos) found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  if (found.size() == 1) return found.front();
  return Error{
      ErrorCode::kNotFound,
      fmt::format("{}: {} file whose name contains '{}'", folder, found.empty() ? "no" : "more than one", word),
      "a back-test is a folder with meta.json, operator tables, a workload and measured requests"};
}

// "vllm@0.19" of "vllm@0.19.1".
std::string_view without_patch(std::string_view engine) {
  const std::size_t first = engine.find('.'), second = engine.find('.', first + 1);
  return first == std::string_view::npos ? engine : engine.substr(0, second);
}

}  // namespace

Result<ServingBacktest> backtest_serving(Deployment deployment, ServingInput input,
                                         const std::vector<serving::MeasuredRequest>& measured) {
  ServingBacktest out;
  input.since = serving::Since::kQueued;  // that is when the engine's own clock begins
  LLMPROF_LET(const ServingForecast forecast, forecast_serving(input));
  LLMPROF_LET(out.comparison, serving::compare(forecast.simulation, measured, input.since));
  out.name = fmt::format("{}, {}, {}", deployment.engine, deployment.model, deployment.device);
  out.deployment = std::move(deployment);
  out.error = forecast.error;
  out.operators = forecast.operator_errors;
  count_covered(out.comparison.ttft_ns, forecast.low.ttft_ns, forecast.high.ttft_ns, out);
  count_covered(out.comparison.tpot_ns, forecast.low.tpot_ns, forecast.high.tpot_ns, out);
  count_covered(out.comparison.e2e_ns, forecast.low.e2e_ns, forecast.high.e2e_ns, out);
  return out;
}

Result<ServingBacktest> backtest_folder(const std::string& folder) {
  LLMPROF_LET(Deployment deployment, find_deployment({folder}));
  if (deployment.path.empty())
    return Error{ErrorCode::kNotFound, folder + ": no meta.json", "it says model, device and the engine's settings"};
  LLMPROF_LET(OperatorTables tables, read_tables(folder, deployment.tensor));
  LLMPROF_LET(ServingInput input, serving_input(deployment, std::move(tables)));
  LLMPROF_LET(const std::string workload, file_with(folder, "workload"));
  LLMPROF_LET(input.workload, importers::read_trace(workload));
  LLMPROF_LET(const std::string path, file_with(folder, "measured"));
  LLMPROF_LET(const std::vector<serving::MeasuredRequest> measured, importers::read_measured(path));
  return backtest_serving(std::move(deployment), std::move(input), measured);
}

Result<std::vector<ServingBacktest>> built_in_backtests(bool with_tables) {
  std::set<std::string> folders;
  for (const base::Asset& asset : predict_backtests::assets()) {
    // Others hold single steps: step_backtests.h.
    if (base::contains(asset.path, "/measured_requests"))
      folders.insert(std::string(asset.path.substr(0, asset.path.rfind('/') + 1)));
  }
  std::vector<ServingBacktest> out;
  for (const std::string& folder : folders) {
    LLMPROF_LET(ServingBacktest backtest, of_assets(folder, with_tables));
    out.push_back(std::move(backtest));
  }
  return out;
}

const ServingBacktest* nearest(const std::vector<ServingBacktest>& known, const Deployment& deployment) {
  const auto likeness = [&](const ServingBacktest& each) {
    const Deployment& other = each.deployment;
    return 8 * static_cast<int>(other.engine.substr(0, other.engine.find('@')) ==
                                deployment.engine.substr(0, deployment.engine.find('@'))) +
           4 * static_cast<int>(other.device == deployment.device) +
           2 * static_cast<int>(other.model == deployment.model) +
           static_cast<int>(without_patch(other.engine) == without_patch(deployment.engine));
  };
  const auto best = std::ranges::max_element(known, {}, likeness);
  return best == known.end() ? nullptr : &*best;
}

}  // namespace llmprof::predict
