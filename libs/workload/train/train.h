#pragma once
// The loop of training: forward, backward, update, over and over. Announces its steps and their stages
// (llmprof/annotate.h) and measures itself, so that a profiler's figures can be checked against it.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/model.h"
#include "workload/train/trainer.h"

namespace llmprof::workload {

struct TrainedStep {
  double loss = 0;  // before the update
  std::int64_t forward_ns = 0, backward_ns = 0, optimizer_ns = 0;
  std::int64_t total_ns = 0;  // with the making of the batch
};

// Whether the model and the text can do this run: family, vocabulary, positions, ranges.
Result<void> check_training(const ModelConfig& config, const TrainOptions& options);

using StepDone = std::function<void(std::int64_t number, const TrainedStep& step)>;

// The options must pass check_training. `done` hears of each step, numbered from 0.
Result<std::vector<TrainedStep>> train(TrainingModel& model, const TrainOptions& options, const StepDone& done);

// What the model is trained on: a text that is part of the program (corpus.txt, written for it), as bytes. Byte b is
// token b, so only the first 256 rows of a larger vocabulary ever occur.

inline constexpr std::int64_t kByteTokens = 256;

std::string_view corpus();

struct TrainingBatch {
  std::vector<Token> inputs, targets;  // (B, T): targets are the inputs one byte later
};

// Sequences from places of the text that follow from seed and step only. The text must be longer than `tokens`.
TrainingBatch training_batch(std::string_view text, std::int64_t batch, std::int64_t tokens, std::uint64_t seed,
                             std::int64_t step);

}  // namespace llmprof::workload
