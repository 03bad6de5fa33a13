#pragma once
// What a host does, told from the functions on its stack.

#include <span>
#include <string>
#include <string_view>

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
// Innermost frame first.
HostWork work_of(std::span<const StackFrame> stack);
// Launching, framework and interpreter: what stands between two kernels in every eager step.
bool is_launching(Work work);

}  // namespace llmprof::analyze
