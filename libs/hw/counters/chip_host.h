#pragma once
// A chip as CUPTI's profilers see it from the host, and tables of CUPTI's functions.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dynlib.h"
#include "wire/cupti_host_abi.h"

namespace llmprof::hw::counters {

namespace cupti = wire::cupti;

// A call that failed: which, and with what.
struct CallFailure {
  const char* call = nullptr;  // null: none
  int code = 0;
  explicit operator bool() const { return call != nullptr; }
};

// Tables of calls: a pointer for each, and the symbols to bind them to. CALLS lists (name, function, parameters).
#define LLMPROF_CUPTI_FIELD(name, function, Params) int (*name)(cupti::Params*) = nullptr;
#define LLMPROF_CUPTI_BIND(name, function, Params) base::bind<&Self::name>(#function),
#define LLMPROF_CUPTI_API(Api, CALLS)                                                 \
  struct Api {                                                                        \
    CALLS(LLMPROF_CUPTI_FIELD) static std::span<const base::Binding<Api>> symbols() { \
      using Self = Api;                                                               \
      static constexpr base::Binding<Api> kTable[] = {CALLS(LLMPROF_CUPTI_BIND)};     \
      return kTable;                                                                  \
    }                                                                                 \
  };

// clang-format off
#define LLMPROF_HOST_CALLS(X) \
  X(initialize, cuptiProfilerHostInitialize, HostInitialize) \
  X(deinitialize, cuptiProfilerHostDeinitialize, HostDeinitialize) \
  X(add_metrics, cuptiProfilerHostConfigAddMetrics, HostAddMetrics) \
  X(config_size, cuptiProfilerHostGetConfigImageSize, HostConfigSize) \
  X(config, cuptiProfilerHostGetConfigImage, HostConfig) \
  X(passes, cuptiProfilerHostGetNumOfPasses, HostPasses)
// clang-format on
LLMPROF_CUPTI_API(HostApi, LLMPROF_HOST_CALLS)

// One chip as one of CUPTI's profilers sees it, and the metrics that it is to read.
class ChipHost {
 public:
  ChipHost(const HostApi& api, const std::string& chip, cupti::ProfilerType profiler);
  ~ChipHost();
  ChipHost(const ChipHost&) = delete;
  ChipHost& operator=(const ChipHost&) = delete;

  const CallFailure& failure() const { return failure_; }  // of opening it: nothing else may be called then
  void* get() const { return host_; }
  int add(const std::vector<const char*>& metrics) const;  // cupti::kSuccess, kInvalidMetricName…
  // What tells the device which metrics to read, and in how many passes it does.
  CallFailure read_image(std::vector<std::uint8_t>& image, std::size_t& passes) const;

 private:
  const HostApi& api_;
  void* host_ = nullptr;
  CallFailure failure_;
};

}  // namespace llmprof::hw::counters
