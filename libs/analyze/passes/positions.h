#pragma once
// Kernels that are no product with weights (norms, rotation, attention, activations, copies), placed by where they were
// launched among the products that were matched to the model, and by what their names say (kernel_class.h). What could
// belong to several operators goes to the block that holds them, what lies outside the model to nobody.
// docs/format/analysis.md states the rules in words.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyze/passes/kernel_class.h"
#include "analyze/passes/match.h"
#include "trace/strings.h"

namespace llmprof::analyze {

inline constexpr double kPositionConfidence = 0.9;  // of that of the pass

class Positions {
 public:
  Positions() = default;
  // Calls by thread, or by graph for those that were captured. What it needs of the arguments is copied.
  Positions(Products products, const Calls& calls, const Matches& matches, trace::Strings& strings);

  struct Kernel {
    std::int64_t owner = 0, at_ns = 0;  // the thread that launched it, or its graph; when
    KernelClass is = KernelClass::kUnknown;
    bool core = false;  // a product of attention, matched already
  };
  struct Place {
    trace::Name module;  // id 0: unknown
    float confidence = 0;
  };
  // One place for each; kernels between the same two products are looked at together.
  std::vector<Place> place(const std::vector<Kernel>& kernels) const;
  bool empty() const { return of_owner_.empty(); }
  bool is_core(trace::Name module) const { return cores_.contains(module.id); }  // attention itself

 private:
  struct Call {  // a matched product with weights
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int32_t slot = kNone, pass = kNone;
    bool recomputed = false;
  };
  struct Gap {                       // what the model does between two products
    std::vector<Between> items;      // in order
    std::vector<trace::Name> names;  // of the items
    trace::Name around;              // the innermost block that holds all of it; id 0: none
    trace::Name sum;                 // the block whose residual sum lies here; id 0: none does
    bool before_product = true, in_pass = true;
    bool behind_logits = false, before_gradients = false;  // between passes: what stands there can only be the loss
    bool by_name_only = false;                             // what no name tells belongs to `around`
    bool backward = false;                                 // gradients of biases may stand at its ends
  };
  const Gap& gap_after(const std::vector<Call>& calls, std::size_t next) const;
  Gap between(std::int32_t from, std::int32_t to) const;
  Gap before_recomputation(std::int32_t from, std::int32_t to) const;
  enum class End : std::uint8_t { kNowhere, kForward, kBackward };  // the pass before or after a gap
  Gap between_passes(End from, End to) const;
  std::vector<Between> beside(std::size_t slot) const;
  std::string block_of(std::size_t slot) const;
  class Filler;

  Products products_;
  trace::Strings* strings_ = nullptr;
  std::unordered_map<std::int64_t, std::vector<Call>> of_owner_;
  std::vector<float> confidence_;  // by pass
  std::vector<bool> backward_;     // by pass
  std::unordered_set<std::uint32_t> cores_;
  mutable std::map<std::tuple<std::int32_t, std::int32_t, bool>, Gap>
      gaps_;  // by slots, and if computed again; made when first asked for
};

}  // namespace llmprof::analyze
