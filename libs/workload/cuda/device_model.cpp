#include "workload/cuda/device_model.h"

#include <utility>

namespace llmprof::workload::cuda {

namespace {

std::int64_t cache_values(const ModelConfig& c, std::int64_t batch, std::int64_t capacity) {  // of one layer's keys
  return batch * c.kv_heads * capacity * c.head_dim;
}

}  // namespace

DeviceRows::DeviceRows(const ModelConfig& config, DeviceWeights weights, Device& device, std::int64_t rows,
                       std::int64_t positions)
    : weights_(std::move(weights)),
      config_(config),
      run_(device, weights_.type()),
      rows_(rows),
      x_(scratch(config.hidden)),
      normed_(scratch(config.hidden)),
      mixed_(scratch(config.heads * config.head_dim)) {
  const OuterNames outer = outer_names(config.family);
  token_table_ = weights_.linear(outer.embedding).weight;
  last_norm_ = weights_.norm(outer.norm);
  head_ = weights_.linear(config.tied_embeddings ? outer.embedding : "lm_head");
  embed_name_ = names_.add(outer.embedding);
  last_norm_name_ = names_.add(outer.norm);
  head_name_ = names_.add("lm_head");
  if (outer.positions != nullptr) {
    position_table_ = weights_.linear(outer.positions).weight;
    return;
  }
  RotaryAngles angles;
  angles.extend(config, positions);
  const auto bytes = static_cast<std::int64_t>(angles.sine.size() * sizeof(float));
  cosine_ = Buffer(device, bytes), sine_ = Buffer(device, bytes);
  device.copy_in(cosine_.pointer(), angles.cosine.data(), bytes);
  device.copy_in(sine_.pointer(), angles.sine.data(), bytes);
}

void DeviceRows::logits_of(Pointer x, std::int64_t stride, std::int64_t rows, Pointer logits) {
  within(last_norm_name_, [&] { run_.normalise(last_norm_, config_, x, stride, rows, normed()); });
  within(head_name_, [&] { run_.project(head_, normed(), rows, Store::kReplace, logits, ElementType::kFloat32); });
}

DeviceModel::DeviceModel(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes)
    : DeviceRows(config, std::move(weights), device, sizes.rows(), sizes.capacity),
      sizes_(sizes),
      partial_(device, Operators::partial_values(config, sizes.batch, sizes.capacity) * 4),
      inputs_(device, (1 + sizes.rows()) * static_cast<std::int64_t>(sizeof(Token))),
      cache_(device, run_.bytes(2 * config.layers * cache_values(config, sizes.batch, sizes.capacity))),
      logits_(device, sizes.batch * config.vocab * 4) {}

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
  within(embed_name_, [&] { run_.embed(pass, token_table_, position_table_, config_.hidden, x()); });
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) run_layer(pass, layer);
  logits_of(run_.at(x(), (tokens - 1) * config_.hidden), tokens * config_.hidden, pass.batch,
            logits_.pointer());
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
  return make_family<DeviceModel>(config, std::move(weights), device, sizes);
}

DeviceRunner::DeviceRunner(Device& device, std::unique_ptr<DeviceModel> model, const GenerateOptions& options,
                           Decode decode)
    : device_(device), model_(std::move(model)), options_(options), decode_(decode) {
  if (!greedy()) logits_.resize(static_cast<std::size_t>(options.batch * config().vocab));
}

// A pass and, where the device samples, its sampling.
void DeviceRunner::enqueue(std::int64_t tokens) {
  model_->forward(tokens);
  if (!greedy()) return;
  const llmprof::Module range("sampling");
  model_->choose(tokens);
}

// Both kinds of passes once: libraries load their kernels at the first use. The graph is captured with its modules
// announced: a profiler sees them at no other time.
Result<void> DeviceRunner::prepare(std::span<const Token> prompts) {
  const llmprof::Stage stage("warm-up");
  model_->set_inputs(0, prompts);
  enqueue(options_.prompt_tokens);
  if (options_.new_tokens > 1) {
    model_->set_inputs(options_.prompt_tokens, prompts.first(static_cast<std::size_t>(options_.batch)));
    enqueue(1);
    if (decode_ == Decode::kGraph) {
      graph_ = device_.capture([&] { enqueue(1); });
    }
  }
  return device_.finish();
}

Result<void> DeviceRunner::run(std::int64_t position, std::span<const Token> tokens, std::span<Token> next) {
  const std::int64_t new_tokens = std::ssize(tokens) / options_.batch;
  if (!holds_inputs_ || position == 0) model_->set_inputs(position, tokens);
  const bool by_graph = graph_ != nullptr && position > 0;
  if (by_graph) {
    graph_->launch();
  } else {
    model_->forward(new_tokens);
  }
  const llmprof::Module range("sampling");
  if (greedy()) {
    if (!by_graph) model_->choose(new_tokens);
    model_->read_chosen(next);
    holds_inputs_ = true;
  } else {
    sample_on_host(position + new_tokens, next);
  }
  return device_.status();
}

void DeviceRunner::sample_on_host(std::int64_t position, std::span<Token> next) {
  model_->read_logits(logits_);
  const auto vocab = static_cast<std::size_t>(config().vocab);
  for (std::size_t sequence = 0; sequence < next.size(); ++sequence) {
    next[sequence] = sample(options_.sampler, std::span<const float>(logits_).subspan(sequence * vocab, vocab),
                            static_cast<std::int64_t>(sequence), position);
  }
}

}  // namespace llmprof::workload::cuda
