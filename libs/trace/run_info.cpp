#include "trace/run_info.h"

#include <fmt/format.h>

#include "base/fields_json.h"
#include "base/json.h"
#include "trace/table_files.h"

namespace llmprof::trace {
namespace {

using base::Json;

constexpr std::string_view kFormat = "llmprof-run";

Error not_a_run(std::string_view where, std::string_view what) {
  return Error{ErrorCode::kCorruptInput, fmt::format("{}: not a run: {}", where, what),
               "runs are folders that llmprof record or import made"};
}

std::string text_or(const Json& json, const char* key, const char* fallback) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : fallback;
}

Result<void> check_version(const Json& json, std::string_view where) {
  const auto version = json.find("format_version");
  if (text_or(json, "format", "") != kFormat || version == json.end() || !version->is_number_unsigned()) {
    return not_a_run(where, "it does not say format llmprof-run and a format_version");
  }
  const auto number = version->get<std::uint64_t>();
  if (number == 0) return not_a_run(where, "format_version is 0");
  if (number <= kRunFormatVersion) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: made by llmprof {} with run format {}; this llmprof knows up to {}", where,
                           text_or(json, "llmprof_version", "(unknown)"), number, kRunFormatVersion),
               "update llmprof"};
}

// Keys of "types" of a model.
constexpr std::pair<const char*, std::string NotedModel::*> kAskedTypes[] = {
    {"weights", &NotedModel::weights_type},
    {"kv", &NotedModel::kv_type},
    {"activations", &NotedModel::activations_type},
    {"arithmetic", &NotedModel::arithmetic_type}};

}  // namespace

base::Json models_to_json(const std::vector<NotedModel>& models) {
  Json out = Json::array();
  for (const NotedModel& model : models) {
    Json row{{"source", model.source}, {"origin", model.origin}, {"config", model.text}};
    for (const auto& [module, number] : model.stored) row["stored"][module] = {number.first, number.second};
    for (const auto& [key, member] : kAskedTypes) {
      if (!(model.*member).empty()) row["types"][key] = model.*member;
    }
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<NotedModel> models_from_json(const base::Json& json) {
  std::vector<NotedModel> models;
  if (!json.is_array()) return models;
  for (const Json& row : json) {
    if (!row.is_object()) continue;
    models.push_back({text_or(row, "source", ""), text_or(row, "origin", ""), text_or(row, "config", ""), {}});
    if (const auto types = row.find("types"); types != row.end() && types->is_object()) {
      for (const auto& [key, member] : kAskedTypes) models.back().*member = text_or(*types, key, "");
    }
    const auto stored = row.find("stored");
    if (stored == row.end() || !stored->is_object()) continue;
    for (const auto& [module, number] : stored->items()) {
      if (number.is_array() && number.size() == 2 && number[0].is_string() && number[1].is_number())
        models.back().stored[module] = {number[0].get<std::string>(), number[1].get<double>()};
    }
  }
  return models;
}

Json rules_to_json(const NotedRules& rules) {
  if (rules.rules.empty()) return nullptr;
  Json rows = Json::array();
  for (const NotedRules::Rule& rule : rules.rules)
    rows.push_back({{"name", rule.name}, {"is", rule.is}, {"stage", rule.stage}});
  return {{"origin", rules.origin}, {"rules", std::move(rows)}};
}

NotedRules rules_from_json(const Json& json) {
  NotedRules out;
  if (!json.is_object()) return out;
  out.origin = text_or(json, "origin", "");
  const auto rows = json.find("rules");
  if (rows == json.end() || !rows->is_array()) return out;
  for (const Json& row : *rows) {
    if (row.is_object())
      out.rules.push_back({text_or(row, "name", ""), text_or(row, "is", ""), text_or(row, "stage", "")});
  }
  return out;
}

Json counters_to_json(const std::optional<AskedCounters>& counters) { return base::fields_json(counters); }

std::optional<AskedCounters> counters_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  AskedCounters counters;
  counters.set = text_or(json, "set", "");
  counters.method = text_or(json, "method", "");
  counters.stalls = text_or(json, "stalls", "");
  const auto at = [&](const char* key) { return json.contains(key) ? json[key] : Json(nullptr); };
  if (at("period_ns").is_number_integer()) counters.period_ns = at("period_ns").get<std::int64_t>();
  if (at("budget").is_number()) counters.budget = at("budget").get<double>();
  counters.replay = at("replay").is_boolean() && at("replay").get<bool>();
  return counters;
}

Json rests_to_json(const std::optional<NotedRests>& rests) {
  if (!rests) return nullptr;
  return {{"from_ns", rests->when.from_ns},
          {"every_ns", rests->when.every_ns},
          {"lasts_ns", rests->when.lasts_ns},
          {"everything", rests->everything}};
}

std::optional<NotedRests> rests_from_json(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number_unsigned() ? json[key].get<std::uint64_t>() : 0;
  };
  NotedRests rests{{number("from_ns"), number("every_ns"), number("lasts_ns")},
                   json.value("everything", Json()) == true};
  return rests.when.any() ? std::optional(rests) : std::nullopt;
}

Result<RunInfo> parse_run_info(std::string_view text, std::string_view where) {
  LLMPROF_LET(const Json json, base::parse_json(text, where));
  if (!json.is_object()) return not_a_run(where, "it is not a JSON object");
  LLMPROF_TRY(check_version(json, where));
  RunInfo info;
  info.format_version = json["format_version"].get<int>();
  info.llmprof_version = text_or(json, "llmprof_version", "");
  info.created = text_or(json, "created", "");
  info.clock = text_or(json, "clock", "");
  info.source = text_or(json, "source", "");
  info.prediction = text_or(json, "prediction", "");
  info.window = text_or(json, "window", "");
  info.parallel = text_or(json, "parallel", "");
  const auto member = [&](const char* key) { return json.value(key, Json()); };
  if (const Json cpu = member("recorder_cpu_ns"); cpu.is_number_integer())
    info.recorder_cpu_ns = cpu.get<std::int64_t>();
  info.rests = rests_from_json(member("rests"));
  info.counters = counters_from_json(member("counters"));
  info.models = models_from_json(member("models"));
  info.range_rules = rules_from_json(member("range_rules"));
  if (const auto command = json.find("command"); command != json.end() && command->is_array()) {
    for (const Json& word : *command) info.command.push_back(word.is_string() ? word.get<std::string>() : "");
  }
  if (const auto card = json.find("environment"); card != json.end()) info.environment = base::to_line(*card);
  if (!json.contains("files")) return not_a_run(where, "it lists no files");
  LLMPROF_LET(info.files, table_files_from_json(json["files"], "tables/", where));
  return info;
}

std::string format_run_info(const RunInfo& info) {
  const auto card = base::parse_json(info.environment.empty() ? "{}" : info.environment, "environment");
  return base::to_text(Json{
      {"format", kFormat},
      {"format_version", info.format_version},
      {"llmprof_version", info.llmprof_version},
      {"created", info.created},
      {"source", info.source},
      {"clock", info.clock},
      {"prediction", base::text_or_null(info.prediction)},
      {"window", base::text_or_null(info.window)},
      {"recorder_cpu_ns", base::maybe(info.recorder_cpu_ns)},
      {"rests", rests_to_json(info.rests)},
      {"counters", counters_to_json(info.counters)},
      {"models", models_to_json(info.models)},
      {"parallel", base::text_or_null(info.parallel)},
      {"range_rules", rules_to_json(info.range_rules)},
      {"command", info.command},
      {"environment", card ? *card : Json(info.environment)},
      {"files", table_files_to_json(info.files)},
  });
}

}  // namespace llmprof::trace
