#pragma once
// What a training run says about itself, for people and for programs.

#include <cstdint>
#include <string>
#include <vector>

#include "workload/config.h"
#include "workload/train/train.h"

namespace llmprof::workload {

struct TrainSummary {
  ModelConfig config;
  TrainOptions options;
  std::vector<TrainedStep> steps;
  std::int64_t parameters = 0;
  std::int64_t threads = 0;
  std::int64_t load_ns = 0;
  std::string gpu;  // its name; empty: on the CPU
};

std::string head_text(const TrainSummary& summary);                   // model and run
std::string step_text(std::int64_t number, const TrainedStep& step);  // one line: number and loss
std::string times_text(const TrainSummary& summary);                  // medians of the stages
std::string json_summary(const TrainSummary& summary);

}  // namespace llmprof::workload
