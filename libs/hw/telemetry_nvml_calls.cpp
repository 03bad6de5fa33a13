#include "hw/telemetry_nvml_calls.h"

#include <fmt/format.h>
#include <time.h>

namespace llmprof::hw {
namespace {

constexpr std::uint8_t kOff = 255;
constexpr std::uint8_t kMostFailures = 5;  // in a row: what is broken now will stay so

constexpr std::array<std::string_view, kNvmlCalls> kNames{"GetFieldValues",
                                                          "GetPowerUsage",
                                                          "GetTotalEnergyConsumption",
                                                          "GetEnforcedPowerLimit",
                                                          "GetClockInfo",
                                                          "GetTemperature",
                                                          "GetUtilizationRates",
                                                          "GetMemoryInfo",
                                                          "GetPerformanceState",
                                                          "GetCurrentClocksEventReasons",
                                                          "GetCurrPcieLink",
                                                          "GetPcieThroughput",
                                                          "GetComputeRunningProcesses",
                                                          "GpmSampleGet",
                                                          "GpmMetricsGet"};

std::size_t at(NvmlCall call) { return static_cast<std::size_t>(call); }

std::uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

// This driver, GPU or user will never get an answer.
bool is_final(int status) {
  return status == kNvmlInvalidArgument || status == kNvmlNotSupported || status == kNvmlNoPermission ||
         status == kNvmlFunctionNotFound || status == kNvmlVersionMismatch;
}

}  // namespace

bool NvmlCalls::may_ask(const NvmlGpu& gpu, NvmlCall call) const { return !gpu.lost && gpu.failures[at(call)] != kOff; }

bool NvmlCalls::took(NvmlGpu& gpu, NvmlCall call, int status) {
  std::uint8_t& failures = gpu.failures[at(call)];
  if (status == kNvmlSuccess) {
    failures = 0;
    return true;
  }
  if (status == kNvmlGpuIsLost || status == kNvmlResetRequired) {
    if (!gpu.lost) notes.push_back(fmt::format("GPU {} is read no more: {}", gpu.device, error_text(status)));
    gpu.lost = true;
  } else if (is_final(status)) {
    failures = kOff;
  } else if (++failures == kMostFailures) {
    failures = kOff;
    notes.push_back(fmt::format("nvmlDevice{} of GPU {} is asked no more, it failed {} times in a row: {}",
                                kNames[at(call)], gpu.device, kMostFailures, error_text(status)));
  }
  return false;
}

std::string NvmlCalls::error_text(int status) const {
  const char* text = error_string_ != nullptr ? error_string_(status) : nullptr;
  return text != nullptr ? text : fmt::format("NVML status {}", status);
}

void NvmlCalls::begin() {
  begin_cpu_ns_ = thread_cpu_ns();
  begin_ns_ = raw_now_ns();
}

void NvmlCalls::end(NvmlCall call) {
  end_ns_ = raw_now_ns();
  Cost& cost = costs_[at(call)];
  ++cost.calls;
  last_cpu_ns_ = thread_cpu_ns() - begin_cpu_ns_;
  cost.cpu_ns += last_cpu_ns_;
  cost.wall_ns += end_ns_ - begin_ns_;
}

std::vector<CallCost> NvmlCalls::costs() const {
  std::vector<CallCost> costs;
  for (std::size_t i = 0; i < kNvmlCalls; ++i) {
    if (costs_[i].calls > 0) costs.push_back({kNames[i], costs_[i].calls, costs_[i].cpu_ns, costs_[i].wall_ns});
  }
  return costs;
}

}  // namespace llmprof::hw
