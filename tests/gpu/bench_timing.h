#pragma once
// What the tests of timing on a GPU share.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "bench/cuda/context.h"
#include "bench/cuda/sampler.h"
#include "bench/statistics.h"

namespace llmprof::bench {
extern const Operator kResidualAdd;
}

namespace llmprof::bench::cuda {

inline Context& gpu() {
  static Result<std::unique_ptr<Context>> opened = Context::open(0);
  if (!opened) {
    std::printf("%s\n", opened.error().message.c_str());
    std::exit(1);
  }
  return **opened;
}

// The value of a Result, or the end of the test program with its error.
template <class T>
T must(Result<T> result) {
  if (!result) {
    std::printf("%s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}
inline void must(const Result<void>& result) {
  if (!result) {
    std::printf("%s\n", result.error().message.c_str());
    std::exit(1);
  }
}

// A kernel that several timers measure, alone and under ncu.
struct Subject {
  const char* name;
  std::uint64_t spin_ns;    // a spin of this length, 0: an empty kernel; or
  std::int64_t add_values;  // if not 0, x + residual in bfloat16, of so many values
};
inline constexpr Subject kSubjects[] = {
    {"empty", 0, 0},           {"spin 1 us", 1'000, 0},        {"spin 2 us", 2'000, 0},        {"spin 5 us", 5'000, 0},
    {"spin 10 us", 10'000, 0}, {"spin 100 us", 100'000, 0},    {"spin 1000 us", 1'000'000, 0}, {"add 4 Ki", 0, 4096},
    {"add 1 Mi", 0, 1 << 20},  {"add 4 Mi", 0, 4 * (1 << 20)},
};

// Calls of a subject with rotating buffers, which it owns.
class Work {
 public:
  Work(const Subject& subject, std::size_t sets) : subject_(subject), buffers_(sets), used_(sets) {
    if (subject.add_values == 0) return;
    const Problem problem{.op = "residual_add",
                          .type = Type::kBfloat16,
                          .axes = {{"batch", 1}, {"seq", 1}, {"hidden", subject.add_values}}};
    add_ = must(kResidualAdd.cuda[0].prepare(gpu(), problem));
    for (std::size_t i = 0; i < sets; ++i) {
      for (const TensorSpec& spec : kResidualAdd.tensors(problem)) {
        buffers_[i].push_back(must(gpu().allocate(spec.bytes())));
        must(fill_random(gpu(), buffers_[i].back().pointer(), spec, i));
      }
    }
  }
  Calls calls() {
    return {.enqueue = [this](std::size_t set) { return enqueue(set); }, .sets = buffers_.size()};
  }
  Result<void> enqueue(std::size_t set) {
    ++used_[set];
    if (subject_.add_values == 0) return gpu().launch("llmprof_spin_ns", {}, {subject_.spin_ns});
    const Pointer tensors[] = {buffers_[set][0].pointer(), buffers_[set][1].pointer(), buffers_[set][2].pointer()};
    return add_.enqueue(tensors, gpu().stream());
  }
  const std::vector<int>& used() const { return used_; }  // calls with each set

 private:
  Subject subject_;
  std::vector<std::vector<Buffer>> buffers_;
  std::vector<int> used_;
  CudaCall add_;
};

inline Statistics take(GpuSampler& sampler, std::size_t wanted) {
  std::vector<double> seconds;
  while (seconds.size() < wanted) {
    for (const Sample& sample : must(sampler.next(16))) seconds.push_back(sample.seconds);
  }
  return statistics(seconds);
}

}  // namespace llmprof::bench::cuda
