#pragma once
// Several measurements of the same thing become one value each: by the catalogue's names where it has one for what was
// read, else by the chip's.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyze/counters/readings.h"
#include "analyze/sections/counters_summary.h"
#include "hw/counters/catalog.h"

namespace llmprof::analyze::counters {

// Whether a metric adds up over time (bytes, cycles); else it is a mean over it (percentages, rates).
bool adds_up(std::string_view metric);

// The value of one of the catalogue's counters; nullopt where its metrics are not there.
std::optional<double> value_of(std::string_view counter, const Metrics& metrics);

class Fold {
 public:
  // What was read over `occurrences` steps, launches or ranges (sums are divided by them), in `time_ns`.
  void add(const Metrics& metrics, double occurrences, double time_ns);

  std::int64_t count() const { return count_; }
  std::vector<CounterValue> values(const std::string& method) const;  // the catalogue's first, in its order
  Metrics metrics() const;                                            // means, of one occurrence

 private:
  struct Sums {
    double value = 0, weight = 0;  // weighted sum
    double plain = 0, square = 0;  // for the spread
    std::int64_t count = 0;
    void add(double x, double by);
    double mean() const { return weight > 0 ? value / weight : plain / static_cast<double>(count); }
    std::optional<double> spread() const;
  };
  CounterValue value(const std::string& name, const Sums& sums, const std::string& method) const;

  std::map<const hw::counters::Counter*, Sums> counters_;  // in the order of the catalogue: they stand in one vector
  std::map<std::string, Sums, std::less<>> metrics_;
  std::int64_t count_ = 0;
};

}  // namespace llmprof::analyze::counters
