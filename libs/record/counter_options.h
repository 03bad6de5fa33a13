#pragma once
// What `llmprof record` was asked to count, and how.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace llmprof::record {

enum class CounterMethod : std::uint8_t { kAutomatic, kRange, kSampled, kKernel };
enum class StallMode : std::uint8_t { kOff, kWith, kOnly };

struct NamedKernel {
  std::string name;                   // as the user knows it
  std::vector<std::string> patterns;  // of mangled names: the ways in which it may be spelled
};

struct CounterOptions {
  std::string set;  // "light", "memory,tensor_active_pct", a metric of the chip; "": nothing is counted
  CounterMethod method = CounterMethod::kAutomatic;
  std::chrono::nanoseconds period{std::chrono::milliseconds(1)};  // of samples
  double budget = 0.015;                                          // of the program's time; 0: no limit
  std::vector<std::string> ranges;  // patterns of what is measured: what names a step or a stage, or the user's
  bool own_ranges = false;          // they are the user's
  std::vector<NamedKernel> kernels;
  bool replay = false;
  StallMode stalls = StallMode::kOff;
  bool any() const { return !set.empty() || stalls != StallMode::kOff; }
};

}  // namespace llmprof::record
