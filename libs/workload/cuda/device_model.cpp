#include "workload/cuda/device_model.h"

#include <utility>

#include "workload/cuda/families.h"

namespace llmprof::workload::cuda {
namespace {

std::int64_t cache_values(const ModelConfig& c, std::int64_t batch, std::int64_t capacity) {  // of one layer's keys
  return batch * c.kv_heads * capacity * c.head_dim;
}

}  // namespace

DeviceModel::DeviceModel(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes)
    : config_(config),
      weights_(std::move(weights)),
      run_(device, weights_.type()),
      sizes_(sizes),
      x_(scratch(sizes.rows() * config.hidden)),
      normed_(scratch(sizes.rows() * config.hidden)),
      mixed_(scratch(sizes.rows() * config.heads * config.head_dim)),
      partial_(device, Operators::partial_values(config, sizes.batch, sizes.capacity) * 4),
      head_name_(names_.add("lm_head")),
      inputs_(device, (1 + sizes.rows()) * static_cast<std::int64_t>(sizeof(Token))),
      cache_(scratch(2 * config.layers * cache_values(config, sizes.batch, sizes.capacity))),
      logits_(device, sizes.batch * config.vocab * 4) {
  const char* const embedding = config.family == Family::kGpt2 ? "wte" : "embed_tokens";
  head_ = weights_.linear(config.tied_embeddings ? embedding : "lm_head");
}

LayerCache DeviceModel::cache_of(std::int64_t layer) const {
  const std::int64_t values = cache_values(config_, sizes_.batch, sizes_.capacity);
  return {.keys = run_.at(cache_.pointer(), layer * values),
          .values = run_.at(cache_.pointer(), (config_.layers + layer) * values),
          .capacity = sizes_.capacity};
}

void DeviceModel::set_inputs(std::int64_t position, std::span<const Token> tokens) {
  std::vector<Token> inputs{static_cast<Token>(position)};
  inputs.insert(inputs.end(), tokens.begin(), tokens.end());
  run_.device().copy_in(inputs_.pointer(), inputs.data(),
                        std::ssize(inputs) * static_cast<std::int64_t>(sizeof(Token)));
}

// Only the last position of each sequence is sampled, so only it is normalised and multiplied by the head.
void DeviceModel::forward(std::int64_t tokens) {
  const DevicePass pass = pass_of(tokens);
  embed(pass);
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) run_layer(pass, layer);
  final_norm(run_.at(x_.pointer(), (tokens - 1) * config_.hidden), tokens * config_.hidden, pass.batch);
  const llmprof::Module range(head_name_);
  run_.project(head_, normed_.pointer(), pass.batch, Store::kReplace, logits_.pointer(), ElementType::kFloat32);
}

void DeviceModel::read_chosen(std::span<Token> next) const {
  run_.device().copy_out(next.data(), inputs_.pointer() + sizeof(Token), static_cast<std::int64_t>(next.size_bytes()));
}

void DeviceModel::read_logits(std::span<float> logits) const {
  run_.device().copy_out(logits.data(), logits_.pointer(), static_cast<std::int64_t>(logits.size_bytes()));
}

std::unique_ptr<DeviceModel> make_device_model(const ModelConfig& config, DeviceWeights weights, Device& device,
                                               const GenerateOptions& o) {
  const DeviceModel::Sizes sizes{o.batch, o.prompt_tokens, o.prompt_tokens + o.new_tokens};
  if (config.family == Family::kGpt2) {
    return std::make_unique<DeviceGpt2>(config, std::move(weights), device, sizes);
  }
  return std::make_unique<DeviceLlama>(config, std::move(weights), device, sizes);
}

}  // namespace llmprof::workload::cuda
