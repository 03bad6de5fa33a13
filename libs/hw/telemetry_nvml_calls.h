#pragma once
// Calls of NVML on one GPU: timed, and not repeated once the driver said that it cannot.

#include <array>
#include <string>
#include <vector>

#include "hw/telemetry_nvml.h"

namespace llmprof::hw {

enum class NvmlCall : std::uint8_t {
  kFields,
  kPower,
  kEnergy,
  kPowerLimit,
  kClock,
  kTemperature,
  kUtilization,
  kMemory,
  kPerformanceState,
  kClockReasons,
  kLink,
  kLinkTraffic,
  kProcesses,
  kGpmSample,
  kGpmMetrics,
  kCount
};
inline constexpr std::size_t kNvmlCalls = static_cast<std::size_t>(NvmlCall::kCount);

struct NvmlGpu {
  NvmlDevice* handle = nullptr;
  std::uint32_t device = 0;
  bool lost = false;
  std::array<std::uint8_t, kNvmlCalls> failures{};  // one after another; kOff: not to be asked again
};

class NvmlCalls {
 public:
  explicit NvmlCalls(const char* (*error_string)(int)) : error_string_(error_string) {}

  // Whether it succeeded. `function` may be nullptr.
  template <class Function, class... Arguments>
  bool ask(NvmlGpu& gpu, NvmlCall call, Function* function, Arguments... arguments) {
    if (!may_ask(gpu, call) || function == nullptr) return false;
    return took(gpu, call, timed(call, function, arguments...));
  }
  // The call itself and its status.
  template <class Function, class... Arguments>
  int timed(NvmlCall call, Function* function, Arguments... arguments) {
    begin();
    const int status = function(arguments...);
    end(call);
    return status;
  }
  bool may_ask(const NvmlGpu& gpu, NvmlCall call) const;
  // A part of an answer that failed on its own; as ask().
  bool took(NvmlGpu& gpu, NvmlCall call, int status);
  std::uint64_t middle_ns() const { return begin_ns_ + (end_ns_ - begin_ns_) / 2; }  // of the last call
  std::uint64_t last_cpu_ns() const { return last_cpu_ns_; }

  std::string error_text(int status) const;
  std::vector<std::string> notes;
  std::vector<CallCost> costs() const;

 private:
  void begin();
  void end(NvmlCall call);

  const char* (*error_string_)(int);
  std::uint64_t begin_ns_ = 0, end_ns_ = 0, begin_cpu_ns_ = 0, last_cpu_ns_ = 0;
  struct Cost {
    std::uint64_t calls = 0, cpu_ns = 0, wall_ns = 0;
  };
  std::array<Cost, kNvmlCalls> costs_{};
};

}  // namespace llmprof::hw
