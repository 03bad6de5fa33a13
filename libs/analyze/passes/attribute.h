#pragma once
// Where each kernel belongs: the innermost range open on its thread when it was launched, and through that range its
// step, stage, module and operator. Threads that open no steps themselves (workers) fall back to the step of their
// process whose window contains the launch; such rows are "inferred".

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/passes/classify.h"
#include "analyze/passes/operator_names.h"
#include "analyze/passes/timeline.h"
#include "trace/rows.h"

namespace llmprof::analyze {

struct Kernels {
  std::vector<std::int64_t> id, begin_ns, end_ns, thread_id, launch_begin_ns, device_id;  // launch: kNull if unknown
  std::size_t size() const { return id.size(); }
};

struct GemmOfKernel {  // sorted by kernel_id
  std::vector<std::int64_t> kernel_id, gemm_id;
};

// What shapes say about BLAS calls, parallel to GemmOfKernel; empty if nobody asked.
struct ShapeMatches {
  std::vector<trace::Name> module;  // id 0: not matched
  std::vector<std::int32_t> step;   // into Classified::steps
  std::vector<float> confidence;
};

// Steps of one process by time; they may overlap when several threads make them.
class StepWindows {
 public:
  enum class Of : std::uint8_t { kProcess, kThread };
  explicit StepWindows(const std::vector<Step>& steps, Of of = Of::kProcess);
  // The latest begun step of the process (or thread) that contains this moment, or kNone.
  std::int32_t containing(std::int64_t id, std::int64_t at_ns) const;
  // Whether the thread declares steps: then what lies in none of them belongs to none.
  bool declares_steps(std::int64_t thread_id) const { return threads_.contains(thread_id); }

 private:
  struct Series {
    std::vector<std::int64_t> begin_ns, end_ns, latest_end_ns;  // latest_end_ns: largest end up to here
    std::vector<std::int32_t> step;
  };
  std::unordered_map<std::int64_t, Series> series_;  // by process or thread
  std::unordered_map<std::int64_t, bool> threads_;
};

// Kernels may come in several blocks; totals add up over them.
class Attribution {
 public:
  Attribution(const Ranges& ranges, const Classified& classified, const GemmOfKernel& gemms,
              const ShapeMatches& matches, const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread,
              trace::Strings& strings);

  void attribute(const Kernels& kernels, std::vector<trace::AttributionRow>& rows);
  // Where what a thread did at one moment belongs: the row of a stack sample, but for its id.
  trace::SamplePlaceRow place(std::int64_t thread_id, std::int64_t at_ns);

  std::vector<std::int64_t> range_kernel_ns;  // per range: durations of the kernels launched directly in it
  std::vector<std::int64_t> step_kernels;     // per step: how many
  std::vector<std::int64_t> step_kernel_ns;   // per step: their durations

 private:
  struct Where {
    std::int32_t range = kNone, step = kNone;
    bool inferred = false;
  };
  Where locate(std::int64_t thread_id, std::int64_t at_ns);
  // Fills what the rows of kernels and of samples have in common.
  template <class Row>
  void describe(const Where& where, Row& row);
  std::optional<std::size_t> gemm_of(std::int64_t kernel_id);  // place in gemms_
  void use_match(std::size_t gemm, const Where& where, trace::AttributionRow& row);

  const Ranges& ranges_;
  const Classified& classified_;
  const GemmOfKernel& gemms_;
  const ShapeMatches& matches_;
  const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread_;
  Timelines timelines_;
  StepWindows windows_;
  std::size_t gemm_cursor_ = 0;
  OperatorNames operators_;
  trace::Name declared_, inferred_, by_range_, by_shape_;
};

}  // namespace llmprof::analyze
