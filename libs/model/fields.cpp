#include "model/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text_table.h"
#include "model/known_keys.h"

namespace llmprof::model {
namespace {

struct Range {
  std::string_view key;
  std::int64_t most;
};

// Far above any model there is, far below what overflows. Keys that are not here: kMaxCount.
constexpr std::array kRanges{
    Range{"num_hidden_layers", kMaxLayers},
    Range{"n_layer", kMaxLayers},
    Range{"n_layers", kMaxLayers},
    Range{"num_layers", kMaxLayers},
    Range{"max_window_layers", kMaxLayers},
    Range{"hidden_size", 1 << 24},
    Range{"n_embd", 1 << 24},
    Range{"d_model", 1 << 24},
    Range{"word_embed_proj_dim", 1 << 24},
    Range{"num_attention_heads", 1 << 16},
    Range{"n_head", 1 << 16},
    Range{"num_key_value_heads", 1 << 16},
    Range{"num_kv_heads", 1 << 16},
    Range{"head_dim", 1 << 16},
    Range{"q_lora_rank", 1 << 20},
    Range{"kv_lora_rank", 1 << 20},
    Range{"qk_nope_head_dim", 1 << 16},
    Range{"qk_rope_head_dim", 1 << 16},
    Range{"v_head_dim", 1 << 16},
    Range{"intermediate_size", 1 << 26},
    Range{"intermediate_size_mlp", 1 << 26},
    Range{"moe_intermediate_size", 1 << 26},
    Range{"shared_expert_intermediate_size", 1 << 26},
    Range{"n_inner", 1 << 26},
    Range{"ffn_dim", 1 << 26},
    Range{"ffn_hidden_size", 1 << 26},
    Range{"num_experts", 1 << 16},
    Range{"num_local_experts", 1 << 16},
    Range{"n_routed_experts", 1 << 16},
    Range{"n_shared_experts", 1 << 12},
    Range{"num_experts_per_tok", 1 << 16},
};

constexpr std::size_t kMostCaveats = 20;  // of unread keys; a file of thousands is no config

}  // namespace

std::int64_t most_of(std::string_view key) {
  for (const Range& range : kRanges) {
    if (range.key == key) return range.most;
  }
  return kMaxCount;
}

Fields::Fields(const base::Json& object, const Fields& outer, std::string_view key)
    : object_(object), where_(outer.where_), prefix_(fmt::format("{}{}.", outer.prefix_, key)) {}

bool Fields::has(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found != object_.end() && !found->is_null();
}

bool Fields::is_null(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found != object_.end() && found->is_null();
}

const base::Json* Fields::find(std::string_view key) {
  read_.emplace(key);
  const auto found = object_.find(std::string(key));
  return found != object_.end() && !found->is_null() ? &*found : nullptr;
}

void Fields::reject(ErrorCode code, std::string message, std::string hint) {
  if (!error_) error_ = Error{code, fmt::format("{}: {}", where_, message), std::move(hint)};
}

void Fields::reject_value(std::string_view key, std::string_view expected) {
  const std::string value = base::shorten(base::printable(base::to_line(*object_.find(std::string(key)))), 40);
  reject(ErrorCode::kCorruptInput, fmt::format("{}{}: {} is not {}", prefix_, key, value, expected));
}

std::optional<std::int64_t> Fields::whole(std::string_view key, std::int64_t least) {
  const base::Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::int64_t most = most_of(key);
  // A number too large for 64 bits is unsigned or a double here: never compared as a wrapped one.
  const bool whole =
      value->is_number_integer() && !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX);
  const std::int64_t number = whole ? value->get<std::int64_t>() : least - 1;
  if (number >= least && number <= most) return number;
  reject_value(key, fmt::format("a whole number from {} to {}", least, most));
  return 0;
}

std::int64_t Fields::count(std::string_view key) { return size({key}, 0); }

std::int64_t Fields::count_or(std::string_view key, std::int64_t fallback) { return whole(key, 1).value_or(fallback); }

std::int64_t Fields::zero_or_more(std::string_view key, std::int64_t fallback) {
  return whole(key, 0).value_or(fallback);
}

std::int64_t Fields::size(std::initializer_list<std::string_view> keys, std::int64_t usual) {
  for (const std::string_view key : keys) {
    if (has(key)) return count_or(key, 0);
  }
  if (nested() && usual > 0) return usual;
  reject(ErrorCode::kCorruptInput, fmt::format("{}{} is missing", prefix_, *keys.begin()),
         "is this the config.json of the model?");
  return 0;
}

bool Fields::flag_or(std::string_view key, bool fallback) {
  const base::Json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  reject_value(key, "true or false");
  return fallback;
}

std::string Fields::text_or(std::string_view key, std::string_view fallback) {
  const base::Json* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) return value->get<std::string>();
  reject_value(key, "a string");
  return std::string(fallback);
}

std::vector<std::int64_t> Fields::counts(std::string_view key) {
  std::vector<std::int64_t> numbers;
  const base::Json* value = find(key);
  if (value == nullptr) return numbers;
  const auto fits = [](const base::Json& item) {
    return item.is_number_unsigned() && item.get<std::uint64_t>() <= std::uint64_t{kMaxCount};
  };
  if (!value->is_array() || value->size() > std::size_t{kMaxLayers} || !std::ranges::all_of(*value, fits)) {
    reject_value(key, fmt::format("a list of whole numbers from 0 to {}", kMaxCount));
    return numbers;
  }
  for (const base::Json& item : *value) numbers.push_back(item.get<std::int64_t>());
  return numbers;
}

std::vector<std::string> Fields::texts(std::string_view key) {
  std::vector<std::string> all;
  const base::Json* value = find(key);
  if (value == nullptr) return all;
  if (!value->is_array() || value->size() > std::size_t{kMaxLayers} ||
      !std::ranges::all_of(*value, [](const base::Json& item) { return item.is_string(); })) {
    reject_value(key, "a list of strings");
    return all;
  }
  for (const base::Json& item : *value) all.push_back(item.get<std::string>());
  return all;
}

void Fields::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) read_.emplace(key);
}

void Fields::expect_divisible(std::string_view key, std::int64_t value, std::string_view by_key, std::int64_t by) {
  if (error_ || (by > 0 && value % by == 0)) return;
  reject(ErrorCode::kCorruptInput,
         fmt::format("{0}{1}: {2} is not divisible by {0}{3} = {4}", prefix_, key, value, by_key, by));
}

void Fields::expect_length(std::string_view key, std::size_t length, std::int64_t layers) {
  if (error_ || length == static_cast<std::size_t>(layers)) return;
  reject(ErrorCode::kCorruptInput, fmt::format("{}{}: {} entries for {} layers", prefix_, key, length, layers));
}

void Fields::caveat(std::string_view field, std::string meaning) {
  caveats.push_back({fmt::format("{}{}", prefix_, base::shorten(base::printable(field), 60)), std::move(meaning)});
}

void Fields::note(std::string_view field, std::string meaning) {
  notes.push_back({fmt::format("{}{}", prefix_, base::shorten(base::printable(field), 60)), std::move(meaning)});
}

void Fields::adopt(Fields& part) {
  if (part.error_ && !error_) error_ = std::move(part.error_);
  std::ranges::move(part.caveats, std::back_inserter(caveats));
  std::ranges::move(part.notes, std::back_inserter(notes));
  part.caveats.clear();
  part.notes.clear();
}

void Fields::add_unread_caveats() {
  std::size_t added = 0, more = 0;
  for (const auto& [key, value] : object_.items()) {
    if (read_.contains(key) || is_off(value) || is_harmless(key)) continue;
    if (++added > kMostCaveats) {
      ++more;
      continue;
    }
    caveat(key, std::string(effect_of(key)));
  }
  if (more > 0) caveat("…", fmt::format("{} more keys that are not understood", more));
}

}  // namespace llmprof::model
