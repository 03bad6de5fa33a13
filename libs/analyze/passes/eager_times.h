#pragma once
// How long the kernels of a CUDA graph take, told from the same kernels launched one by one: programs run a step that
// way before they capture it. Without a launch recorded node by node this is what a graph's time is divided by.

#include <cstdint>
#include <vector>

namespace llmprof::analyze {

// Kernels outside graphs, of one process, in order of their launch. Names as codes.
struct EagerKernels {
  std::vector<std::uint32_t> name;
  std::vector<std::int64_t> duration_ns;
  std::size_t size() const { return name.size(); }
};

struct EagerTimes {
  std::vector<double> duration_ns;  // of each kernel of the graph; 0: unknown
  std::int64_t sequences = 0;       // times that all kernels were seen in the order of the graph
  double known = 0;                 // part of the graph's kernels whose duration is known
};

// `graph`: names of the kernels of a graph, in the order they were captured. Where the whole sequence was seen, each
// kernel has its mean over the last of them; else the mean of all kernels of its name.
EagerTimes eager_times(const std::vector<std::uint32_t>& graph, const EagerKernels& kernels);

}  // namespace llmprof::analyze
