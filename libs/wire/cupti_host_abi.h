#pragma once
// The parts of CUPTI's profiler host interface and of its PM sampling that the collector and the recorder call,
// declared here: no CUDA headers are needed to build. hw/counters/cupti_host_abi_test.cpp holds these declarations
// against the real ones. Every structure begins with its own size, up to the last member that the caller knows.

#include <cstddef>
#include <cstdint>

namespace llmprof::wire::cupti {

inline constexpr int kSuccess = 0;
inline constexpr int kInvalidOperation = 7;
inline constexpr int kOutOfMemory = 8;
inline constexpr int kInvalidMetricName = 17;
inline constexpr int kHardwareBusy = 26;
inline constexpr int kNotSupported = 27;
inline constexpr int kInsufficientPrivileges = 35;
inline constexpr int kVirtualInsufficientPrivileges = 40;

enum class ProfilerType : int { kRange = 0, kPmSampling = 1 };
enum class MetricType : int { kCounter = 0, kRatio = 1, kThroughput = 2 };

// What every structure begins with: its own size, and what is CUPTI's own.
#define LLMPROF_CUPTI_HEAD(bytes) \
  std::size_t size = bytes;       \
  void* priv = nullptr;
// Up to and with the last member: without the padding that sizeof counts.
#define LLMPROF_CUPTI_BYTES(type, last) (offsetof(type, last) + sizeof(type::last))

struct HostInitialize {
  LLMPROF_CUPTI_HEAD(sizeof(HostInitialize))
  ProfilerType profiler;
  const char* chip;
  const std::uint8_t* availability;
  void* host;  // out
};
struct HostDeinitialize {
  LLMPROF_CUPTI_HEAD(sizeof(HostDeinitialize))
  void* host;
};
struct HostChips {
  LLMPROF_CUPTI_HEAD(sizeof(HostChips))
  std::size_t count;         // out
  const char* const* names;  // out
};
struct HostBaseMetrics {
  LLMPROF_CUPTI_HEAD(sizeof(HostBaseMetrics))
  void* host;
  MetricType type;
  const char** names;  // out
  std::size_t count;   // out
};
struct HostSubMetrics {
  LLMPROF_CUPTI_HEAD(sizeof(HostSubMetrics))
  void* host;
  MetricType type;
  const char* metric;
  std::size_t count;   // out
  const char** names;  // out
};
struct HostMetricProperties {
  LLMPROF_CUPTI_HEAD(LLMPROF_CUPTI_BYTES(HostMetricProperties, type))
  void* host;
  const char* metric;
  const char* description;  // out
  const char* hw_unit;      // out
  const char* dim_unit;     // out
  MetricType type;          // out
};
struct HostEvaluate {
  LLMPROF_CUPTI_HEAD(sizeof(HostEvaluate))
  void* host;
  const std::uint8_t* image;
  std::size_t image_bytes;
  std::size_t range;
  const char** metrics;
  std::size_t count;
  double* values;  // out
};
struct HostAddMetrics {
  LLMPROF_CUPTI_HEAD(sizeof(HostAddMetrics))
  void* host;
  const char** metrics;
  std::size_t count;
};
struct HostConfigSize {
  LLMPROF_CUPTI_HEAD(sizeof(HostConfigSize))
  void* host;
  std::size_t bytes;  // out
};
struct HostConfig {
  LLMPROF_CUPTI_HEAD(sizeof(HostConfig))
  void* host;
  std::size_t bytes;
  std::uint8_t* image;  // out
};
struct HostPasses {
  LLMPROF_CUPTI_HEAD(sizeof(HostPasses))
  std::size_t bytes;
  std::uint8_t* image;
  std::size_t passes;  // out
};
struct DeviceChipName {
  LLMPROF_CUPTI_HEAD(sizeof(DeviceChipName))
  std::size_t device;
  const char* chip;  // out
};
struct ProfilerInitialize {
  LLMPROF_CUPTI_HEAD(sizeof(ProfilerInitialize))
};

enum class Trigger : int { kSysclkInterval = 0, kTimeInterval = 1 };
enum class DecodeStop : int { kOther = 0, kImageFull = 1, kEndOfRecords = 2 };
enum class Append : int { kKeepOldest = 0, kKeepLatest = 1 };

struct PmEnable {
  LLMPROF_CUPTI_HEAD(sizeof(PmEnable))
  std::size_t device;
  void* object;  // out
};
struct PmObject {  // the parameters of Disable, Start and Stop
  LLMPROF_CUPTI_HEAD(sizeof(PmObject))
  void* object;
};
struct PmSetConfig {
  LLMPROF_CUPTI_HEAD(sizeof(PmSetConfig))
  void* object;
  std::size_t config_bytes;
  const std::uint8_t* config;
  std::size_t hardware_bytes;
  std::uint64_t interval;  // ns, or cycles of the system clock
  Trigger trigger;
  Append append;
};
struct PmDataSize {
  LLMPROF_CUPTI_HEAD(sizeof(PmDataSize))
  void* object;
  const char** metrics;
  std::size_t count;
  std::uint32_t most_samples;
  std::size_t bytes;  // out
};
struct PmDataInitialize {
  LLMPROF_CUPTI_HEAD(sizeof(PmDataInitialize))
  void* object;
  std::size_t bytes;
  std::uint8_t* image;
};
struct PmDecode {
  LLMPROF_CUPTI_HEAD(LLMPROF_CUPTI_BYTES(PmDecode, overflow))
  void* object;
  std::uint8_t* image;
  std::size_t bytes;
  DecodeStop stop;        // out
  std::uint8_t overflow;  // out
};
struct PmDataInfo {
  LLMPROF_CUPTI_HEAD(sizeof(PmDataInfo))
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t total, populated, completed;  // out
};
struct PmSampleInfo {
  LLMPROF_CUPTI_HEAD(sizeof(PmSampleInfo))
  void* object;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t sample;
  std::uint64_t begin_ns, end_ns;  // out, CLOCK_REALTIME
};

}  // namespace llmprof::wire::cupti
