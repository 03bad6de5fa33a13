#pragma once
// How kernels were launched: blocks, threads, registers, shared memory; and how many of their blocks fit a
// multiprocessor at once.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

// What one multiprocessor holds at most. NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability"; reserved shared memory and granularities as Nsight Compute's occupancy limits show them.
struct SmLimits {
  std::int64_t warps = 0, blocks = 0, registers = 0, shared_bytes = 0, reserved_per_block = 0;
};
std::optional<SmLimits> sm_limits(std::string_view chip);  // "sm_90", "compute capability 9.0", "Hopper"

struct Occupancy {
  std::int64_t blocks = 0;  // that fit one multiprocessor
  double occupancy = 0;     // their warps, of those that fit
  std::string limiter;      // "registers", "shared memory", "threads of a block", "number of blocks"
};
struct LaunchShape {
  std::string kernel;
  std::int64_t device_id = 0, units = 0;  // multiprocessors of the device; 0 unknown
  std::string chip;
  std::int64_t launches = 0, time_ns = 0;        // of the kernel with this shape
  std::int64_t blocks = 0, threads = 0;          // of the grid; of a block
  std::int64_t registers = 0, shared_bytes = 0;  // per thread; per block
};
Occupancy occupancy_of(const LaunchShape& shape, const SmLimits& limits);

// Of each kernel the shape that took most time; measured launches on GPUs only, the 200 that took most.
Result<std::vector<LaunchShape>> launch_shapes(const trace::Run& run);
const LaunchShape* find_shape(const std::vector<LaunchShape>& shapes, std::string_view kernel);

}  // namespace llmprof::analyze
