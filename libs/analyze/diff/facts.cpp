// What a run was made with and on, as facts that two runs can be held against each other by.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analyze/diff/digest.h"
#include "base/human.h"
#include "base/json.h"

namespace llmprof::analyze {
namespace {

void add_fact(std::vector<WorkFact>& facts, const char* kind, std::string name, std::string text,
              std::optional<double> value = std::nullopt) {
  if (!text.empty()) facts.push_back({kind, std::move(name), std::move(text), value});
}

void fill_model_facts(const Summary& summary, std::vector<WorkFact>& facts) {
  if (summary.model_family.empty()) return;
  const bool inferred = summary.model_source == "products";
  add_fact(facts, "model", "model", inferred ? "inferred" : summary.model_family);
  if (summary.parameters) {
    const double count = static_cast<double>(*summary.parameters);
    add_fact(facts, "model", "parameters", base::human_count(count), count);
  }
  const Result<base::Json> config = base::parse_json(summary.model, "the model");
  for (const char* key : {"num_hidden_layers", "n_layer"}) {
    if (!config || !config->is_object() || !config->contains(key) || !(*config)[key].is_number()) continue;
    const double layers = (*config)[key].get<double>();
    add_fact(facts, "model", "layers", fmt::format("{:.0f}", layers), layers);
    break;
  }
  if (!summary.devices.empty()) add_fact(facts, "model", "type", summary.devices.front().type);
  if (summary.weights_read_bytes)
    add_fact(facts, "model", "weights", base::human_bytes(*summary.weights_read_bytes), summary.weights_read_bytes);
}

// Versions and variables of the environment card. Libraries of llmprof itself cannot change the program.
void fill_environment_facts(const std::string& card, std::vector<WorkFact>& facts) {
  const Result<base::Json> json = base::parse_json(card, "the environment");
  if (!json || !json->is_object()) return;
  for (const char* group : {"versions", "variables"}) {
    if (!json->contains(group) || !(*json)[group].is_object()) continue;
    for (const auto& [name, value] : (*json)[group].items()) {
      static constexpr std::string_view kOwn[] = {"build", "fmt", "nlohmann_json", "llmprof", "nvidia_driver"};
      if (value.is_string() && std::ranges::count(kOwn, name) == 0)
        add_fact(facts, "setup", name, value.get<std::string>());
    }
  }
}

}  // namespace

std::vector<WorkFact> facts_of(const trace::RunInfo& info, const Summary& summary) {
  std::vector<WorkFact> facts;
  fill_model_facts(summary, facts);
  if (!summary.devices.empty()) {
    add_fact(facts, "device", "device", summary.devices.front().name);
    const double count = static_cast<double>(std::max<std::int64_t>(summary.busy_devices, 1));
    add_fact(facts, "device", "devices", fmt::format("{:.0f}", count), count);
    if (!summary.devices.front().driver.empty()) add_fact(facts, "setup", "driver", summary.devices.front().driver);
  }
  add_fact(facts, "device", "parallelism", summary.job.known ? summary.job.groups.words() : "");
  add_fact(facts, "setup", "source",
           info.source == "record"    ? "recorded"
           : info.source == "predict" ? "predicted"
                                      : "imported (" + info.source + ")");
  // What slows a program down while it is recorded.
  add_fact(facts, "setup", "counters",
           !info.counters               ? "none"
           : info.counters->set.empty() ? "stalls"
                                        : info.counters->set);
  add_fact(facts, "setup", "recorded window", info.window.empty() ? "the whole run" : info.window);
  add_fact(facts, "setup", "llmprof", info.llmprof_version);
  add_fact(facts, "setup", "command", fmt::format("{}", fmt::join(info.command, " ")));
  fill_environment_facts(info.environment, facts);
  return facts;
}

}  // namespace llmprof::analyze
