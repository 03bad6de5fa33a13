#pragma once
// Time of a stage in which its device had nothing to do, and what the host did then, told from the functions on its
// stack.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct StackFrame {
  std::string kind, function, file;  // as in table `frame`
};

enum class Work : std::uint8_t {
  kCompiling,   // kernels or code are generated
  kTuning,      // variants of kernels are tried out
  kAllocating,  // memory of the device or of the host is taken or given back
  kCollecting,  // garbage of Python
  kImporting,   // Python modules
  kLoading,     // data: loaders, tokenizers, files
  kWaiting,     // for the device, on the CPU
  kCopying,     // between host and device
  kLaunching,   // kernels and graphs
  kFramework,   // PyTorch, JAX and the like, in native code
  kPython,      // the interpreter
  kOther,
};

struct HostWork {
  Work work = Work::kOther;
  std::string what;   // "nvrtc for cuDNN"; "" nothing to add
  std::string where;  // innermost function of Python; "" none
};

std::string_view work_name(Work work);  // "compilation"
inline std::string_view json_name(Work work) { return work_name(work); }
// Innermost frame first.
HostWork work_of(std::span<const StackFrame> stack);
// Launching, framework and interpreter: what stands between two kernels in every eager step.
bool is_launching(Work work);

// The phase of a program's life that one frame tells by itself ("imports", "weights": life.h), and by what.
struct FramePhase {
  std::string_view phase, what;  // "": none
};
FramePhase phase_of(const StackFrame& frame);
std::string phase_label(const std::string& phase);  // its name in words; stages keep theirs

struct IdlePlace {   // a module's operator or a range that was open
  std::string name;  // "" none
  std::int64_t time_ns = 0;
};

struct IdleWork {  // by stack samples of the thread that makes the steps
  Work work = Work::kOther;
  std::string what, where;  // of most of its samples
  std::int64_t samples = 0, cpu_ns = 0;
};

struct StageIdle {
  std::string stage;
  bool warm_up = false;                     // of its steps in which the program warms up; else of all others
  std::int64_t gap_ns = 0, between_ns = 0;  // inside steps and between them: nothing executes, nothing is queued
  std::vector<IdlePlace> places;            // most time first; add up to the two
  std::vector<IdleWork> works;              // most time first
  std::int64_t samples = 0;                 // behind them

  std::int64_t idle_ns() const { return gap_ns + between_ns; }
  std::int64_t cpu_ns() const;  // of works, added up
  std::int64_t cpu_ns(Work work) const;
};

Result<std::vector<StageIdle>> idle_time(const trace::Run& run);
const StageIdle* find_idle(const std::vector<StageIdle>& idle, std::string_view stage, bool warm_up = false);

}  // namespace llmprof::analyze
