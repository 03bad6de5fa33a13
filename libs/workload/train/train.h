#pragma once
// The loop of training: forward, backward, update, over and over. Announces its steps and their stages
// (llmprof/annotate.h) and measures itself, so that a profiler's figures can be checked against it.

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "workload/train/trainer.h"

namespace llmprof::workload {

struct TrainOptions {
  std::int64_t batch = 4;    // sequences of a step
  std::int64_t tokens = 64;  // of each
  std::int64_t steps = 40;
  std::uint64_t seed = 0;  // of the weights and of the places in the text
  AdamWOptions optimizer;
};

struct TrainedStep {
  double loss = 0;  // before the update
  std::int64_t forward_ns = 0, backward_ns = 0, optimizer_ns = 0;
  std::int64_t total_ns = 0;  // with the making of the batch
};

// Whether the model and the text can do this run: family, vocabulary, positions, ranges.
Result<void> check_training(const ModelConfig& config, const TrainOptions& options);

// A model in training, on a CPU or a GPU: one step at a time, in this order.
class TrainingModel {
 public:
  virtual ~TrainingModel() = default;
  // The mean cross entropy of `targets` (B, T), each the token that follows its place in `inputs` (B, T).
  virtual Result<double> forward(std::span<const Token> inputs, std::span<const Token> targets) = 0;
  virtual Result<void> backward() = 0;
  virtual Result<void> update() = 0;
};

using StepDone = std::function<void(std::int64_t number, const TrainedStep& step)>;

// The options must pass check_training. `done` hears of each step, numbered from 0.
Result<std::vector<TrainedStep>> train(TrainingModel& model, const TrainOptions& options, const StepDone& done);
std::vector<TrainedStep> train(Trainer& trainer, const TrainOptions& options, const StepDone& done);  // on the CPU

}  // namespace llmprof::workload
