// The built-in names of `llmprof model`.

#include <fmt/format.h>

#include "base/json.h"
#include "base/text_table.h"
#include "model/model.h"
#include "model/zoo/zoo.h"
#include "model_verb.h"
#include "report/design/parts.h"

namespace llmprof::app {

int list_models(const Arguments& arguments) {
  base::Json json = json_head("llmprof.models");
  json["models"] = base::Json::array();
  base::TextTable table(
      {{"name", base::Align::kLeft}, {"parameters"}, {"active"}, {"layers"}, {"hidden"}, {"type", base::Align::kLeft}});
  for (const model::ZooEntry& entry : model::zoo()) {
    const Result<model::Config> config = model::config_of(entry);
    if (!config) return fail(config.error());
    const model::Graph graph(*config);
    const std::int64_t parameters = model::parameters(graph), active = model::active_parameters(graph);
    table.add({entry.name, report::grouped(parameters), active < parameters ? report::grouped(active) : "",
               fmt::format("{}", config->layers()), fmt::format("{}", config->hidden), config->weight.type});
    json["models"].push_back({{"name", entry.name},
                              {"aliases", entry.aliases},
                              {"family", config->family},
                              {"parameters", parameters},
                              {"active_parameters", active},
                              {"layers", config->layers()},
                              {"hidden", config->hidden},
                              {"type", config->weight.type},
                              {"source", entry.source}});
  }
  print(arguments.on("--json") ? base::to_text(json)
                               : table.render(100, 0) + "\nllmprof model NAME says what one costs.\n");
  return 0;
}

}  // namespace llmprof::app
