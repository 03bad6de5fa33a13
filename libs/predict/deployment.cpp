#include "predict/deployment.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/axis.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/suggest.h"
#include "model/change.h"
#include "predict/tables/borrow.h"

namespace llmprof::predict {
namespace {

using base::Json;

constexpr std::size_t kMostMetaBytes = 1u << 20;

const Json& part_of(const Json& json, const char* key) {
  static const Json kNothing = Json::object();
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? *found : kNothing;
}

std::string text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

void take_count(const Json& json, const char* key, std::int64_t& into) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_number_integer() && found->get<std::int64_t>() > 0)
    into = found->get<std::int64_t>();
}

// "max_num_seqs=256" of a number, a word or true; what is null was left to the engine.
void take_setting(const Json& json, const char* key, std::vector<std::string>& into) {
  const auto found = json.find(key);
  if (found == json.end()) return;
  if (found->is_boolean()) into.push_back(fmt::format("{}={}", key, found->get<bool>() ? "true" : "false"));
  if (found->is_number()) into.push_back(fmt::format("{}={}", key, found->dump()));
  if (found->is_string()) into.push_back(fmt::format("{}={}", key, found->get<std::string>()));
}

Result<hw::DeviceAndPeaks> device_of(const Deployment& deployment, bool measured) {
  Result<hw::DeviceAndPeaks> found = hw::resolve_device(deployment.device);
  if (!found && !measured) return found;
  hw::DeviceAndPeaks out;
  if (found) {
    out = std::move(*found);
  } else {
    out.device.kind = "gpu";
    out.device.name = deployment.device;
  }
  if (deployment.device_memory_bytes > 0)
    out.device.memory_bytes = static_cast<std::int64_t>(deployment.device_memory_bytes);
  return out;
}

// Fields of a Deployment that a setting may name. `dtype` is among them: kept tables are found by it.
struct CountField {
  std::string_view key;
  std::int64_t Deployment::*field;
};
constexpr CountField kCounts[] = {
    {"tp", &Deployment::tensor}, {"dp", &Deployment::replicas}, {"ep", &Deployment::expert}};
struct TextField {
  std::string_view key;
  std::string Deployment::*field;
};
constexpr TextField kTexts[] = {
    {"dtype", &Deployment::dtype}, {"kv_dtype", &Deployment::kv_dtype}, {"device", &Deployment::device}};

constexpr std::int64_t kMostRanks = 4096;

// vLLM has one copy of the experts for all data parallel replicas, also where it was not told to spread them: each is
// then split by its width. Bytes, FLOPs and what ranks exchange are those of spread experts.
void split_experts_over_replicas(const Deployment& deployment, ServingInput& input) {
  const bool experts = std::ranges::any_of(input.config.kinds, [](const auto& kind) { return kind.mlp.experts > 0; });
  if (!experts && !deployment.path.empty()) input.parallel.expert = 1;  // of a setting that says nothing to this model
  if (!experts || input.parallel.expert > 1 || input.replicas <= 1) return;
  input.parallel.expert = input.parallel.tensor * input.replicas;
  input.notes.push_back(fmt::format(
      "experts: one copy for all {} replicas, as vLLM has them, counted as spread over them", input.replicas));
}

std::string unless_auto(std::string type) { return type == "auto" ? "" : type; }

}  // namespace

Result<model::OpenedModel> open_named(const std::string& name) {
  Result<model::OpenedModel> opened = model::open_model(name);
  const std::size_t slash = name.rfind('/');
  if (opened || slash == std::string::npos || base::is_file(name)) return opened;
  Result<model::OpenedModel> built_in = model::open_model(name.substr(slash + 1));
  return built_in ? std::move(built_in) : std::move(opened);
}

Result<Deployment> parse_deployment(std::string_view text, const std::string& where) {
  LLMPROF_LET(const Json json, base::parse_json(text, where));
  if (!json.is_object())
    return Error{ErrorCode::kCorruptInput, where + ": not a JSON object", "it describes how an engine was set up"};
  Deployment out{.path = where};
  const Json &engine = part_of(json, "engine_kwargs"), &cache = part_of(json, "kv_cache"),
             &hardware = part_of(json, "hardware");
  out.model = text_in(json, "model");
  if (const std::string version = text_in(json, "vllm_version"); !version.empty()) out.engine = "vllm@" + version;
  out.device = text_in(hardware, "device_name");
  out.dtype = unless_auto(text_in(engine, "dtype"));
  out.kv_dtype = unless_auto(text_in(engine, "kv_cache_dtype"));
  if (const auto bytes = hardware.find("device_total_memory_bytes"); bytes != hardware.end() && bytes->is_number())
    out.device_memory_bytes = bytes->get<double>();
  take_count(engine, "tensor_parallel_size", out.tensor);
  take_count(engine, "data_parallel_size", out.replicas);
  // vLLM spreads the experts over all ranks, those of data parallel replicas included.
  const auto experts = engine.find("enable_expert_parallel");
  if (experts != engine.end() && experts->is_boolean() && experts->get<bool>()) out.expert = out.tensor * out.replicas;
  for (const char* key : {"max_num_seqs", "max_num_batched_tokens", "max_model_len", "long_prefill_token_threshold",
                          "enable_chunked_prefill", "async_scheduling", "scheduling_policy"})
    take_setting(engine, key, out.settings);
  for (const char* key : {"num_gpu_blocks", "block_size", "gpu_memory_utilization", "enable_prefix_caching"})
    take_setting(cache, key, out.settings);
  for (std::string& setting : out.settings) {
    if (setting.starts_with("scheduling_policy=")) setting.erase(0, std::string_view("scheduling_").size());
  }
  return out;
}

Result<void> add_setting(Deployment& deployment, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  const std::string_view key = setting.substr(0, equals);
  if (equals == std::string_view::npos || equals + 1 == setting.size())
    return Error{ErrorCode::kUsage, fmt::format("--set: '{}' is not KEY=VALUE", setting),
                 "as in --set max_num_seqs=64 --set kv_heads=4"};
  const std::string_view value = setting.substr(equals + 1);
  for (const TextField& each : kTexts) {
    if (each.key != key) continue;
    deployment.*each.field = value;
    return {};
  }
  for (const CountField& each : kCounts) {
    if (each.key != key) continue;
    const Result<std::int64_t> count = base::parse_count(value);
    if (!count || *count < 1 || *count > kMostRanks)
      return usage_error("--set {}: '{}' is not a number from 1 to {}", key, value, kMostRanks);
    deployment.*each.field = *count;
    return {};
  }
  const std::vector<std::string_view> rules = serving::rule_keys();
  if (std::ranges::find(rules, key) != rules.end()) {
    deployment.settings.emplace_back(setting);
    return {};
  }
  if (model::is_change_key(key)) {
    deployment.changes.emplace_back(setting);
    return {};
  }
  std::vector<std::string_view> known = rules;
  known.insert(known.end(), model::change_keys().begin(), model::change_keys().end());
  for (const CountField& each : kCounts) known.push_back(each.key);
  known.emplace_back("device");
  const std::string near = base::did_you_mean(key, known, 3);
  return Error{ErrorCode::kUsage, fmt::format("--set: neither the model nor the engine has a setting {}", key),
               near.empty() ? fmt::format("settings are {}", fmt::join(known, ", ")) : near};
}

Result<Deployment> find_deployment(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    for (const char* place : {"/meta.json", "/../meta.json"}) {
      const std::string path = folder + place;
      if (!base::is_file(path)) continue;
      LLMPROF_LET(const std::string text, base::read_file(path, kMostMetaBytes));
      return parse_deployment(text, path);
    }
  }
  return Deployment{};
}

namespace {

Error of_another(const OperatorTables& tables, std::string_view what, const std::string& theirs,
                 const std::string& asked) {
  return Error{ErrorCode::kUsage,
               fmt::format("{}: operator tables of {}, not of {}", tables.source.folder, theirs, asked),
               fmt::format("leave --tables out to predict {} from the roof, or measure it: llmprof bench --for", what)};
}

// Tables say in meta.json what they are of. Times of another device or of other shapes would be a wrong answer that
// looks like a measured one.
Result<void> check_tables(const OperatorTables& tables, const ServingInput& input, const std::string& model) {
  const hw::DeviceSpec* theirs = hw::find_device(tables.source.device);
  if (theirs != nullptr && input.device.spec != nullptr && theirs != input.device.spec)
    return of_another(tables, "this device", theirs->name, input.device.spec->name);
  if (tables.source.model.empty()) return {};
  const Result<model::OpenedModel> other = open_named(tables.source.model);
  const model::Config& own = input.config;
  if (other && (other->config.hidden != own.hidden || other->config.vocab != own.vocab ||
                other->config.kinds.front() != own.kinds.front()))
    return of_another(tables, "this model", tables.source.model, model);
  return {};
}

}  // namespace

Result<void> use_tables_of(ServingInput& input, const OperatorTables& tables, const model::Config& theirs,
                           const model::Parallel& their_parallel) {
  if (tables.empty()) return {};
  const auto roof_of = [&](const model::Config& config) {
    return roof_for(config, input.device.peaks, input.device.device.name, input.device.device.cache_bytes);
  };
  const DeviceRoof before = roof_of(theirs), after = roof_of(input.config);
  const auto borrow = [&](Follows follows) {
    return borrow_tables(tables, {theirs, their_parallel, before}, {input.config, input.parallel, after}, follows);
  };
  LLMPROF_LET(BorrowedTables in_proportion, borrow(Follows::kInProportion));
  input.tables = std::move(in_proportion.tables);
  if (in_proportion.scaled.empty()) return {};
  LLMPROF_LET(BorrowedTables by_difference, borrow(Follows::kByDifference));
  input.other_tables = std::move(by_difference.tables);
  input.notes.push_back(scaled_note(in_proportion.scaled));
  return {};
}

Result<ServingInput> serving_input(const Deployment& deployment, OperatorTables tables) {
  LLMPROF_LET(const model::OpenedModel opened, open_named(deployment.model));
  LLMPROF_LET(const hw::DeviceAndPeaks device, device_of(deployment, !tables.empty()));
  return serving_input(deployment, opened, device, std::move(tables));
}

Result<ServingInput> serving_input(const Deployment& deployment, const model::OpenedModel& model,
                                   const hw::DeviceAndPeaks& device, OperatorTables tables) {
  ServingInput out;
  out.config = model.config;
  out.config_text = model.config_text, out.origin = deployment.model;
  LLMPROF_TRY(model::set_types(out.config, {.weights = deployment.dtype, .kv = deployment.kv_dtype}));
  out.parallel.tensor = deployment.tensor, out.parallel.expert = deployment.expert;
  out.replicas = deployment.replicas;
  split_experts_over_replicas(deployment, out);
  out.device = device;
  LLMPROF_TRY(check_tables(tables, out, deployment.model));
  if (!deployment.changes.empty()) out.unchanged = out.config;
  for (const std::string& change : deployment.changes) {
    const std::size_t equals = change.find('=');
    LLMPROF_TRY(model::change(out.config, change.substr(0, equals), change.substr(equals + 1)));
  }
  if (out.unchanged) {
    LLMPROF_TRY(use_tables_of(out, tables, *out.unchanged, out.parallel));
  } else {
    out.tables = std::move(tables);
  }
  const serving::EngineDevice engine_device{static_cast<double>(out.device.device.memory_bytes), out.device.device.name,
                                            0};
  LLMPROF_LET(out.rules, serving::engine_rules(deployment.engine, engine_device));
  for (const std::string& setting : deployment.settings) LLMPROF_TRY(serving::set_rule(out.rules, setting));
  return out;
}

}  // namespace llmprof::predict
