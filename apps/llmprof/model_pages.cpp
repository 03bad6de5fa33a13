// llmprof model --measured FILE: a printed profile held against the model's analysis; --list: the built-in names.

#include <fmt/format.h>

#include <charconv>

#include "analyze/measures/measured_findings.h"
#include "base/file.h"
#include "base/json.h"
#include "model/model.h"
#include "model/zoo/zoo.h"
#include "model_verb.h"
#include "report/measured.h"
#include "report/table.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

// "4714.27MiB", "4.9GB", "4943270420" in bytes.
Result<double> size_of(const Arguments& arguments, std::string_view flag) {
  const std::string text = arguments.get(flag);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"kB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
  for (const auto& [name, bytes] : kUnits) {
    if (failure == std::errc{} && unit == name && value > 0 && value * bytes < 1e18) return value * bytes;
  }
  return Error{ErrorCode::kUsage, fmt::format("{}: '{}' is not a size", flag, text), "write it as 4714.27MiB or 4.9GB"};
}

}  // namespace

Result<std::string> measured_page(const Arguments& arguments, const analyze::design::Subject& subject,
                                  const analyze::design::Roof& roof) {
  const std::string file = arguments.get("--measured");
  LLMPROF_LET(const std::string text, base::read_file(file, importers::kMaxMeasuredBytes));
  LLMPROF_LET(const importers::MeasuredTable table, importers::parse_key_averages(text, file));
  std::optional<double> weights_bytes;
  if (arguments.given("--measured-weights")) {
    LLMPROF_LET(weights_bytes, size_of(arguments, "--measured-weights"));
  }
  const report::MeasuredPage page{.model = arguments.positionals.at(0),
                                  .device = roof.device,
                                  .file = file,
                                  .findings = analyze::explain(subject.config, table, weights_bytes, roof)};
  return laid_out(page, arguments, "llmprof.model_measured");
}

Result<int> list_models(const Arguments& arguments) {
  base::Json rows = base::Json::array();
  for (const model::ZooEntry& entry : model::zoo()) {
    LLMPROF_LET(const model::Config config, model::config_of(entry));
    const model::Graph graph(config);
    const std::int64_t parameters = model::parameters(graph), active = model::active_parameters(graph);
    rows.push_back({{"name", entry.name},
                    {"aliases", entry.aliases},
                    {"family", config.family},
                    {"parameters", parameters},
                    {"active_parameters", active},
                    {"layers", config.layers()},
                    {"hidden", config.hidden},
                    {"type", config.weight.type},
                    {"source", entry.source}});
    if (active < parameters) rows.back()["active"] = active;
  }
  if (arguments.on("--json")) {
    base::Json json = json_head("llmprof.models");
    json.update(report::described("llmprof.models", {{"models", std::move(rows)}}));
    print(base::to_text(json));
  } else {
    print(report::TableText(rows, {}, SIZE_MAX, 0).rows("llmprof.models.models[]", rows) +
          "\nllmprof model NAME says what one costs.\n");
  }
  return 0;
}

}  // namespace llmprof::app
