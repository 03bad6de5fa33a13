#include "workload/cuda/paged_model.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace llmprof::workload::cuda {
namespace {

constexpr std::int64_t kNumbersOfRow = 3;

std::int64_t values_of_layer(const ModelConfig& c, const PagedModel::Sizes& sizes) {  // keys
  return sizes.blocks * c.kv_heads * sizes.block_tokens * c.head_dim;
}

std::int64_t most_numbers(const PagedModel::Sizes& s) {
  const std::int64_t blocks_of_sequence = (s.positions + s.block_tokens - 1) / s.block_tokens;
  return kNumbersOfRow * s.rows + s.sequences * (blocks_of_sequence + 1);
}

}  // namespace

PagedModel::PagedModel(const ModelConfig& config, DeviceWeights weights, Device& device, const Sizes& sizes)
    : DeviceRows(config, std::move(weights), device, sizes.rows, sizes.positions),
      sizes_(sizes),
      inputs_(device, most_numbers(sizes) * 4),
      cache_(device, run_.bytes(2 * config.layers * values_of_layer(config, sizes))),
      gathered_(device, run_.bytes(sizes.sequences * config.hidden)),
      logits_(device, sizes.sequences * config.vocab * 4),
      likeliest_(device, (1 + sizes.sequences) * 4) {}

PagedLayer PagedModel::cache_of(std::int64_t layer) const {
  const std::int64_t values = values_of_layer(config_, sizes_);
  return {.keys = run_.at(cache_.pointer(), layer * values),
          .values = run_.at(cache_.pointer(), (config_.layers + layer) * values),
          .block_tokens = sizes_.block_tokens};
}

void PagedModel::set_inputs(const StepInput& input) {
  rows_now_ = std::ssize(input.tokens);
  LLMPROF_ASSERT(rows_now_ <= sizes_.rows && std::ssize(input.sequences) <= sizes_.sequences);
  staged_.resize(static_cast<std::size_t>(kNumbersOfRow * rows_now_));
  for (const NewTokens& sequence : input.sequences) {
    const auto blocks = static_cast<std::int32_t>(staged_.size());
    const std::int64_t count = (sequence.context() + sizes_.block_tokens - 1) / sizes_.block_tokens;
    staged_.insert(staged_.end(), sequence.blocks, sequence.blocks + count);
    for (std::int64_t i = 0; i < sequence.tokens; ++i) {
      const auto row = static_cast<std::size_t>(sequence.row + i);
      staged_[kNumbersOfRow * row] = input.tokens[row];
      staged_[kNumbersOfRow * row + 1] = static_cast<std::int32_t>(sequence.position + i);
      staged_[kNumbersOfRow * row + 2] = blocks;
    }
  }
  sampled_place_ = std::ssize(staged_);
  for (const NewTokens& sequence : input.sequences) {
    if (sequence.sampled) staged_.push_back(static_cast<std::int32_t>(sequence.row + sequence.tokens - 1));
  }
  sampled_ = std::ssize(staged_) - sampled_place_;
  LLMPROF_ASSERT(std::ssize(staged_) <= most_numbers(sizes_));
  run_.device().copy_in(inputs_.pointer(), staged_.data(), std::ssize(staged_) * 4);
}

void PagedModel::forward() {
  const PagedPass pass{rows_now_, inputs_.pointer()};
  within(embed_name_, [&] { run_.embed(pass, token_table_, position_table_, config_.hidden, x()); });
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) run_layer(pass, layer);
  if (sampled_ == 0) return;
  run_.gather(x(), input(sampled_place_), sampled_, config_.hidden, gathered_.pointer());
  logits_of(gathered_.pointer(), config_.hidden, sampled_, logits_.pointer());
}

// The kernel moves a position on, too, and writes the tokens behind it.
void PagedModel::read_likeliest(std::span<Token> next) {
  run_.argmax({.batch = sampled_, .tokens = 0, .inputs = likeliest_.pointer()}, logits_.pointer(), config_.vocab);
  run_.device().copy_out(next.data(), likeliest_.pointer() + sizeof(Token),
                         static_cast<std::int64_t>(next.size_bytes()));
}

void PagedModel::read_logits(std::span<float> logits) const {
  run_.device().copy_out(logits.data(), logits_.pointer(), static_cast<std::int64_t>(logits.size_bytes()));
}

DeviceStepRunner::DeviceStepRunner(Device& device, const ModelConfig& config, DeviceWeights weights,
                                   const PagedModel::Sizes& sizes)
    : device_(device),
      model_(make_family<PagedModel>(config, std::move(weights), device, sizes)),
      block_tokens_(sizes.block_tokens),
      most_rows_(sizes.rows) {}

// A chunk and a decode once: libraries load their kernels at the first use. Block 0 is nobody's.
Result<void> DeviceStepRunner::prepare() {
  const llmprof::Stage stage("warm-up");
  const serving::BlockId block = 0;
  const Sampler greedy;
  const Sampler* const sampler = &greedy;
  for (const std::int64_t rows : {std::min(block_tokens_, most_rows_), std::int64_t{1}}) {
    const std::vector<Token> tokens(static_cast<std::size_t>(rows));
    const NewTokens sequence{.row = 0, .tokens = rows, .position = 0, .blocks = &block};
    Token next = 0;
    LLMPROF_TRY(run({.tokens = tokens, .sequences = {&sequence, 1}, .samplers = {&sampler, 1}}, {&next, 1}));
  }
  return device_.finish();
}

Result<void> DeviceStepRunner::run(const StepInput& input, std::span<Token> next) {
  model_->set_inputs(input);
  model_->forward();
  if (next.empty()) return device_.finish();  // the step ends with its work
  const llmprof::Module range("sampling");
  const bool greedy = std::ranges::all_of(
      input.samplers, [](const Sampler* sampler) { return sampler->kind == Sampler::Kind::kGreedy; });
  if (greedy) {
    model_->read_likeliest(next);
    return device_.status();
  }
  logits_.resize(static_cast<std::size_t>(std::ssize(next) * config().vocab));
  model_->read_logits(logits_);
  LLMPROF_TRY(device_.status());
  sample_all(input, logits_, next);
  return {};
}

}  // namespace llmprof::workload::cuda
