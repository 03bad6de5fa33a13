#pragma once
// CUPTI's profilers: their interface, and the functions found at run time.

#include <cstddef>
#include <cstdint>

#include "collect/cuda/cupti_library.h"

namespace llmprof::collect::cupti {

// The part of CUPTI's profilers that we use, declared here as cupti_abi.h declares the rest. Every structure begins
// with its own size, which is that of the header's macros: up to the end of its last member, without the padding behind
// it. profiler_abi_test.cpp holds all of it against the real headers where they are installed.
enum ProfilerResult : std::uint32_t {
  kInvalidParameter = 1,
  kInvalidMetricName = 17,
  kHardwareBusy = 26,
  kForbidden = 35,  // insufficient privileges
  kOldProfilerInUse = 36,
  kForbiddenOnVirtualDevice = 40,
};

enum ProfilerKind : std::uint32_t { kRangeProfiler = 0, kPmSampling = 1 };
enum RangeMode : std::uint32_t { kAutomaticRanges = 1, kUserRanges = 2 };
enum ReplayMode : std::uint32_t { kKernelReplay = 2, kUserReplay = 3 };

struct ProfilerInitialize {  // and DeInitialize
  std::size_t size;
  void* priv;
};

struct DeviceChipName {
  std::size_t size;
  void* priv;
  std::size_t device;
  const char* chip;  // out
};

// ---- the host's side: metrics, configurations, values --------------------------------------------------------------

struct HostInitialize {
  std::size_t size;
  void* priv;
  std::uint32_t kind;  // ProfilerKind
  const char* chip;
  const std::uint8_t* availability;  // null: of the chip as it left the factory
  void* host;                        // out
};

struct HostDeinitialize {
  std::size_t size;
  void* priv;
  void* host;
};

struct HostAddMetrics {
  std::size_t size;
  void* priv;
  void* host;
  const char** metrics;
  std::size_t count;
};

struct HostImageSize {
  std::size_t size;
  void* priv;
  void* host;
  std::size_t image_bytes;  // out
};

struct HostImage {
  std::size_t size;
  void* priv;
  void* host;
  std::size_t image_bytes;
  std::uint8_t* image;
};

struct HostPasses {
  std::size_t size;
  void* priv;
  std::size_t image_bytes;
  std::uint8_t* image;
  std::size_t passes;  // out
};

struct HostEvaluate {
  std::size_t size;
  void* priv;
  void* host;
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t range;
  const char** metrics;
  std::size_t count;
  double* values;  // out
};

// ---- the range profiler --------------------------------------------------------------------------------------------

struct RangeEnable {
  std::size_t size;
  void* priv;
  void* context;
  void* profiler;  // out
};

struct RangeCall {  // Disable, Start, PopRange
  std::size_t size;
  void* priv;
  void* profiler;
};

struct RangeConfig {
  std::size_t size;
  void* priv;
  void* profiler;
  std::size_t image_bytes;
  const std::uint8_t* image;
  std::size_t data_bytes;
  std::uint8_t* data;
  std::uint32_t range;   // RangeMode
  std::uint32_t replay;  // ReplayMode
  std::size_t most_ranges;
  std::uint16_t nesting_levels, first_level;
  std::size_t pass;
  std::uint16_t target_level;
};

struct RangeStop {
  std::size_t size;
  void* priv;
  void* profiler;
  std::size_t pass;          // out: the next one
  std::size_t target_level;  // out
  std::uint8_t all_passes;   // out: 1: every pass was made
};

struct RangePush {
  std::size_t size;
  void* priv;
  void* profiler;
  const char* name;
};

struct RangeDecode {
  std::size_t size;
  void* priv;
  void* profiler;
  std::size_t dropped;  // out: ranges
};

struct RangeDataSize {
  std::size_t size;
  void* priv;
  void* profiler;
  const char** metrics;
  std::size_t count;
  std::size_t most_ranges;
  std::uint32_t most_nodes;  // of the tree of ranges
  std::size_t data_bytes;    // out
};

struct RangeDataInitialize {
  std::size_t size;
  void* priv;
  void* profiler;
  std::size_t data_bytes;
  std::uint8_t* data;
};

struct RangeDataInfo {
  std::size_t size;
  void* priv;
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t ranges;  // out
};

struct RangeInfo {
  std::size_t size;
  void* priv;
  const std::uint8_t* data;
  std::size_t data_bytes;
  std::size_t range;
  const char* delimiter;
  const char* name;  // out
};

// What `size` has to be.
template <class Params>
inline constexpr std::size_t kParamBytes = sizeof(Params);
template <>
inline constexpr std::size_t kParamBytes<RangeConfig> = offsetof(RangeConfig, target_level) + sizeof(std::uint16_t);
template <>
inline constexpr std::size_t kParamBytes<RangeStop> = offsetof(RangeStop, all_passes) + sizeof(std::uint8_t);

template <class Params>
Params params() {
  Params result{};
  result.size = kParamBytes<Params>;
  return result;
}

// CUPTI's profilers, found in the library that gpu.library came from: another instance would not know our subscriber.

using wire::ProfilerCall;

// Member, its row in wire/cupti_calls.h, what it is given.
#define LLMPROF_PROFILER_FUNCTIONS(X)                            \
  X(initialize, kInitialize, ProfilerInitialize*)                \
  X(deinitialize, kDeinitialize, ProfilerInitialize*)            \
  X(chip_name, kChipName, DeviceChipName*)                       \
  X(host_initialize, kHostInitialize, HostInitialize*)           \
  X(host_deinitialize, kHostDeinitialize, HostDeinitialize*)     \
  X(host_add_metrics, kHostAddMetrics, HostAddMetrics*)          \
  X(host_image_size, kHostImageSize, HostImageSize*)             \
  X(host_image, kHostImage, HostImage*)                          \
  X(host_passes, kHostPasses, HostPasses*)                       \
  X(host_evaluate, kHostEvaluate, HostEvaluate*)                 \
  X(enable, kRangeEnable, RangeEnable*)                          \
  X(disable, kRangeDisable, RangeCall*)                          \
  X(set_config, kRangeSetConfig, RangeConfig*)                   \
  X(start, kRangeStart, RangeCall*)                              \
  X(stop, kRangeStop, RangeStop*)                                \
  X(push, kRangePush, RangePush*)                                \
  X(pop, kRangePop, RangeCall*)                                  \
  X(decode, kRangeDecode, RangeDecode*)                          \
  X(data_size, kRangeDataSize, RangeDataSize*)                   \
  X(data_initialize, kRangeDataInitialize, RangeDataInitialize*) \
  X(data_info, kRangeDataInfo, RangeDataInfo*)                   \
  X(range_info, kRangeInfo, RangeInfo*)

struct ProfilerLibrary {
#define LLMPROF_PROFILER_MEMBER(member, call, ...) Result (*member)(__VA_ARGS__);
  LLMPROF_PROFILER_FUNCTIONS(LLMPROF_PROFILER_MEMBER)
#undef LLMPROF_PROFILER_MEMBER
};

// Null: everything was found. Else the name of a function that is missing: CUPTI before 12.6 has no range profiler.
const char* find_profilers(const Library& library, ProfilerLibrary* profilers);

// Counts a failed call of any profiler by what it means and says so once: not allowed, held by another, or failed.
// True: it succeeded.
bool succeeded(ProfilerCall call, std::uint32_t result);

}  // namespace llmprof::collect::cupti
