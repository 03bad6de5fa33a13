#pragma once
// What /metrics says, under vLLM's names: counters, gauges and histograms of the engine. Written by the engine's
// thread, read by the server's.

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "serving/engine.h"
#include "workload/serve/live_engine.h"

namespace llmprof::workload {

// A histogram as Prometheus has it: counts of values up to each bound.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);
  void write(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::int64_t> counts_;  // of each interval; the last is above all bounds
  double sum_ = 0;
};

class ServerMetrics {
 public:
  ServerMetrics(std::string model, const serving::EngineRules& rules, std::int64_t usable_blocks);

  // Of the engine's listener.
  void scheduled(std::int32_t prompt_tokens, std::int32_t cached_tokens);
  void token(std::int64_t since_last_ns, bool first, std::int32_t prompt_tokens);
  void ended(const Ended& ended);
  void step(const StepReport& report);
  // Requests that the engine has; they change without a step, too.
  void load(std::int64_t running, std::int64_t waiting, std::int64_t blocks_used);

  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::string labels_, config_labels_;
  std::int64_t usable_blocks_;
  std::int64_t running_ = 0, waiting_ = 0, blocks_used_ = 0;
  std::int64_t preemptions_ = 0, prompt_tokens_ = 0, generated_tokens_ = 0, prefix_queries_ = 0, prefix_hits_ = 0;
  std::array<std::int64_t, 4> ended_{};  // by Finish
  Histogram iteration_tokens_, ttft_s_, itl_s_, tpot_s_, e2e_s_, queue_s_, prefill_s_, decode_s_, inference_s_;
  Histogram prompt_lengths_, output_lengths_;
};

}  // namespace llmprof::workload
