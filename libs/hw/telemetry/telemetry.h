#pragma once
// Readings of devices while they work: a source per kind of device, which says what it has and reads it in groups. A
// group is what is worth reading equally often; who reads decides how often that is (record/watch/telemetry.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hw/telemetry/metrics.h"

namespace llmprof::hw {

struct Reading {
  MetricId metric = MetricId::kPower;
  std::uint32_t device = 0;  // as in TelemetryDevice
  std::uint32_t pid = 0;     // 0: of the device as a whole
  std::uint64_t ts_ns = 0;   // CLOCK_MONOTONIC_RAW, between the call and its return
  double value = 0;          // in the metric's unit
};

struct TelemetryDevice {
  std::uint32_t device = 0;  // number in its source
  std::string kind;          // "gpu", "cpu"
  std::string name;
  std::uint64_t uuid_high = 0, uuid_low = 0;  // 16 bytes, big-endian; 0: unknown
};

enum class ReadGroup : std::uint8_t {
  kPower,      // power and energy
  kState,      // clocks, temperature, utilisation, memory, limits of the clock, link
  kActivity,   // what the units of the device did since the last time
  kProcesses,  // memory per process
  kLimits,     // what hardly changes
  kCount
};
inline constexpr std::size_t kReadGroups = static_cast<std::size_t>(ReadGroup::kCount);
std::string_view name_of(ReadGroup group);

// What the calls of one kind took so far.
struct CallCost {
  std::string_view call;
  std::uint64_t calls = 0, cpu_ns = 0, wall_ns = 0;
};

// One thread. May hang as long as the driver does: use it where nobody waits.
class TelemetrySource {
 public:
  virtual ~TelemetrySource() = default;
  virtual const std::vector<TelemetryDevice>& devices() const = 0;
  virtual void read(ReadGroup group, std::vector<Reading>& into) = 0;
  // What a reader of the numbers must know, in words, each once.
  virtual std::vector<std::string> take_notes() { return {}; }
  virtual std::vector<CallCost> costs() const { return {}; }
};

// The GPUs that NVML shows here. kNotFound: no driver, or no GPU.
Result<std::unique_ptr<TelemetrySource>> open_nvml_source();
struct NvmlApi;  // hw/nvml.h
Result<std::unique_ptr<TelemetrySource>> nvml_source(const NvmlApi& nvml);
// The CPUs and the memory of this machine, of files under `root`.
std::unique_ptr<TelemetrySource> open_cpu_source(std::string root = "/");

std::uint64_t raw_now_ns();

// "GPU-8a12cf40-…" to its 16 bytes; false if it is no such text.
bool parse_uuid(std::string_view text, std::uint64_t& high, std::uint64_t& low);

}  // namespace llmprof::hw
