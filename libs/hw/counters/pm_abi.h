#pragma once
// CUPTI's PM sampling, declared here as in cupti_host_abi.h.

#include "hw/counters/cupti_host_abi.h"

namespace llmprof::hw::counters::cupti {

enum class Trigger : int { kSysclkInterval = 0, kTimeInterval = 1 };
enum class DecodeStop : int { kOther = 0, kImageFull = 1, kEndOfRecords = 2 };
enum class Append : int { kKeepOldest = 0, kKeepLatest = 1 };

struct PmEnable {
  std::size_t size;
  void* priv;
  std::size_t device;
  void* object;  // out
};
struct PmObject {  // the parameters of Disable, Start and Stop
  std::size_t size;
  void* priv;
  void* object;
};
struct PmSetConfig {
  std::size_t size;
  void* priv;
  void* object;
  std::size_t config_bytes;
  const std::uint8_t* config;
  std::size_t hardware_bytes;
  std::uint64_t interval;  // ns, or cycles of the system clock
  Trigger trigger;
  Append append;
};
struct PmDataSize {
  std::size_t size;
  void* priv;
  void* object;
  const char** metrics;
  std::size_t count;
  std::uint32_t most_samples;
  std::size_t bytes;  // out
};
struct PmDataInitialize {
  std::size_t size;
  void* priv;
  void* object;
  std::size_t bytes;
  std::uint8_t* image;
};
struct PmDecode {
  std::size_t size;
  void* priv;
  void* object;
  std::uint8_t* image;
  std::size_t bytes;
  DecodeStop stop;        // out
  std::uint8_t overflow;  // out
};
struct PmDataInfo {
  std::size_t size;
  void* priv;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t total, populated, completed;  // out
};
struct PmSampleInfo {
  std::size_t size;
  void* priv;
  void* object;
  const std::uint8_t* image;
  std::size_t bytes;
  std::size_t sample;
  std::uint64_t begin_ns, end_ns;  // out, CLOCK_REALTIME
};

template <>
inline constexpr std::size_t kBytes<PmDecode> = LLMPROF_CUPTI_BYTES(PmDecode, overflow);

}  // namespace llmprof::hw::counters::cupti
