#pragma once
// Adds up kernels and ranges that are alike: what a report asks about is the sums, not millions of them.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/passes/attribute.h"
#include "analyze/passes/classify.h"
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

// The tree of ranges, at most kMostPlaces of it: what lies deeper or comes later counts for the place around it.
class RangeTree {
 public:
  static constexpr std::size_t kMostPlaces = 20'000;
  RangeTree(const Ranges& ranges, const Classified& classified, trace::Strings& strings);

  // In the order of `ranges`: parents first. Returns the id of its place.
  trace::Id add(std::size_t range, const trace::RangeTimeRow& time);
  std::vector<trace::RangeTreeRow> finish();

 private:
  std::int32_t place(std::int32_t parent, std::uint32_t name);

  const Ranges& ranges_;
  const Classified& classified_;
  trace::Strings& strings_;
  trace::Name rest_;                    // outermost ranges for which there is no place
  std::vector<trace::Name> shapes_;     // by code of the name
  std::vector<std::int32_t> place_of_;  // of each range
  std::unordered_map<std::uint64_t, std::int32_t> places_;
  std::vector<trace::RangeTreeRow> rows_;
};

// Host time of every range: total, and self = total less the ranges directly inside it on its thread.

// Calls emit with one row per range. `kernel_ns` as Attribution::range_kernel_ns counted it.
void for_each_range_time(const Ranges& ranges, const Classified& classified, const std::vector<std::int64_t>& kernel_ns,
                         trace::Strings& strings, const std::function<void(const trace::RangeTimeRow&)>& emit);

}  // namespace llmprof::analyze
