#include "workload/train/adamw.h"

#include <cmath>

namespace llmprof::workload {
namespace {

float correction(double beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(step))));
}

}  // namespace

AdamWStep adamw_step(const AdamWOptions& options, std::int64_t step, bool decays) {
  return {.learning_rate = static_cast<float>(options.learning_rate),
          .beta1 = static_cast<float>(options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .epsilon = static_cast<float>(options.epsilon),
          .weight_decay = decays ? static_cast<float>(options.weight_decay) : 0.0F,
          .correction1 = correction(options.beta1, step),
          .correction2 = correction(options.beta2, step)};
}

void AdamW::update(const Slice& slice, const float* gradients, float* parameters, ThreadPool& pool) {
  const AdamWStep step = adamw_step(options_, step_, slice.decays);
  pool.parallel_for(slice.count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = slice.offset + begin;
    kernels().adamw(step, gradients + at, end - begin, parameters + at, first_.data() + at, second_.data() + at);
  });
}

}  // namespace llmprof::workload
