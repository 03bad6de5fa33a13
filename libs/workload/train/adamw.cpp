#include "workload/train/adamw.h"

#include <cmath>

#include "workload/kernels.h"

namespace llmprof::workload {
namespace {

float correction(double beta, std::int64_t step) {
  return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(step))));
}

}  // namespace

void AdamW::update(const Slice& slice, const float* gradients, float* parameters, ThreadPool& pool) {
  const AdamWStep step{.learning_rate = static_cast<float>(options_.learning_rate),
                       .beta1 = static_cast<float>(options_.beta1),
                       .beta2 = static_cast<float>(options_.beta2),
                       .epsilon = static_cast<float>(options_.epsilon),
                       .weight_decay = slice.decays ? static_cast<float>(options_.weight_decay) : 0.0F,
                       .correction1 = correction(options_.beta1, step_),
                       .correction2 = correction(options_.beta2, step_)};
  pool.parallel_for(slice.count, 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = slice.offset + begin;
    kernels().adamw(step, gradients + at, end - begin, parameters + at, first_.data() + at, second_.data() + at);
  });
}

}  // namespace llmprof::workload
