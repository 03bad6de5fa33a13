#pragma once
// Adds up kernels and ranges that are alike: what a report asks about is the sums, not millions of them.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/passes/attribute.h"
#include "trace/rows.h"

namespace llmprof::analyze {

struct HashOfKind {
  template <std::size_t N>
  std::size_t operator()(const std::array<std::uint64_t, N>& kind) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : kind) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

// Memory is bounded: where there are too many kinds, those known so far are handed out and may come again.
class KernelSums {
 public:
  using Sink = std::function<void(const trace::KernelSumRow&)>;
  KernelSums(trace::Strings& strings, Sink sink) : strings_(strings), sink_(std::move(sink)) {}

  void add(const Kernels& kernels, const std::vector<trace::AttributionRow>& places);  // a place for each kernel
  void finish();

 private:
  using Kind = std::array<std::uint64_t, 7>;

  trace::Strings& strings_;
  Sink sink_;
  std::unordered_map<Kind, std::size_t, HashOfKind> places_;  // into rows_
  std::vector<trace::KernelSumRow> rows_;
};

class RangeSums {
 public:
  // `pass_of_step`: ModelPasses::pass_of_step.
  explicit RangeSums(const std::vector<std::optional<std::int64_t>>& pass_of_step) : pass_of_step_(pass_of_step) {}

  void add(const trace::RangeTimeRow& range);
  std::vector<trace::RangeSumRow> finish();

 private:
  using Kind = std::array<std::uint64_t, 3>;
  struct Sum {
    trace::RangeSumRow row;
    std::vector<std::int64_t> steps;  // without repetition one after another
  };

  const std::vector<std::optional<std::int64_t>>& pass_of_step_;
  std::unordered_map<Kind, std::size_t, HashOfKind> places_;  // into sums_
  std::vector<Sum> sums_;
};

}  // namespace llmprof::analyze
