// Every family: the parameters of a model of it, added up by hand and as its checkpoint has them; and what its layers
// are.

#include "model/families.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/model.h"

namespace llmprof::model {
namespace {

Config read(const std::string& keys) {
  Result<Config> config = parse_config("{" + keys + "}", "config.json");
  EXPECT_TRUE(config) << config.error().message;
  if (!config) return {};
  for (const Caveat& caveat : config->caveats) ADD_FAILURE() << caveat.field << ": " << caveat.meaning;
  return std::move(*config);
}

// The keys that most families share.
std::string decoder(const std::string& type, std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                    std::int64_t kv_heads, std::int64_t width, std::int64_t vocab) {
  return fmt::format(R"("model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {},
      "num_key_value_heads": {}, "intermediate_size": {}, "vocab_size": {})",
                     type, layers, hidden, heads, kv_heads, width, vocab);
}

std::int64_t count(const std::string& keys) { return parameters(Graph(read(keys))); }

// Windows of all layers, "-" for none: "4 4 - 4".
std::string windows(const Config& config) {
  std::string all;
  for (const std::uint32_t kind : config.kind_of_layer) {
    const std::int64_t window = config.kinds[kind].attention.window;
    all += (all.empty() ? "" : " ") + (window > 0 ? std::to_string(window) : std::string("-"));
  }
  return all;
}

// Layers with experts.
std::string sparse_layers(const Config& config) {
  std::string all;
  for (std::size_t layer = 0; layer < config.kind_of_layer.size(); ++layer) {
    if (config.kinds[config.kind_of_layer[layer]].mlp.experts > 0) all += fmt::format(" {}", layer);
  }
  return all;
}

constexpr std::int64_t operator""_(unsigned long long value) { return static_cast<std::int64_t>(value); }

// ---- parameters --------------------------------------------------------------------------------------------

TEST(Families, Gpt2) {
  // Tables; layers: norms, c_attn, c_proj, c_fc, c_proj with biases; last norm. Tied.
  const std::int64_t h = 768, layer = 4 * h + (3 * h * h + 3 * h) + (h * h + h) + (4 * h * h + 4 * h) + (4 * h * h + h);
  EXPECT_EQ(50257 * h + 1024 * h + 12 * layer + 2 * h, 124'439'808);
  EXPECT_EQ(count(R"("model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024,
      "vocab_size": 50257)"),
            124'439'808);
}

TEST(Families, Llama) {
  // Llama 2 7B. Two tables, layers of 4 square matrices, three of the MLP and two norms, the last norm.
  EXPECT_EQ(2 * 32000_ * 4096 + 32 * (4 * 4096_ * 4096 + 3 * 4096_ * 11008 + 2 * 4096) + 4096, 6'738'415'616);
  EXPECT_EQ(count(decoder("llama", 32, 4096, 32, 32, 11008, 32000)), 6'738'415'616);
  // Llama 3.2 1B: 8 key-value heads of 64, tied.
  EXPECT_EQ(128256_ * 2048 + 16 * (2 * 2048_ * 2048 + 2 * 2048_ * 512 + 3 * 2048_ * 8192 + 2 * 2048) + 2048,
            1'235'814'400);
  EXPECT_EQ(count(decoder("llama", 16, 2048, 32, 8, 8192, 128256) + R"(, "tie_word_embeddings": true)"), 1'235'814'400);
}

TEST(Families, LlamaWithBiases) {
  const std::string plain = decoder("llama", 2, 64, 4, 2, 128, 100);
  EXPECT_EQ(count(plain + R"(, "attention_bias": true)") - count(plain), 2 * (64 + 32 + 32 + 64));
  EXPECT_EQ(count(plain + R"(, "mlp_bias": true)") - count(plain), 2 * (128 + 128 + 64));
}

TEST(Families, Mistral) {
  // Mistral 7B v0.1.
  EXPECT_EQ(2 * 32000_ * 4096 + 32 * (2 * 4096_ * 4096 + 2 * 4096_ * 1024 + 3 * 4096_ * 14336 + 2 * 4096) + 4096,
            7'241'732'096);
  EXPECT_EQ(count(decoder("mistral", 32, 4096, 32, 8, 14336, 32000)), 7'241'732'096);
}

TEST(Families, Qwen2) {
  // Qwen2.5 0.5B: 14 heads and 2 of 64, biases on q, k, v; tied.
  EXPECT_EQ(151936_ * 896 + 24 * (2 * 896_ * 896 + 2 * 896_ * 128 + (896 + 2 * 128) + 3 * 896_ * 4864 + 2 * 896) + 896,
            494'032'768);
  EXPECT_EQ(count(decoder("qwen2", 24, 896, 14, 2, 4864, 151936) + R"(, "tie_word_embeddings": true)"), 494'032'768);
}

TEST(Families, Qwen3) {
  // Qwen3 8B: heads of 128 with norms of 128.
  EXPECT_EQ(
      2 * 151936_ * 4096 + 36 * (2 * 4096_ * 4096 + 2 * 4096_ * 1024 + 2 * 128 + 3 * 4096_ * 12288 + 2 * 4096) + 4096,
      8'190'735'360);
  EXPECT_EQ(count(decoder("qwen3", 36, 4096, 32, 8, 12288, 151936) + R"(, "head_dim": 128)"), 8'190'735'360);
}

TEST(Families, Qwen2Moe) {
  // Qwen1.5-MoE-A2.7B: a layer has 60 experts of 1408, a router, a shared expert of 5632 with a gate of one row.
  const std::int64_t attention = 4 * 2048_ * 2048 + 3 * 2048;
  const std::int64_t experts = 60 * 3 * 2048_ * 1408 + 60 * 2048 + 3 * 2048_ * 5632 + 2048;
  EXPECT_EQ(2 * 151936_ * 2048 + 24 * (attention + experts + 2 * 2048) + 2048, 14'315'784'192);
  EXPECT_EQ(
      count(decoder("qwen2_moe", 24, 2048, 16, 16, 5632, 151936) + R"(, "num_experts": 60, "num_experts_per_tok": 4,
      "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632)"),
      14'315'784'192);
}

TEST(Families, Qwen3Moe) {
  // Qwen3-30B-A3B: 32 heads and 4 of 128, 128 experts of 768.
  const std::int64_t attention = 2 * 2048_ * 4096 + 2 * 2048_ * 512 + 2 * 128;
  EXPECT_EQ(2 * 151936_ * 2048 + 48 * (attention + 128 * 3 * 2048_ * 768 + 128 * 2048 + 2 * 2048) + 2048,
            30'532'122'624);
  EXPECT_EQ(count(decoder("qwen3_moe", 48, 2048, 32, 4, 6144, 151936) + R"(, "head_dim": 128, "num_experts": 128,
      "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1, "mlp_only_layers": [])"),
            30'532'122'624);
}

TEST(Families, Mixtral) {
  const std::int64_t attention = 2 * 4096_ * 4096 + 2 * 4096_ * 1024;
  EXPECT_EQ(2 * 32000_ * 4096 + 32 * (attention + 8 * 3 * 4096_ * 14336 + 8 * 4096 + 2 * 4096) + 4096, 46'702'792'704);
  EXPECT_EQ(count(decoder("mixtral", 32, 4096, 32, 8, 14336, 32000) + R"(, "num_local_experts": 8,
      "num_experts_per_tok": 2, "sliding_window": null)"),
            46'702'792'704);
}

TEST(Families, Gemma) {
  // Gemma 7B: 16 heads of 256 over a hidden size of 3072.
  EXPECT_EQ(256000_ * 3072 + 28 * (4 * 3072_ * 4096 + 3 * 3072_ * 24576 + 2 * 3072) + 3072, 8'537'680'896);
  EXPECT_EQ(count(decoder("gemma", 28, 3072, 16, 16, 24576, 256000) + R"(, "head_dim": 256)"), 8'537'680'896);
}

TEST(Families, Gemma2) {
  // Gemma 2 2B: four norms in a layer.
  EXPECT_EQ(256000_ * 2304 + 26 * (2 * 2304_ * 2048 + 2 * 2304_ * 1024 + 3 * 2304_ * 9216 + 4 * 2304) + 2304,
            2'614'341'888);
  EXPECT_EQ(count(decoder("gemma2", 26, 2304, 8, 4, 9216, 256000) + R"(, "head_dim": 256)"), 2'614'341'888);
}

TEST(Families, Gemma3) {
  // Gemma 3 1B: and norms over the heads of q and k.
  EXPECT_EQ(262144_ * 1152 + 26 * (2 * 1152_ * 1024 + 2 * 1152_ * 256 + 2 * 256 + 3 * 1152_ * 6912 + 4 * 1152) + 1152,
            999'885'952);
  EXPECT_EQ(count(decoder("gemma3_text", 26, 1152, 4, 1, 6912, 262144) + R"(, "head_dim": 256)"), 999'885'952);
}

TEST(Families, Phi) {
  // Phi-2: one LayerNorm in a layer, biases everywhere, the logits' among them.
  const std::int64_t layer = 4 * (2560_ * 2560 + 2560) + (2560_ * 10240 + 10240) + (10240_ * 2560 + 2560) + 2 * 2560;
  EXPECT_EQ(2 * 51200_ * 2560 + 51200 + 32 * layer + 2 * 2560, 2'779'683'840);
  EXPECT_EQ(count(decoder("phi", 32, 2560, 32, 32, 10240, 51200)), 2'779'683'840);
}

TEST(Families, Phi3) {
  // Phi-3-mini.
  EXPECT_EQ(2 * 32064_ * 3072 + 32 * (4 * 3072_ * 3072 + 3 * 3072_ * 8192 + 2 * 3072) + 3072, 3'821'079'552);
  EXPECT_EQ(count(decoder("phi3", 32, 3072, 32, 32, 8192, 32064)), 3'821'079'552);
}

TEST(Families, DeepseekV2) {
  // DeepSeek-V2-Lite: q from one matrix, latent of 512 + 64, one dense layer, 64 experts of 1408 and two shared.
  const std::int64_t attention = 2048_ * 16 * 192 + 2048_ * 576 + 512 + 512_ * 16 * 256 + 16_ * 128 * 2048;
  const std::int64_t experts = 66 * 3 * 2048_ * 1408 + 64 * 2048, dense = 3 * 2048_ * 10944;
  EXPECT_EQ(2 * 102400_ * 2048 + 27 * (attention + 2 * 2048) + dense + 26 * experts + 2048, 15'706'484'224);
  EXPECT_EQ(
      count(decoder("deepseek_v2", 27, 2048, 16, 16, 10944, 102400) + R"(, "q_lora_rank": null, "kv_lora_rank": 512,
      "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2,
      "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1, "moe_layer_freq": 1)"),
      15'706'484'224);
}

TEST(Families, DeepseekV3) {
  // Without the layer that predicts a further token.
  const std::int64_t attention =
      7168_ * 1536 + 1536 + 1536_ * 128 * 192 + 7168_ * 576 + 512 + 512_ * 128 * 256 + 128_ * 128 * 7168;
  const std::int64_t experts = 257 * 3 * 7168_ * 2048 + 256 * 7168 + 256, dense = 3 * 7168_ * 18432;
  EXPECT_EQ(2 * 129280_ * 7168 + 61 * (attention + 2 * 7168) + 3 * dense + 58 * experts + 7168, 671'026'419'200);
  const std::string keys = decoder("deepseek_v3", 61, 7168, 128, 128, 18432, 129280) + R"(, "q_lora_rank": 1536,
      "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 256,
      "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "first_k_dense_replace": 3,
      "moe_layer_freq": 1, "topk_method": "noaux_tc", "num_nextn_predict_layers": 1)";
  EXPECT_EQ(count(keys), 671'026'419'200);
  ASSERT_EQ(read(keys).notes.size(), 1u);
  EXPECT_EQ(read(keys).kinds.at(0).attention.kv_values(), 576);
}

TEST(Families, GptOss) {
  // gpt-oss-20b: biases everywhere, a sink for each of 64 heads.
  const std::int64_t attention = 2880_ * 4096 + 4096 + 2 * (2880_ * 512 + 512) + 4096_ * 2880 + 2880 + 64;
  const std::int64_t expert = 2880_ * 5760 + 5760 + 2880_ * 2880 + 2880, router = 32 * 2880 + 32;
  EXPECT_EQ(2 * 201088_ * 2880 + 24 * (attention + 32 * expert + router + 2 * 2880) + 2880, 20'914'757'184);
  EXPECT_EQ(count(decoder("gpt_oss", 24, 2880, 64, 8, 2880, 201088) + R"(, "head_dim": 64, "num_local_experts": 32,
      "num_experts_per_tok": 4, "experts_per_token": 4)"),
            20'914'757'184);
}

TEST(Families, Llama4) {
  // Scout's language model: 16 experts and one shared of 8192 in every layer.
  const std::int64_t attention = 2 * 5120_ * 5120 + 2 * 5120_ * 1024;
  EXPECT_EQ(2 * 202048_ * 5120 + 48 * (attention + 17 * 3 * 5120_ * 8192 + 16 * 5120 + 2 * 5120) + 5120,
            107'769'861'120);
  EXPECT_EQ(count(decoder("llama4_text", 48, 5120, 40, 8, 8192, 202048) + R"(, "head_dim": 128, "num_local_experts": 16,
      "num_experts_per_tok": 1, "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 1, "use_qk_norm": true)"),
            107'769'861'120);
}

TEST(Families, Olmo2) {
  // OLMo 2 7B: norms as wide as all heads of q and of k.
  EXPECT_EQ(2 * 100352_ * 4096 + 32 * (4 * 4096_ * 4096 + 2 * 4096 + 3 * 4096_ * 11008 + 2 * 4096) + 4096,
            7'298'617'344);
  EXPECT_EQ(count(decoder("olmo2", 32, 4096, 32, 32, 11008, 100352)), 7'298'617'344);
}

TEST(Families, Glm) {
  // GLM-4-9B-0414: 32 heads and 2 of 128, biases on q, k and v, four norms. The older glm has two norms.
  const std::int64_t common = 2 * 151552_ * 4096 + 4096, biases = 4096 + 2 * 256;
  const std::int64_t matrices = 2 * 4096_ * 4096 + 2 * 4096_ * 256 + 3 * 4096_ * 13696;
  EXPECT_EQ(common + 40 * (matrices + biases + 4 * 4096), 9'400'279'040);
  const std::string keys = R"(, "head_dim": 128)";  // attention_bias is true in Glm4Config
  EXPECT_EQ(count(decoder("glm4", 40, 4096, 32, 2, 13696, 151552) + keys), 9'400'279'040);
  EXPECT_EQ(count(decoder("glm", 40, 4096, 32, 2, 13696, 151552) + keys), common + 40 * (matrices + biases + 2 * 4096));
}

TEST(Families, Glm4Moe) {
  // GLM-4.5-Air without the layer that predicts a further token: 96 heads and 8 of 128, one dense layer.
  const std::int64_t attention = 2 * 4096_ * 12288 + 2 * 4096_ * 1024 + 12288 + 2 * 1024;
  const std::int64_t experts = 129 * 3 * 4096_ * 1408 + 128 * 4096 + 128, dense = 3 * 4096_ * 10944;
  EXPECT_EQ(2 * 151552_ * 4096 + 46 * (attention + 2 * 4096) + dense + 45 * experts + 4096, 106'852'251'264);
  EXPECT_EQ(count(decoder("glm4_moe", 46, 4096, 96, 8, 10944, 151552) + R"(, "head_dim": 128, "attention_bias": true,
      "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
      "first_k_dense_replace": 1)"),
            106'852'251'264);
}

TEST(Families, Cohere) {
  // Command R: one norm in a layer, tied.
  EXPECT_EQ(256000_ * 8192 + 40 * (4 * 8192_ * 8192 + 3 * 8192_ * 22528 + 8192) + 8192, 34'980'831'232);
  EXPECT_EQ(count(decoder("cohere", 40, 8192, 64, 64, 22528, 256000)), 34'980'831'232);
  // Command R+: 8 key-value heads of 128, norms for each head.
  const std::int64_t attention = 2 * 12288_ * 12288 + 2 * 12288_ * 1024 + 12288 + 1024;
  EXPECT_EQ(count(decoder("cohere", 64, 12288, 96, 8, 33792, 256000) + R"(, "use_qk_norm": true)"),
            256000_ * 12288 + 64 * (attention + 3 * 12288_ * 33792 + 12288) + 12288);
}

TEST(Families, Starcoder2) {
  // StarCoder2 3B: LayerNorms with bias, biases everywhere, tied.
  const std::int64_t attention = 2 * (3072_ * 3072 + 3072) + 2 * (3072_ * 256 + 256);
  const std::int64_t mlp = 3072_ * 12288 + 12288 + 12288_ * 3072 + 3072;
  EXPECT_EQ(49152_ * 3072 + 30 * (attention + mlp + 4 * 3072) + 2 * 3072, 3'030'371'328);
  EXPECT_EQ(count(decoder("starcoder2", 30, 3072, 24, 2, 12288, 49152) + R"(, "use_bias": true)"), 3'030'371'328);
}

TEST(Families, GptNeox) {
  // Pythia 6.9B.
  const std::int64_t h = 4096,
                     layer = (3 * h * h + 3 * h) + (h * h + h) + (4 * h * h + 4 * h) + (4 * h * h + h) + 4 * h;
  EXPECT_EQ(2 * 50432 * h + 32 * layer + 2 * h, 6'857'302'016);
  EXPECT_EQ(count(R"("model_type": "gpt_neox", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
      "intermediate_size": 16384, "vocab_size": 50432, "use_parallel_residual": true, "rotary_pct": 0.25)"),
            6'857'302'016);
}

TEST(Families, Opt) {
  // OPT-125M: 2048 + 2 positions, tied.
  const std::int64_t h = 768, layer = 4 * (h * h + h) + (4 * h * h + 4 * h) + (4 * h * h + h) + 4 * h;
  EXPECT_EQ(50272 * h + 2050 * h + 12 * layer + 2 * h, 125'239'296);
  const std::string keys =
      R"("model_type": "opt", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
      "ffn_dim": 3072, "max_position_embeddings": 2048, "vocab_size": 50272, "word_embed_proj_dim": 768)";
  EXPECT_EQ(count(keys), 125'239'296);
  // The paths of its modules are not those of Llama.
  std::string paths;
  for (const OpCost& cost : analyze(Graph(read(keys)), prefill(1, 1), {})) paths += cost.module + " ";
  for (const char* path : {"decoder.embed_tokens ", "decoder.layers.0.self_attn.out_proj ", "decoder.layers.11.fc1 ",
                           "decoder.layers.0.final_layer_norm ", "decoder.final_layer_norm "}) {
    EXPECT_NE(paths.find(path), std::string::npos) << path;
  }
}

TEST(Families, Gptj) {
  // GPT-J 6B: one LayerNorm in a layer, biases in the MLP and at the logits only.
  const std::int64_t h = 4096, layer = 4 * h * h + (4 * h * h + 4 * h) + (4 * h * h + h) + 2 * h;
  EXPECT_EQ(2 * 50400 * h + 50400 + 28 * layer + 2 * h, 6'050'882'784);
  EXPECT_EQ(count(R"("model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "n_positions": 2048,
      "n_inner": null, "rotary_dim": 64, "vocab_size": 50400, "tie_word_embeddings": false)"),
            6'050'882'784);
}

TEST(Families, Falcon) {
  // 7B: 71 heads of 64, one for keys and values, one norm in a layer, tied.
  const std::int64_t h = 4544;
  EXPECT_EQ(65024 * h + 32 * (h * (h + 2 * 64) + h * h + 8 * h * h + 2 * h) + 2 * h, 6'921'720'704);
  EXPECT_EQ(count(R"("model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
      "vocab_size": 65024, "multi_query": true, "parallel_attn": true, "new_decoder_architecture": false, "bias": false)"),
            6'921'720'704);
  // 40B: 128 heads and 8 of 64, two norms.
  const std::int64_t w = 8192;
  EXPECT_EQ(65024 * w + 60 * (w * (w + 2 * 512) + w * w + 8 * w * w + 4 * w) + 2 * w, 41'303'293'952);
  EXPECT_EQ(count(R"("model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192, "num_attention_heads": 128,
      "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": true, "parallel_attn": true, "alibi": false)"),
            41'303'293'952);
}

TEST(Families, ConfigAsTransformers5WritesIt) {
  // As transformers 5.17 saved it: every key that a PreTrainedConfig has.
  EXPECT_EQ(count(R"("transformers_version": "5.17.0", "architectures": null, "output_hidden_states": false,
      "return_dict": true, "dtype": null, "chunk_size_feed_forward": 0, "is_encoder_decoder": false,
      "id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "problem_type": null,
      "vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
      "num_attention_heads": 16, "num_key_value_heads": 4, "hidden_act": "silu", "max_position_embeddings": 4096,
      "initializer_range": 0.02, "rms_norm_eps": 1e-06, "use_cache": true, "pad_token_id": null, "bos_token_id": 1,
      "eos_token_id": 2, "pretraining_tp": 1, "tie_word_embeddings": false,
      "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "attention_bias": false,
      "attention_dropout": 0.0, "mlp_bias": false, "head_dim": 64, "_name_or_path": "", "model_type": "llama",
      "output_attentions": false)"),
            2 * 32000_ * 1024 + 4 * (2 * 1024_ * 1024 + 2 * 1024_ * 256 + 3 * 1024_ * 2816 + 2 * 1024) + 1024);
}

// ---- layers ------------------------------------------------------------------------------------------------

TEST(Families, WindowsOfMistral) {
  const std::string keys = decoder("mistral", 3, 64, 4, 2, 128, 100);
  EXPECT_EQ(windows(read(keys)), "4096 4096 4096");  // MistralConfig's
  EXPECT_EQ(windows(read(keys + R"(, "sliding_window": null)")), "- - -");
  EXPECT_EQ(windows(read(keys + R"(, "sliding_window": 7)")), "7 7 7");
  EXPECT_EQ(windows(read(keys + R"(, "sliding_window": 7, "layer_types": ["full_attention", "sliding_attention",
      "full_attention"])")),
            "- 7 -");
}

TEST(Families, WindowsOfQwen) {
  for (const char* type : {"qwen2", "qwen3", "qwen2_moe", "qwen3_moe"}) {
    const std::string keys = decoder(type, 4, 64, 4, 2, 128, 100) + R"(, "sliding_window": 9, "max_window_layers": 3)";
    EXPECT_EQ(windows(read(keys)), "- - - -") << type;
    EXPECT_EQ(windows(read(keys + R"(, "use_sliding_window": true)")), "- - - 9") << type;
    // As transformers 5.17 saves a Qwen2-MoE without a window.
    EXPECT_EQ(windows(read(decoder(type, 4, 64, 4, 2, 128, 100) + R"(, "sliding_window": 0)")), "- - - -") << type;
  }
}

TEST(Families, WindowsOfGemmaAndGptOss) {
  EXPECT_EQ(windows(read(decoder("gemma2", 4, 64, 4, 2, 128, 100))), "4096 - 4096 -");
  EXPECT_EQ(windows(read(decoder("gpt_oss", 4, 64, 4, 2, 128, 100))), "128 - 128 -");
  const std::string three = decoder("gemma3_text", 7, 64, 4, 2, 128, 100) + R"(, "sliding_window": 512)";
  EXPECT_EQ(windows(read(three)), "512 512 512 512 512 - 512");
  EXPECT_EQ(windows(read(three + R"(, "sliding_window_pattern": 2)")), "512 - 512 - 512 - 512");
  EXPECT_EQ(windows(read(three + R"(, "_sliding_window_pattern": 3)")), "512 512 - 512 512 - 512");
}

TEST(Families, WindowsOfTheOthers) {
  EXPECT_EQ(windows(read(decoder("phi3", 2, 64, 4, 2, 128, 100) + R"(, "sliding_window": 2047)")), "2047 2047");
  EXPECT_EQ(windows(read(decoder("starcoder2", 2, 64, 4, 2, 128, 100) + R"(, "sliding_window": 4096)")), "4096 4096");
  EXPECT_EQ(windows(read(decoder("mixtral", 2, 64, 4, 2, 128, 100))), "- -");
  EXPECT_EQ(windows(read(decoder("phi3", 2, 64, 4, 2, 128, 100) + R"(, "sliding_window": 9, "layer_types":
      ["full_attention", "sliding_attention"])")),
            "- 9");
  EXPECT_EQ(windows(read(decoder("cohere2", 5, 64, 4, 2, 128, 100) + R"(, "sliding_window": 8)")), "8 8 8 - 8");
  EXPECT_EQ(windows(read(decoder("olmo3", 4, 64, 4, 2, 128, 100))), "4096 4096 4096 -");
}

TEST(Families, ChunksAndRotationOfLlama4) {
  const Config config = read(decoder("llama4_text", 8, 64, 4, 2, 128, 100) + R"(, "attention_chunk_size": 16,
      "interleave_moe_layer_step": 2)");
  std::string chunks;
  for (const std::uint32_t kind : config.kind_of_layer) {
    const Attention& attention = config.kinds[kind].attention;
    chunks += fmt::format("{}{} ", attention.chunk, attention.rope ? "r" : "");
  }
  EXPECT_EQ(chunks, "16r 16r 16r 0 16r 16r 16r 0 ");
  EXPECT_EQ(sparse_layers(config), " 1 3 5 7");
  const Config listed = read(decoder("llama4_text", 4, 64, 4, 2, 128, 100) + R"(, "moe_layers": [2],
      "no_rope_layers": [0, 1, 1, 1])");
  EXPECT_EQ(sparse_layers(listed), " 2");
  EXPECT_FALSE(listed.kinds[listed.kind_of_layer[0]].attention.rope);
  EXPECT_EQ(listed.kinds[listed.kind_of_layer[0]].attention.chunk, 0);
  EXPECT_EQ(listed.kinds[listed.kind_of_layer[1]].attention.chunk, 8192);
}

TEST(Families, RotationOfSmolLm3) {
  const Config config = read(decoder("smollm3", 4, 64, 4, 2, 128, 100));
  EXPECT_TRUE(config.kinds[config.kind_of_layer[2]].attention.rope);
  EXPECT_FALSE(config.kinds[config.kind_of_layer[3]].attention.rope);
  // Its window, if it is used, is that of the layers without rotation.
  EXPECT_EQ(windows(read(decoder("smollm3", 4, 64, 4, 2, 128, 100) + R"(, "use_sliding_window": true,
      "sliding_window": 5)")),
            "- - - 5");
  EXPECT_EQ(windows(read(decoder("smollm3", 4, 64, 4, 2, 128, 100) + R"(, "sliding_window": 5)")), "- - - -");
}

TEST(Families, LayersWithExperts) {
  const std::string qwen = decoder("qwen3_moe", 6, 64, 4, 2, 128, 100);
  EXPECT_EQ(sparse_layers(read(qwen)), " 0 1 2 3 4 5");
  EXPECT_EQ(sparse_layers(read(qwen + R"(, "decoder_sparse_step": 2, "mlp_only_layers": [3])")), " 1 5");
  const std::string deepseek = decoder("deepseek_v3", 6, 64, 4, 4, 128, 100);
  EXPECT_EQ(sparse_layers(read(deepseek)), " 3 4 5");
  EXPECT_EQ(sparse_layers(read(deepseek + R"(, "first_k_dense_replace": 1, "moe_layer_freq": 2)")), " 2 4");
  EXPECT_EQ(sparse_layers(read(deepseek + R"(, "n_routed_experts": null)")), "");
  EXPECT_EQ(sparse_layers(read(deepseek + R"(, "mlp_layer_types": ["dense", "sparse", "dense", "dense", "sparse",
      "dense"])")),
            " 1 4");
  EXPECT_EQ(sparse_layers(read(decoder("glm4_moe", 3, 64, 4, 2, 128, 100))), " 1 2");
}

TEST(Families, NoTokenGoesToMoreExpertsThanThereAre) {
  const std::string keys = decoder("mixtral", 2, 64, 4, 2, 128, 100);
  const Result<Config> config =
      parse_config("{" + keys + R"(, "num_local_experts": 4, "num_experts_per_tok": 5})", "config.json");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, "config.json: num_experts_per_tok: 5 of 4 experts");
}

TEST(Families, EachHasANameAndNoTypeIsTakenTwice) {
  for (const Family* family : families()) {
    EXPECT_EQ(find_family(family->name), family);
    for (const std::string_view type : family->model_types) EXPECT_EQ(family_of_model_type(type), family) << type;
  }
  EXPECT_EQ(family_of_model_type("generic"), nullptr);  // no file says it
}

}  // namespace
}  // namespace llmprof::model
