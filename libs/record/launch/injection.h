#pragma once
// How our libraries get into the recorded program, and what recording an event there costs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hw/device.h"
#include "wire/clock.h"

namespace llmprof::record {

// The environment of the recorded program: its own, plus the variables that load our libraries into it and its
// children. What the user set is kept and reported.
//
// Names the capture folder to the injected libraries; also stands in the environment of all the program's children.
inline constexpr const char* kCaptureVariable = "LLMPROF_CAPTURE_DIR";

// What the collector is asked for, as libs/collect/settings.h reads it. Unset: the user's own variable, or the default.
struct CollectorSettings {
  std::optional<std::uint64_t> gpu;      // LLMPROF_GPU
  std::optional<std::uint64_t> graphs;   // LLMPROF_GRAPHS
  std::optional<std::uint64_t> kernels;  // LLMPROF_KERNELS
  std::optional<std::uint64_t> stacks;   // LLMPROF_STACKS: 1 Python, 2 native
};

// "python", "native", "python,native" -> CollectorSettings::stacks.
Result<std::uint64_t> parse_stacks(std::string_view text);

struct InjectionOptions {
  std::string library_folder;  // holds libllmprof_inject.so and libllmprof_blas.so
  std::string capture_folder;  // absolute
  std::uint64_t max_bytes = 0;
  std::vector<std::pair<std::string, std::string>> window;  // of window_variables()
  bool blas = true;
  bool nvtx = true;
  bool modules = false;   // modules of PyTorch models become ranges
  bool requests = false;  // engines of Python programs name the members of their steps
  bool counters = false;  // the capture folder holds a counters.plan
  wire::Rests rests{};    // of everything
  CollectorSettings collector;
};

struct Injection {
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<std::string> kept;         // "NAME=value" of the user's that concern injection
};

// $LLMPROF_LIBDIR, else ../lib/llmprof beside the folder of this program.
std::string library_folder();

// An error if a library is missing.
Result<void> check_libraries(const InjectionOptions& options);

Injection child_environment(const std::vector<std::string>& environment, const InjectionOptions& options);

// Why the hooks of Python programs will not be loaded by this command, or nothing: Python asked to leave its
// environment alone. Only the command itself is looked at, not what it starts.
std::optional<std::string> why_no_python_hook(const std::vector<std::string>& command);

// The environment of this process.
std::vector<std::string> own_environment();

// What recording one event costs the thread that raises it, on this machine: measured once per machine and version, in
// a process of its own that loads the collector as a program would.
struct EventCost {
  double range_ns = 0;  // one range event of include/llmprof/annotate.h: half a push and pop
  double gemm_ns = 0;   // the collector's part of one hooked BLAS call
};

// Kept beside the peaks.
std::optional<EventCost> cached_event_cost(const hw::Device& cpu);
Result<void> store_event_cost(const hw::Device& cpu, const EventCost& cost);

// About 0.1 s. `library_folder` holds libllmprof_inject.so.
Result<EventCost> measure_event_cost(const std::string& library_folder);

}  // namespace llmprof::record
