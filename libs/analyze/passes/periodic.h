#pragma once
// Steps of a thread that launches the same sequence of work again and again, told from nothing but that sequence: the
// last resort, where neither ranges nor matrix products say anything. docs/format/analysis.md states the rules.

#include <cstdint>
#include <optional>
#include <vector>

namespace llmprof::analyze {

// What one thread launched, in order.
struct LaunchSequence {
  std::vector<std::uint32_t> symbol;    // kernels by name, graphs by what they are
  std::vector<std::int64_t> begin_ns;   // of the launch
  std::vector<std::int64_t> done_ns;    // its end on the device
  std::vector<std::int64_t> device_ns;  // its time there
  std::size_t size() const { return symbol.size(); }
};

struct PeriodicStep {
  std::int64_t begin_ns = 0, end_ns = 0;
};

struct Periodicity {
  std::size_t period = 0;  // launches
  double match = 0;        // device time of launches that come again one period later, of all device time
  std::vector<PeriodicStep> steps;
};

// Nothing: the sequence does not repeat for at least half of its device time.
std::optional<Periodicity> find_period(const LaunchSequence& sequence);

}  // namespace llmprof::analyze
