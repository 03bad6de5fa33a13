#pragma once
// AdamW: Adam with bias correction, and weight decay apart from the gradient. Matrices decay, embedding tables
// included; biases and norm weights do not.

#include <cstdint>

#include "workload/buffer.h"
#include "workload/kernels.h"
#include "workload/thread_pool.h"

namespace llmprof::workload {

struct AdamWOptions {
  double learning_rate = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// The numbers of update `step` = 1, 2, … for parameters that decay, or not.
AdamWStep adamw_step(const AdamWOptions& options, std::int64_t step, bool decays);

class AdamW {
 public:
  AdamW(const AdamWOptions& options, std::int64_t parameters)
      : options_(options), first_(parameters), second_(parameters) {}

  void begin_step() { ++step_; }  // before the updates of a step; the first is step 1

  // Some consecutive parameters; `offset` is their place among all.
  struct Slice {
    std::int64_t offset, count;
    bool decays;
  };
  // parameters and gradients are of all. Every slice once per step.
  void update(const Slice& slice, const float* gradients, float* parameters, ThreadPool& pool);

 private:
  AdamWOptions options_;
  FloatBuffer first_, second_;  // the moments: fresh memory is 0
  std::int64_t step_ = 0;
};

}  // namespace llmprof::workload
