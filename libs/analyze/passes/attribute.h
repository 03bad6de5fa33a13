#pragma once
// Where each kernel belongs: the innermost range open on its thread when it was launched, and through that range its
// step, stage, module and operator. Threads that open no steps themselves (workers) fall back to the step of their
// process whose window contains the launch; such rows are "inferred".
// A kernel of a graph has its step and stage from the launch that replayed it, its module, operator and BLAS call from
// the node: what was open when that was captured.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/passes/classify.h"
#include "analyze/passes/graphs.h"
#include "analyze/passes/positions.h"
#include "analyze/passes/ranges.h"
#include "trace/rows.h"

namespace llmprof::analyze {

struct Kernels {
  std::vector<std::int64_t> id, begin_ns, end_ns, thread_id, launch_begin_ns, device_id;  // launch: kNull if unknown
  std::vector<std::int64_t> gemm_id, graph_node_id;  // kNull: none. Both may be left empty: no kernel has one
  // For sums only; empty where nobody adds up.
  std::vector<std::int64_t> launch_end_ns, stream, graph_launch_id, stack_id;  // kNull: none
  std::vector<std::int64_t> name;                                              // a code into texts
  std::vector<std::int64_t> estimated;                                         // 1: not measured
  std::vector<std::string> texts;
  std::size_t size() const { return begin_ns.size(); }
  std::int64_t gemm(std::size_t i) const { return gemm_id.empty() ? kNull : gemm_id[i]; }
  std::int64_t node(std::size_t i) const { return graph_node_id.empty() ? kNull : graph_node_id[i]; }
};

// The kernel that stands for each BLAS call: its only one, or the longest. Sorted by kernel_id.
struct GemmOfKernel {
  std::vector<std::int64_t> kernel_id, gemm_id;
};

// What shapes say about BLAS calls, sorted by gemm_id; empty if nobody asked.
struct ShapeMatches {
  std::vector<std::int64_t> gemm_id;
  std::vector<trace::Name> module;  // id 0: not matched
  std::vector<std::int32_t> step;   // into Classified::steps; kNone for calls that were only captured
  std::vector<float> confidence;
  Positions launched, captured;  // of kernels between the calls, by thread and by graph
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

// Kernels and launches may come in several blocks; totals add up over them.
class Attribution {
 public:
  Attribution(const Ranges& ranges, const Classified& classified, const GemmOfKernel& gemms,
              const ShapeMatches& matches, const ProcessOfThread& process_of_thread, trace::Strings& strings);

  // Before any kernel: what the nodes of graphs stand for.
  std::vector<trace::NodePlaceRow> place_nodes(const GraphNodes& nodes);

  void attribute(const Kernels& kernels, std::vector<trace::AttributionRow>& rows);
  // The step that a launch on this thread at this moment belongs to, or kNone.
  std::int32_t step_at(std::int64_t thread_id, std::int64_t at_ns) { return locate(thread_id, at_ns).step; }
  // The step that a kernel belongs to, or kNone.
  std::int32_t step_of(const Kernels& kernels, std::size_t i);
  bool asks_calls() const { return !matches_.gemm_id.empty(); }  // step_of() does
  // Launches whose nodes were not recorded count with the kernels and the kernel time that their shares say; without
  // shares, as kernel time of no known kernel.
  void place_launches(const GraphLaunches& launches, const SharesOfGraphs& shares,
                      std::vector<trace::LaunchPlaceRow>& rows);
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
  struct Gemm {
    std::int64_t id = kNull;
    bool call = false;  // this kernel stands for the call: calls are counted by it
  };
  Where locate(std::int64_t thread_id, std::int64_t at_ns);
  Where locate_kernel(const Kernels& kernels, std::size_t i, const Gemm& gemm);
  // Fills what the rows of kernels, launches and samples have in common.
  template <class Row>
  void describe(const Where& where, Row& row);
  void describe_module(const Where& where, trace::Name& module, trace::Name& op);
  Gemm gemm_of(const Kernels& kernels, std::size_t i);
  std::size_t match_of(std::int64_t gemm_id);  // place in matches_, or kNotFound
  void use_match(std::int64_t gemm_id, const Where& where, trace::AttributionRow& row);
  void use_node(const trace::NodePlaceRow& node, trace::AttributionRow& row);
  // Kernels of rows `first` and after that belong to no module yet.
  void use_positions(const Kernels& kernels, std::vector<trace::AttributionRow>& rows, std::size_t first);
  void use_positions(const GraphNodes& nodes, std::vector<trace::NodePlaceRow>& rows);
  template <class Row>
  void use_place(const Positions::Place& place, Row& row);
  void count(const Where& where, std::int64_t kernels, std::int64_t kernel_ns);

  const Ranges& ranges_;
  const Classified& classified_;
  const GemmOfKernel& gemms_;
  const ShapeMatches& matches_;
  const ProcessOfThread& process_of_thread_;
  Timelines timelines_;
  StepWindows windows_;
  std::unordered_map<std::int64_t, trace::NodePlaceRow> nodes_;
  std::vector<bool> matched_;  // by step: whether products of it were, or could have been
  std::size_t gemm_cursor_ = 0, match_cursor_ = 0;
  OperatorNames operators_;
  trace::Name declared_, inferred_, by_range_, by_shape_, by_position_;
};

}  // namespace llmprof::analyze
