#include "serving/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "base/asset.h"
#include "base/errors.h"
#include "base/human.h"
#include "base/json.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "base/suggest.h"

namespace llmprof::serving_engines {
std::span<const base::Asset> assets();  // made by llmprof_embed_assets
}

namespace llmprof::serving {
namespace {

using base::Json;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;  // keeps every sum of a step within 64 bits
constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr int kLastPatch = 1000;  // "0.11" without a patch is its last one

using Version = std::array<int, 3>;

std::optional<Version> parse_version(std::string_view text) {
  Version version{0, 0, kLastPatch};
  const std::vector<std::string_view> parts = base::split(text.substr(text.starts_with('v') ? 1 : 0), '.');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = base::parse_number<int>(parts[i]);
    if (!number || *number < 0) return std::nullopt;
    version[i] = *number;
  }
  return version;
}

// A setting: its name and what takes its value. False: the value is not of its kind or not in its range.
struct Setting {
  std::string_view key;
  std::string_view values;  // for the error
  std::function<bool(EngineRules&, std::string_view)> set;
};

Setting count(std::string_view key, std::int64_t EngineRules::*field, std::int64_t least) {
  const std::string_view values = least == 0 ? "a count of at least 0" : "a count of at least 1";
  return {key, values, [field, least](EngineRules& rules, std::string_view text) {
            const auto value = base::parse_number<std::int64_t>(text);
            if (!value || *value < least || *value > kMostTokens) return false;
            rules.*field = *value;
            return true;
          }};
}

Setting flag(std::string_view key, bool EngineRules::*field) {
  return {key, "true or false", [field](EngineRules& rules, std::string_view text) {
            const bool yes = text == "true" || text == "1" || text == "on";
            if (!yes && text != "false" && text != "0" && text != "off") return false;
            rules.*field = yes;
            return true;
          }};
}

Setting fraction(std::string_view key, double EngineRules::*field, bool zero, bool one) {
  const std::string_view values = zero ? "a fraction of at least 0 and below 1" : "a fraction above 0, at most 1";
  return {key, values, [field, zero, one](EngineRules& rules, std::string_view text) {
            const auto value = base::parse_number<double>(text);
            if (!value || !(*value >= 0 && *value <= 1)) return false;
            if ((*value == 0 && !zero) || (*value == 1 && !one)) return false;
            rules.*field = *value;
            return true;
          }};
}

template <class Enum, std::size_t N>
Setting choice(std::string_view key, std::string_view values, Enum EngineRules::*field,
               const std::array<std::pair<std::string_view, Enum>, N>& names) {
  return {key, values, [field, names](EngineRules& rules, std::string_view text) {
            for (const auto& [name, value] : names) {
              if (name != base::lowercase(text)) continue;
              rules.*field = value;
              return true;
            }
            return false;
          }};
}

const std::vector<Setting>& settings() {
  using R = EngineRules;
  static const std::vector<Setting> kAll{
      choice("scheduler", "continuous or static", &R::scheduler,
             std::array{std::pair{std::string_view("continuous"), SchedulerKind::kContinuous},
                        std::pair{std::string_view("static"), SchedulerKind::kStatic}}),
      choice("policy", "fcfs or priority", &R::policy,
             std::array{std::pair{std::string_view("fcfs"), Policy::kFcfs},
                        std::pair{std::string_view("priority"), Policy::kPriority}}),
      choice("cudagraph_mode", "none, piecewise or full_and_piecewise", &R::cudagraph_mode,
             std::array{std::pair{std::string_view("none"), GraphMode::kNone},
                        std::pair{std::string_view("piecewise"), GraphMode::kPiecewise},
                        std::pair{std::string_view("full_and_piecewise"), GraphMode::kFullAndPiecewise}}),
      count("max_num_seqs", &R::max_num_seqs, 1),
      count("max_num_batched_tokens", &R::max_num_batched_tokens, 0),
      count("block_size", &R::block_size, 1),
      count("num_gpu_blocks", &R::num_gpu_blocks, 1),
      count("long_prefill_token_threshold", &R::long_prefill_token_threshold, 0),
      count("max_model_len", &R::max_model_len, 0),
      count("capture_limit", &R::capture_limit, 1),
      count("capture_step_from_256", &R::capture_step_from_256, 1),
      flag("enable_chunked_prefill", &R::enable_chunked_prefill),
      flag("enable_prefix_caching", &R::enable_prefix_caching),
      flag("async_scheduling", &R::async_scheduling),
      flag("scheduler_reserve_full_isl", &R::scheduler_reserve_full_isl),
      flag("capture_batched_tokens", &R::capture_batched_tokens),
      fraction("gpu_memory_utilization", &R::gpu_memory_utilization, false, true),
      fraction("watermark", &R::watermark, true, false)};
  return kAll;
}

Result<void> set(EngineRules& rules, std::string_view key, std::string_view value, std::string_view source) {
  const std::vector<Setting>& all = settings();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Setting& setting) { return setting.key == key; });
  if (found == all.end()) {
    const std::vector<std::string_view> keys = rule_keys();
    const std::string near = base::did_you_mean(key, keys, 3);
    return Error{ErrorCode::kUsage, fmt::format("an engine has no setting {}", key),
                 near.empty() ? fmt::format("settings are {}", fmt::join(keys, ", ")) : near};
  }
  if (!found->set(rules, value))
    return Error{ErrorCode::kUsage, fmt::format("{}={}: not {}", key, value, found->values), ""};
  const auto listed =
      std::find_if(rules.sources.begin(), rules.sources.end(), [&](const RuleSource& each) { return each.key == key; });
  RuleSource line{std::string(key), std::string(value), std::string(source)};
  if (listed == rules.sources.end()) {
    rules.sources.push_back(std::move(line));
  } else {
    *listed = std::move(line);
  }
  return {};
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : base::to_line(*found);
}

bool applies(const Json& rule, const std::optional<Version>& version, const EngineDevice& device) {
  const std::string from = text_at(rule, "from");
  if (!from.empty()) {
    Version first = parse_version(from).value_or(Version{});
    if (first[2] == kLastPatch) first[2] = 0;  // "0.20" begins with 0.20.0
    if (!version || *version < first) return false;
  }
  if (rule.contains("memory_gib") && device.memory_bytes < rule["memory_gib"].get<double>() * kGib) return false;
  if (rule.contains("compute_capability") && device.compute_capability != rule["compute_capability"].get<int>())
    return false;
  const std::string other = text_at(rule, "not_device");
  return other.empty() || !base::contains(base::lowercase(device.name), other);
}

// The version asked for, checked against the range of the engine; nullopt where the engine has none.
Result<std::optional<Version>> version_of(const Json& engine, std::string_view asked) {
  const std::string first = text_at(engine, "first"), last = text_at(engine, "last");
  const std::string name = text_at(engine, "name");
  if (first.empty()) {
    if (asked.empty()) return std::optional<Version>();
    return Error{ErrorCode::kUsage, fmt::format("{} has no versions, {}@{} was asked for", name, name, asked), ""};
  }
  const std::optional<Version> version = parse_version(asked.empty() ? std::string_view(last) : asked);
  Version least = *parse_version(first);
  least[2] = 0;
  if (!version || *version < least || *version > *parse_version(last)) {
    return Error{ErrorCode::kUsage, fmt::format("the scheduling rules of {} {} are not known", name, asked),
                 fmt::format("known are {}@{} to {}@{}", name, first, name, last)};
  }
  return version;
}

}  // namespace

Result<EngineRules> engine_rules(std::string_view engine, const EngineDevice& device) {
  const std::string_view text = base::find_asset(serving_engines::assets(), "engines.json");
  LLMPROF_LET(const Json all, base::parse_json(text, "engines.json"));
  const std::string_view name = engine.substr(0, engine.find('@'));
  const std::string_view asked = name.size() < engine.size() ? engine.substr(name.size() + 1) : "";
  std::vector<std::string> names;
  for (const Json& one : all["engines"]) {
    names.push_back(text_at(one, "name"));
    if (names.back() != name) continue;
    LLMPROF_LET(const std::optional<Version> version, version_of(one, asked));
    EngineRules rules;
    rules.engine = name;
    rules.version = asked.empty() ? text_at(one, "last") : std::string(asked);
    for (const Json& rule : one["rules"]) {
      if (!applies(rule, version, device)) continue;
      LLMPROF_TRY(set(rules, text_at(rule, "key"), text_at(rule, "value"), text_at(rule, "source")));
    }
    return rules;
  }
  return Error{ErrorCode::kUsage, fmt::format("{} is not an engine whose scheduler is known", name),
               fmt::format("{}known are {}", base::did_you_mean(name, names), base::one_of(names))};
}

std::vector<std::string_view> rule_keys() {
  std::vector<std::string_view> keys;
  for (const Setting& setting : settings()) keys.push_back(setting.key);
  return keys;
}

Result<void> set_rule(EngineRules& rules, std::string_view setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string_view::npos)
    return Error{ErrorCode::kUsage, fmt::format("{}: a setting of the engine is KEY=VALUE", setting), ""};
  std::string key(base::trimmed(setting.substr(0, equals)));
  std::replace(key.begin(), key.end(), '-', '_');  // as options are written
  return set(rules, key, base::trimmed(setting.substr(equals + 1)), "given");
}

Result<void> check_rules(const EngineRules& rules) {
  if (rules.scheduler == SchedulerKind::kStatic) return {};
  if (rules.max_num_batched_tokens < rules.max_num_seqs) {
    return Error{ErrorCode::kUsage,
                 fmt::format("max_num_batched_tokens={} is below max_num_seqs={}", rules.max_num_batched_tokens,
                             rules.max_num_seqs),
                 "every running request needs a token of the budget: raise the first or lower the second"};
  }
  if (!rules.enable_chunked_prefill && rules.max_num_batched_tokens < rules.max_model_len) {
    return Error{ErrorCode::kUsage,
                 fmt::format("without chunked prefill max_num_batched_tokens={} is below max_model_len={}",
                             rules.max_num_batched_tokens, rules.max_model_len),
                 "a prompt has to fit into one step: raise the first or lower the second"};
  }
  return {};
}

std::vector<std::int64_t> EngineRules::capture_sizes() const {
  std::vector<std::int64_t> sizes;
  if (cudagraph_mode == GraphMode::kNone) return sizes;
  std::int64_t most = std::min(2 * max_num_seqs, capture_limit);
  if (max_num_batched_tokens > 0) most = std::min(most, max_num_batched_tokens);
  for (const std::int64_t size : {1, 2, 4}) {
    if (size <= most) sizes.push_back(size);
  }
  for (std::int64_t size = 8; size <= most && size < 256; size += 8) sizes.push_back(size);
  for (std::int64_t size = 256; size <= most; size += capture_step_from_256) sizes.push_back(size);
  if (capture_batched_tokens && max_num_batched_tokens <= most && sizes.back() != max_num_batched_tokens)
    sizes.push_back(max_num_batched_tokens);
  return sizes;
}

Result<std::int64_t> kv_blocks(const EngineRules& rules, const MemoryUse& use) {
  if (!(use.kv_bytes_per_token > 0) || !(use.device_bytes > 0))
    return Error{ErrorCode::kUsage, "KV blocks need the memory of the device and the KV bytes of a token", ""};
  const double granted = rules.gpu_memory_utilization * use.device_bytes;
  const double left = granted - use.weight_bytes - use.activation_bytes - use.graph_bytes;
  const double block_bytes = static_cast<double>(rules.block_size) * use.kv_bytes_per_token;
  const double blocks = std::floor(left / block_bytes);
  if (blocks >= 2) return static_cast<std::int64_t>(std::min(blocks, static_cast<double>(kMostTokens)));
  const std::string_view limit = use.weight_bytes >= granted ? "the weights alone exceed it"
                                 : left <= 0                 ? "the activations and graphs take what the weights leave"
                                                             : "what is left is less than two KV blocks";
  return Error{ErrorCode::kUsage,
               fmt::format("the model does not fit: {} of {} may be used ({:g} of the device), weights take {}, "
                           "activations {}, graphs {}: {}",
                           base::human_bytes(granted), base::human_bytes(use.device_bytes),
                           rules.gpu_memory_utilization, base::human_bytes(use.weight_bytes),
                           base::human_bytes(use.activation_bytes), base::human_bytes(use.graph_bytes), limit),
               "more tensor parallel devices, a smaller type, or a lower max_num_batched_tokens make room"};
}

}  // namespace llmprof::serving
