#include "model/known_keys.h"

#include <algorithm>
#include <array>

#include "base/json.h"

namespace llmprof::model {
namespace {

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
