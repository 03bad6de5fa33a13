// A GGUF file: the header's rules, its metadata as a config, its tensors joined with the analysis.

#include <cmath>

#include "fuzz.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/gguf.h"
#include "model/memory.h"
#include "model/model.h"
#include "model/testing/gguf_builder.h"

namespace llmprof::fuzz {
namespace {

void check_tensors(const model::GgufModel& file, std::uint64_t file_bytes) {
  std::uint64_t end = 0;
  for (const model::GgufTensor& tensor : file.first.tensors) {
    require(tensor.type != nullptr && tensor.offset >= end);
    end = tensor.offset + tensor.bytes;
    require(end <= file_bytes && file.first.data_offset + end <= file_bytes);
  }
}

void run(std::string_view input) {
  auto file = model::list_gguf(in_file(input));
  if (!file) return;
  check_tensors(*file, input.size());
  const auto text = model::config_text_of(*file, "input");
  if (!text) return;
  auto config = model::parse_config(*text, "input");
  if (!config || config->layers() > 200) return;  // a list of operators per layer: time, not risk
  const model::Checkpoint checkpoint = model::join_checkpoint(std::move(file->list), *config);
  require(checkpoint.bytes <= input.size() && checkpoint.parameters >= 0);
  for (const auto& [path, number] : config->stored) require(std::isfinite(number.bytes) && number.bytes >= 0);
  const double bytes = model::weights_bytes(model::Graph(*config));
  require(std::isfinite(bytes) && bytes >= 0);
}

model::testing::GgufBuilder metadata(const std::string& architecture) {
  model::testing::GgufBuilder file;
  file.text("general.architecture", architecture);
  file.u32("general.alignment", 32);
  file.u32(architecture + ".block_count", 1);
  file.u32(architecture + ".embedding_length", 32);
  file.u32(architecture + ".attention.head_count", 2);
  file.u32(architecture + ".attention.head_count_kv", 1);
  file.u32(architecture + ".feed_forward_length", 32);
  file.u32(architecture + ".context_length", 128);
  return file;
}

std::vector<std::string> seeds() {
  auto llama = metadata("llama");
  llama.texts("tokenizer.ggml.tokens", 3);
  llama.tensor("token_embd.weight", {32, 3}, 8);
  llama.tensor("blk.0.attn_q.weight", {32, 32}, 2);
  llama.tensor("blk.0.ffn_up.weight", {32, 32}, 39);
  auto mixtral = metadata("llama");
  mixtral.u32("llama.expert_count", 2);
  mixtral.u32("llama.expert_used_count", 1);
  mixtral.tensor("blk.0.ffn_up_exps.weight", {32, 2, 2}, 8);
  auto gemma = metadata("gemma3");
  gemma.numbers("gemma3.attention.sliding_window_pattern", {1});
  gemma.u32("gemma3.attention.sliding_window", 16);
  gemma.tensor("token_embd.weight", {32, 3});
  auto latent = metadata("deepseek2");
  for (const char* key : {"attention.key_length", "attention.value_length", "attention.kv_lora_rank",
                          "rope.dimension_count", "expert_count", "expert_used_count", "expert_shared_count",
                          "expert_feed_forward_length", "leading_dense_block_count"}) {
    latent.u32("deepseek2." + std::string(key), 2);
  }
  return {llama.file(),  mixtral.file(),          gemma.file(),
          latent.file(), metadata("gpt2").file(), model::testing::GgufBuilder().file()};
}

std::vector<std::string> dictionary() {
  return {"GGUF",
          "general.architecture",
          "general.alignment",
          "split.count",
          "split.no",
          "split.tensors.count",
          "llama.block_count",
          "llama.expert_count",
          "llama.attention.key_length",
          "tokenizer.ggml.tokens",
          "token_embd.weight",
          "output.weight",
          "blk.0.",
          "blk.1.attn_kv_b.weight",
          "blk.0.ffn_gate_up_exps.weight",
          "gpt-oss",
          "qwen3moe",
          "phi3",
          std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8),
          std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8),
          std::string("\0\0\0\1", 4)};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
