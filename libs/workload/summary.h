#pragma once
// What a run of the workload says about itself, for people and for programs.

#include <cstdint>
#include <string>
#include <vector>

#include "workload/config.h"
#include "workload/generate.h"
#include "workload/train/train.h"

namespace llmprof::workload {

struct RunSummary {
  ModelConfig config;
  GenerateOptions options;
  Generated generated;
  std::int64_t parameters = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t threads = 0;
  std::int64_t load_ns = 0;
  std::string weights;  // "random, seed 0" or a path
  ElementType type = ElementType::kFloat32;
  std::string gpu;          // its name; empty: on the CPU
  bool cuda_graph = false;  // decode was one
};

// Nearest rank: the smallest sample that at least `fraction` of the samples do not exceed; 0 without samples.
std::int64_t percentile(std::vector<std::int64_t> samples, double fraction);

// "2 threads, x86-64-v3 kernels", or "on NVIDIA H200"
std::string place_text(std::int64_t threads, const std::string& gpu);

std::string text_summary(const RunSummary& summary);
std::string json_summary(const RunSummary& summary);

// What a training run says about itself, for people and for programs.

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
