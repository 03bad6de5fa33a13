#include "model/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json.h"
#include "base/json_fwd.h"
#include "base/text_table.h"

namespace llmprof::model {

// Keys of config.json that no family reads: those without influence on any cost, and those with a known one.

bool is_off(const base::Json& value);  // null, false, 0, "", [] or {}: whatever the key means, it is not used
bool is_harmless(std::string_view key);
// What an unread key does to the numbers, in words. For unknown keys: that it is unknown.
std::string_view effect_of(std::string_view key);

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

using Names = std::string_view[];

// Bookkeeping, generation, tokens, initialisation, dropout, scalars of norms, rotations, softmax: no matrix, no byte.
constexpr Names kHarmless = {
    // what wrote the file
    "_name_or_path", "name_or_path", "architectures", "auto_map", "transformers_version", "tokenizer_class",
    "model_max_length", "torchscript", "use_bfloat16", "tf_legacy_loss", "return_dict", "finetuning_task", "prefix",
    "problem_type", "task_specific_params", "id2label", "label2id", "num_labels", "unsloth_version", "unsloth_fixed",
    "onnx", "license", "base_model", "revision", "pretraining_tp", "training_seqlen", "seq_length", "n_ctx", "ep_size",
    "attn_implementation", "use_flash_attn", "flash_attn", "use_flash_attention", "gradient_checkpointing",
    "is_decoder", "multi_modal_type", "text_config_dict", "vision_config_dict", "alternative_architectures",
    // generation
    "use_cache", "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty",
    "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
    "return_dict_in_generate", "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
    "begin_suppress_tokens", "output_hidden_states", "output_attentions", "output_router_logits",
    "cache_implementation", "chunk_size_feed_forward", "stop_token_ids", "generation_config", "max_new_tokens",
    "sampling_rate",
    // initialisation and training
    "initializer_range", "initializer_factor", "init_std", "init_method", "init_device", "dropout", "attn_pdrop",
    "embd_pdrop", "resid_pdrop", "layerdrop", "aux_loss_alpha", "seq_aux", "router_aux_loss_coef",
    "router_jitter_noise", "input_jitter_noise", "router_z_loss_coef", "router_ignore_padding_tokens",
    "load_balancing_loss_weight", "z_loss_weight", "label_smoothing", "weight_decay", "learning_rate",
    "classifier_dropout", "mask_token_id", "initialization_std", "mtp_loss_scaling_factor",
    // norms, activation functions and scalars
    "hidden_act", "hidden_activation", "activation_function", "activation", "mlp_activation", "force_fp32", "norm_type",
    "rms_norm", "rmsnorm", "norm_eps", "layernorm_epsilon", "clip_qkv", "qkv_clip", "swiglu_limit", "swiglu_alpha",
    "logit_scale", "logits_scaling", "logit_softcapping", "attn_logit_softcapping", "final_logit_softcapping",
    "query_pre_attn_scalar", "embedding_multiplier", "residual_multiplier", "attention_multiplier",
    "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "attn_temperature_tuning",
    "floor_scale", "attn_scale", "scale_emb", "scale_depth", "dim_model_base", "mup_denominator",
    "routed_scaling_factor", "norm_topk_prob", "scoring_func", "topk_method", "n_group", "topk_group",
    "moe_router_use_sigmoid", "router_activation_func", "attention_softmax_in_fp32", "softmax_scale",
    "fp32_residual_connection", "apply_residual_connection_post_layernorm", "router_scoring_func", "use_routing_bias",
    "cache_layer_outputs", "zero_init", "zero_centered_gamma",
    // positions by rotation
    "rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "rope_interleave", "rope_interleaved",
    "rope_type", "rope_ratio", "original_rope", "rope_pct", "rope_percent", "rope_base", "rotary_pct",
    "rotary_emb_base", "rotary_dim", "rotary", "rotary_base", "rotary_percent", "partial_rotary_factor",
    "original_max_position_embeddings", "initial_context_length", "global_rope_theta", "local_rope_theta",
    "rope_scaling_factor", "position_embedding_type", "mrope_section", "max_sequence_length", "max_seq_len",
    // images and sound beside the language model
    "is_multimodal", "select_layer", "downsample_ratio", "ps_version", "dynamic_image_size", "use_thumbnail",
    "min_dynamic_patch", "max_dynamic_patch", "template", "spatial_merge_size", "multimodal_projector_bias",
    "multi_modal_projector_bias", "candidate_resolutions", "tile_tag", "global_view_pos"};

constexpr Names kHarmlessEnds = {"_token_id",     "_token_ids", "_token_index", "_token",  "_dropout",
                                 "_dropout_prob", "_pdrop",     "_eps",         "_epsilon"};
constexpr Names kHarmlessStarts = {"_",      "vision_", "image_", "video_",     "audio_",  "mm_",
                                   "visual", "speech_", "tts_",   "projector_", "summary_"};

struct Effect {
  std::string_view key, meaning;
};

// Features that change costs and that the formulas do not cover: which way the numbers are wrong.
constexpr Effect kEffects[] = {
    {"index_topk", "sparse attention is counted dense: attention FLOPs and KV bytes are upper bounds"},
    {"index_n_heads", "the indexer of sparse attention is not counted: parameters are a lower bound"},
    {"index_head_dim", "the indexer of sparse attention is not counted: parameters are a lower bound"},
    {"full_attention_interval", "linear attention is counted as full attention: KV bytes are upper bounds"},
    {"linear_num_value_heads", "linear attention is counted as full attention: KV bytes are upper bounds"},
    {"linear_num_key_heads", "linear attention is counted as full attention: KV bytes are upper bounds"},
    {"attn_layer_period", "layers without attention are counted with it: KV bytes are upper bounds"},
    {"mamba_d_state", "state-space layers are counted as attention: KV bytes are upper bounds"},
    {"ssm_state_size", "state-space layers are counted as attention: KV bytes are upper bounds"},
    {"hybrid_override_pattern", "layers of other kinds are counted as attention: KV bytes are upper bounds"},
    {"block_configs", "layers differ from each other and are counted alike: all numbers are rough"},
    {"cross_attention_layers", "cross-attention is counted as self-attention: KV bytes are upper bounds"},
    {"num_kv_shared_layers", "layers that share a cache are counted with one each: KV bytes are upper bounds"},
    {"hidden_size_per_layer_input", "embeddings of single layers are not counted: parameters are a lower bound"},
    {"use_bidirectional_attention", "attention is counted causal: its FLOPs are lower bounds"},
    {"sliding_window", "a window is not expected here: attention FLOPs and KV bytes are upper bounds"},
    {"attention_chunk_size", "chunks are not expected here: attention FLOPs and KV bytes are upper bounds"},
    {"num_experts", "experts are not expected here: parameters and bytes are lower bounds"},
    {"num_local_experts", "experts are not expected here: parameters and bytes are lower bounds"},
    {"n_routed_experts", "experts are not expected here: parameters and bytes are lower bounds"},
    {"moe_intermediate_size", "experts are not expected here: parameters and bytes are lower bounds"},
    {"num_experts_per_tok", "experts are not expected here: FLOPs are lower bounds"},
    {"pruned_heads", "heads that were removed are counted: all numbers are upper bounds"},
};

constexpr std::string_view kUnknown = "not understood: all numbers leave it out and are bounds only";

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

bool is_off(const base::Json& value) {
  if (value.is_null() || value.empty()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  return value.is_string() && value.get_ref<const std::string&>().empty();
}

bool is_harmless(std::string_view key) {
  return std::ranges::find(kHarmless, key) != std::end(kHarmless) ||
         std::ranges::any_of(kHarmlessEnds, [&](std::string_view end) { return key.ends_with(end); }) ||
         std::ranges::any_of(kHarmlessStarts, [&](std::string_view start) { return key.starts_with(start); });
}

std::string_view effect_of(std::string_view key) {
  for (const Effect& effect : kEffects) {
    if (effect.key == key) return effect.meaning;
  }
  return kUnknown;
}

}  // namespace llmprof::model
