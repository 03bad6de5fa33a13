#include "workload/cuda/device_runner.h"

#include <utility>

namespace llmprof::workload::cuda {

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
