#pragma once
// Which stage, step and module every range stands for or lies in: one sweep per thread, rules in
// docs/format/analysis.md.

#include <cstdint>
#include <vector>

#include "analyze/names/grammar.h"
#include "analyze/passes/ranges.h"
#include "trace/rows.h"
#include "trace/strings.h"

namespace llmprof::analyze {

struct RangePlace {
  std::int32_t parent = kNone;  // index of the range that contains it
  std::int32_t step = kNone;    // index into Classified::steps
  trace::Name stage, module;
  RangeKind kind = RangeKind::kPlain;  // what it stands for after the rules were applied
  bool own_name = false;               // its module is called as the program calls its range, not as the model does
};

struct Step {
  std::int32_t range = kNone;
  std::int64_t begin_ns = 0, end_ns = 0, thread_id = 0, process_id = 0;
  std::int64_t host_end_ns = 0;  // of its range, where a device worked on until end_ns; 0: the same
  std::int64_t turn_ns = 0;  // end of the steps before it on its thread, where that is after its begin; 0: it is not
  trace::Name stage;
  std::int64_t number = 0;  // among the steps of its stage and process, by time
  StepSize size;
  double confidence = 1;
  bool declared() const { return range != kNone; }
  std::int64_t turn() const { return turn_ns != 0 ? turn_ns : begin_ns; }
  std::int64_t host_end() const { return host_end_ns != 0 ? host_end_ns : end_ns; }
};

struct Classified {
  std::vector<RangePlace> places;                // one per range
  std::vector<Step> steps;                       // sorted by begin
  std::vector<trace::RangeMeaningRow> meanings;  // how each name was understood, and why
};

// `ranges` in sweep order. Names of stages and modules are interned into `strings`.
Classified classify(const Ranges& ranges, const std::vector<RangePattern>& patterns, trace::Strings& strings);

// Sorts steps by begin and numbers those of each stage and process. Returns where each went.
std::vector<std::int32_t> number_by_time(std::vector<Step>& steps);

// Takes out the steps that are calls of a model, where most of the work is done by other means.
void set_calls_aside(Classified& classified);

// Puts inferred steps, by begin, among those that are there. Returns where each went.
std::vector<std::int32_t> add_steps(std::vector<Step> steps, Classified& classified);

// After that: inferred steps take in the ranges that are there. A module that a program names belongs to the step it
// runs in, and a step begins with the first module of its pass, not only with the first matrix product, which tells it:
// embeddings and the first norm come before. `ranges` in sweep order.
void adopt_ranges(const Ranges& ranges, Classified& classified);

// The operator of a module (grammar.h), asked for every range and kernel: worked out once per module.

class OperatorNames {
 public:
  explicit OperatorNames(trace::Strings& strings) : strings_(strings) {}

  trace::Name of(trace::Name module) {
    if (module.id == 0) return {};
    if (module.id >= names_.size()) names_.resize(module.id + 1);
    if (names_[module.id].id == 0) names_[module.id] = strings_.intern(operator_of(strings_.text(module)));
    return names_[module.id];
  }

 private:
  trace::Strings& strings_;
  std::vector<trace::Name> names_;  // by id of the module's name; id 0: not asked yet
};

}  // namespace llmprof::analyze
