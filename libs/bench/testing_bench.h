#pragma once
// For tests: a device whose calls take as long as the test says.

#include <memory>
#include <string>
#include <vector>

#include "bench/bench.h"

namespace llmprof::bench {

class FakeBench : public Bench {
 public:
  explicit FakeBench(BenchOptions options, std::vector<std::string>* ran) : options_(std::move(options)), ran_(ran) {
    device_.kind = "cpu";
    device_.name = "Abacus";
    device_.units = 1;
    device_.memory_bytes = 1 << 20;
  }
  const hw::Device& device() const override { return device_; }
  const std::vector<hw::Peak>& peaks() const override { return peaks_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  PointResult run(const Problem& problem, const std::function<bool()>& go_on) override {
    ran_->push_back(problem.key() + (options_.cache == Cache::kHot ? " hot" : ""));
    PointResult result{.problem = problem, .status = Status::kMeasured, .implementation = "beads", .timer = "clock"};
    result.work = {.flops = 0, .read_bytes = 800, .write_bytes = 400};
    result.roof = {.floor_seconds = 5e-7, .bound = "memory", .denominator = "2.4 GB/s"};
    result.measured.samples = {1e-6, 2e-6, 3e-6};
    result.measured.time = statistics(result.measured.samples);
    result.measured.stopped_by = go_on() ? StoppedBy::kSpread : StoppedBy::kUser;
    result.error = 0.25;
    return result;
  }

  hw::Device device_;
  std::vector<hw::Peak> peaks_;
  std::vector<std::string> notes_;

 private:
  BenchOptions options_;
  std::vector<std::string>* ran_;
};

}  // namespace llmprof::bench
