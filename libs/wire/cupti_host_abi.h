#pragma once
// The part of CUPTI's profiler host interface that the collector and the recorder call, declared here: no CUDA headers
// are needed to build. hw/counters/cupti_host_abi_test.cpp holds these declarations against the real ones. Every
// structure begins with its own size, up to the last member that the caller knows (`kBytes`).

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

// Up to and with the last member: without the padding that sizeof counts.
#define LLMPROF_CUPTI_BYTES(type, last) (offsetof(type, last) + sizeof(type::last))

struct HostInitialize {
  std::size_t size;
  void* priv;
  ProfilerType profiler;
  const char* chip;
  const std::uint8_t* availability;
  void* host;  // out
};
struct HostDeinitialize {
  std::size_t size;
  void* priv;
  void* host;
};
struct HostChips {
  std::size_t size;
  void* priv;
  std::size_t count;         // out
  const char* const* names;  // out
};
struct HostBaseMetrics {
  std::size_t size;
  void* priv;
  void* host;
  MetricType type;
  const char** names;  // out
  std::size_t count;   // out
};
struct HostSubMetrics {
  std::size_t size;
  void* priv;
  void* host;
  MetricType type;
  const char* metric;
  std::size_t count;   // out
  const char** names;  // out
};
struct HostMetricProperties {
  std::size_t size;
  void* priv;
  void* host;
  const char* metric;
  const char* description;  // out
  const char* hw_unit;      // out
  const char* dim_unit;     // out
  MetricType type;          // out
};
struct HostEvaluate {
  std::size_t size;
  void* priv;
  void* host;
  const std::uint8_t* image;
  std::size_t image_bytes;
  std::size_t range;
  const char** metrics;
  std::size_t count;
  double* values;  // out
};
struct HostAddMetrics {
  std::size_t size;
  void* priv;
  void* host;
  const char** metrics;
  std::size_t count;
};
struct HostConfigSize {
  std::size_t size;
  void* priv;
  void* host;
  std::size_t bytes;  // out
};
struct HostConfig {
  std::size_t size;
  void* priv;
  void* host;
  std::size_t bytes;
  std::uint8_t* image;  // out
};
struct HostPasses {
  std::size_t size;
  void* priv;
  std::size_t bytes;
  std::uint8_t* image;
  std::size_t passes;  // out
};
struct DeviceChipName {
  std::size_t size;
  void* priv;
  std::size_t device;
  const char* chip;  // out
};
struct ProfilerInitialize {
  std::size_t size;
  void* priv;
};

template <class Params>
inline constexpr std::size_t kBytes = sizeof(Params);
template <>
inline constexpr std::size_t kBytes<HostMetricProperties> = LLMPROF_CUPTI_BYTES(HostMetricProperties, type);

// Zeros, with the size filled in.
template <class Params>
Params make() {
  Params params{};
  params.size = kBytes<Params>;
  return params;
}

template <class Params>
using Function = int (*)(Params*);

}  // namespace llmprof::wire::cupti
