#include "workload/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "base/asset.h"
#include "llmprof/annotate.h"
#include "workload/generate.h"
#include "workload/kernels.h"
#include "workload/train/trainer.h"

namespace llmprof::workload {

namespace {

Error bad_option(std::string message) { return {ErrorCode::kUsage, std::move(message), ""}; }

class Loop {
 public:
  Loop(TrainingModel& model, const TrainOptions& options)
      : model_(model),
        options_(options),
        batch_(static_cast<std::uint32_t>(options.batch)),
        tokens_(static_cast<std::uint32_t>(options.tokens)) {}

  Result<TrainedStep> step(std::int64_t number) {
    const llmprof::Stage container("train_step", batch_, tokens_, tokens_);
    TrainedStep result;
    const std::int64_t begin_ns = now_ns();
    const TrainingBatch data = training_batch(corpus(), options_.batch, options_.tokens, options_.seed, number);
    const auto forward = [&]() -> Result<void> {
      LLMPROF_LET(result.loss, model_.forward(data.inputs, data.targets));
      return {};
    };
    LLMPROF_LET(result.forward_ns, stage("forward", forward));
    LLMPROF_LET(result.backward_ns, stage("backward", [&] { return model_.backward(); }));
    LLMPROF_LET(result.optimizer_ns, stage("optimizer", [&] { return model_.update(); }));
    result.total_ns = now_ns() - begin_ns;
    return result;
  }

 private:
  template <class Body>
  Result<std::int64_t> stage(const char* name, Body&& body) {
    const std::int64_t begin_ns = now_ns();
    const llmprof::Step range(name, batch_, tokens_, tokens_);
    LLMPROF_TRY(body());
    return now_ns() - begin_ns;
  }

  TrainingModel& model_;
  const TrainOptions& options_;
  std::uint32_t batch_, tokens_;
};

// Values that a run keeps: parameters four times, what forward leaves for backward, the logits. As floating point:
// absurd sizes multiply to more than 64 bits.
double kept_values(const ModelConfig& c, const TrainOptions& o) {
  const auto rows = static_cast<double>(o.batch) * static_cast<double>(o.tokens);
  const auto hidden = static_cast<double>(c.hidden), inner = static_cast<double>(c.intermediate);
  const auto squares = rows * static_cast<double>(c.heads) * static_cast<double>(o.tokens);
  const double of_layer = 4 * (4 * hidden * hidden + 2 * hidden * inner) + rows * (8 * hidden + 2 * inner) + squares;
  return static_cast<double>(c.layers) * of_layer + static_cast<double>(c.vocab) * (4 * hidden + rows);
}

bool is_fraction(double value) { return value >= 0 && value < 1; }

// A number without pattern for each argument (the finaliser of SplitMix64).
std::uint64_t scatter(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

Result<void> check_training(const ModelConfig& config, const TrainOptions& o) {
  constexpr std::int64_t kMostSequences = 1 << 16;
  if (config.family != Family::kGpt2) {
    return Error{ErrorCode::kUnsupported, "only the GPT-2 family can be trained", ""};
  }
  if (config.vocab < kByteTokens) {
    return bad_option(fmt::format("vocab is {}, the text needs {}: one token per byte", config.vocab, kByteTokens));
  }
  if (o.batch < 1 || o.batch > kMostSequences) {
    return bad_option(fmt::format("batch is {}, allowed are 1 to {}", o.batch, kMostSequences));
  }
  const std::int64_t most_tokens = std::min<std::int64_t>(config.positions, std::ssize(corpus()) - 1);
  if (o.tokens < 1 || o.tokens > most_tokens) {
    return bad_option(
        fmt::format("tokens is {}, allowed are 1 to {}: the positions of the model", o.tokens, most_tokens));
  }
  constexpr double kMostValues = 1e15;  // 4 PB: beyond any machine, and far from the end of 64 bits
  if (kept_values(config, o) > kMostValues) return bad_option("the sizes multiply to more memory than any machine has");
  if (o.steps < 1 || o.steps > 1'000'000'000) return bad_option("steps must be 1 to 1000000000");
  const AdamWOptions& a = o.optimizer;
  if (!(a.learning_rate >= 0 && std::isfinite(a.learning_rate))) return bad_option("lr must be 0 or more");
  if (!is_fraction(a.beta1) || !is_fraction(a.beta2)) return bad_option("beta1 and beta2 must be 0 to less than 1");
  if (!(a.weight_decay >= 0 && std::isfinite(a.weight_decay))) return bad_option("weight-decay must be 0 or more");
  return {};
}

Result<std::vector<TrainedStep>> train(TrainingModel& model, const TrainOptions& options, const StepDone& done) {
  Loop loop(model, options);
  std::vector<TrainedStep> steps;
  for (std::int64_t number = 0; number < options.steps; ++number) {
    LLMPROF_LET(const TrainedStep step, loop.step(number));
    steps.push_back(step);
    done(number, step);
  }
  return steps;
}

std::span<const base::Asset> assets();  // made by llmprof_embed_assets

std::string_view corpus() { return base::find_asset(assets(), "train/corpus.txt"); }

TrainingBatch training_batch(std::string_view text, std::int64_t batch, std::int64_t tokens, std::uint64_t seed,
                             std::int64_t step) {
  LLMPROF_ASSERT(std::ssize(text) > tokens);
  const auto places = static_cast<std::uint64_t>(std::ssize(text) - tokens);
  TrainingBatch out;
  for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
    const auto draw = static_cast<std::uint64_t>(step * batch + sequence + 1);
    const std::size_t begin = scatter(seed + 0x9E3779B97F4A7C15ULL * draw) % places;
    for (std::size_t t = begin; t < begin + static_cast<std::size_t>(tokens); ++t) {
      out.inputs.push_back(static_cast<unsigned char>(text[t]));
      out.targets.push_back(static_cast<unsigned char>(text[t + 1]));
    }
  }
  return out;
}

CpuTraining::CpuTraining(const ModelConfig& config, const TrainOptions& options, ThreadPool& pool)
    : config_(config),
      batch_(options.batch),
      tokens_(options.tokens),
      rows_(options.batch * options.tokens),
      pool_(pool) {
  LLMPROF_ASSERT(config.family == Family::kGpt2 && options.tokens <= config.positions);
}

void CpuTraining::set_batch(std::span<const Token> inputs, std::span<const Token> targets) {
  LLMPROF_ASSERT(std::ssize(inputs) == rows_ && std::ssize(targets) == rows_);
  inputs_.assign(inputs.begin(), inputs.end());
  targets_.assign(targets.begin(), targets.end());
}

void CpuTraining::embed(const float* table, const float* positions, float* out) {
  const std::int64_t c = config_.hidden;
  pool_.parallel_for(rows_, worthwhile_rows(c), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::copy_n(table + inputs_[static_cast<std::size_t>(row)] * c, c, out + row * c);
      kernels().add(out + row * c, positions + row % tokens_ * c, c);
    }
  });
}

void CpuTraining::normalise(const Norm& norm, const float* x, float* out) {
  const std::int64_t n = config_.hidden;
  pool_.parallel_for(rows_, worthwhile_rows(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      kernels().layer_norm(x + row * n, norm.weight, norm.bias, static_cast<float>(config_.norm_epsilon), n,
                           out + row * n);
    }
  });
}

void CpuTraining::gelu(const float* x, float* out) {
  pool_.parallel_for(rows_ * config_.intermediate, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    std::copy(x + begin, x + end, out + begin);
    kernels().gelu(out + begin, end - begin);
  });
}

void CpuTraining::copy_stream(const float* from, float* to) { std::copy_n(from, rows_ * config_.hidden, to); }
void CpuTraining::clear_stream(float* to) { std::fill_n(to, rows_ * config_.hidden, 0.0F); }

CausalAttention CpuTraining::attention_of(const float* qkv, float* probabilities) const {
  return {.batch = batch_,
          .tokens = tokens_,
          .heads = config_.heads,
          .head_dim = config_.head_dim,
          .qkv = qkv,
          .probabilities = probabilities,
          .pool = pool_};
}

}  // namespace llmprof::workload
