#pragma once
// Adds up kernels that are alike: what a report asks about is the sums, not millions of kernels. Memory is bounded:
// where there are too many kinds, those known so far are handed out and may come again.

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "analyze/passes/attribute.h"
#include "trace/rows.h"

namespace llmprof::analyze {

class KernelSums {
 public:
  using Sink = std::function<void(const trace::KernelSumRow&)>;
  KernelSums(trace::Strings& strings, Sink sink) : strings_(strings), sink_(std::move(sink)) {}

  void add(const Kernels& kernels, const std::vector<trace::AttributionRow>& places);  // a place for each kernel
  void finish();

 private:
  using Kind = std::array<std::uint64_t, 7>;
  struct Hash {
    std::size_t operator()(const Kind& kind) const;
  };

  trace::Strings& strings_;
  Sink sink_;
  std::unordered_map<Kind, std::size_t, Hash> places_;  // into rows_
  std::vector<trace::KernelSumRow> rows_;
};

}  // namespace llmprof::analyze
