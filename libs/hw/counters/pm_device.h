#pragma once
// One device under CUPTI's PM sampling.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hw/counters/pm_sampling.h"
#include "wire/cupti_host_abi.h"

// CUPTI's PM sampling, declared here as in cupti_host_abi.h.
namespace llmprof::wire::cupti {

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

}  // namespace llmprof::wire::cupti

namespace llmprof::hw::counters {

namespace cupti = wire::cupti;

struct PmLibrary {
  cupti::Function<cupti::ProfilerInitialize> initialize = nullptr;
  cupti::Function<cupti::DeviceChipName> chip_name = nullptr;
  cupti::Function<cupti::HostInitialize> host_initialize = nullptr;
  cupti::Function<cupti::HostDeinitialize> host_deinitialize = nullptr;
  cupti::Function<cupti::HostAddMetrics> add_metrics = nullptr;
  cupti::Function<cupti::HostConfigSize> config_size = nullptr;
  cupti::Function<cupti::HostConfig> config = nullptr;
  cupti::Function<cupti::HostPasses> passes = nullptr;
  cupti::Function<cupti::HostEvaluate> evaluate = nullptr;
  cupti::Function<cupti::PmEnable> enable = nullptr;
  cupti::Function<cupti::PmObject> disable = nullptr;
  cupti::Function<cupti::PmSetConfig> set_config = nullptr;
  cupti::Function<cupti::PmObject> start = nullptr;
  cupti::Function<cupti::PmObject> stop = nullptr;
  cupti::Function<cupti::PmDataSize> data_size = nullptr;
  cupti::Function<cupti::PmDataInitialize> data_initialize = nullptr;
  cupti::Function<cupti::PmDecode> decode = nullptr;
  cupti::Function<cupti::PmDataInfo> data_info = nullptr;
  cupti::Function<cupti::PmSampleInfo> sample_info = nullptr;
  int (*result_string)(int, const char**) = nullptr;
};
Result<PmLibrary> load_pm_library();

// A call that failed: which, with what, and what that means.
struct CallFailure {
  const char* call = nullptr;  // null: none
  int code = 0;
  explicit operator bool() const { return call != nullptr; }
};
PmRefusal refusal_of(const CallFailure& failure);
std::string text_of(const PmLibrary& library, const CallFailure& failure);

// Metrics of a chip that can be sampled together, and the image that says so to the device.
class PmConfig {
 public:
  PmConfig(const PmLibrary& library, std::string chip) : library_(library), chip_(std::move(chip)) {}
  ~PmConfig();
  PmConfig(const PmConfig&) = delete;
  PmConfig& operator=(const PmConfig&) = delete;

  // Takes as many of `wanted` as go into one pass; says which are unknown and which are left out.
  CallFailure choose(const std::vector<std::string>& wanted, PmDevices& devices);
  const std::vector<std::string>& metrics() const { return metrics_; }
  const std::vector<std::uint8_t>& image() const { return image_; }
  const char** names() { return names_.data(); }
  void* host() const { return host_; }

 private:
  // With these metrics and no others. `passes` is 0 where the chip does not have one of them.
  CallFailure build(const std::vector<std::string>& metrics, std::size_t& passes);
  CallFailure read_image(std::size_t& passes);
  void close();

  const PmLibrary& library_;
  std::string chip_;
  void* host_ = nullptr;
  std::vector<std::string> metrics_;
  std::vector<const char*> names_;  // of metrics_
  std::vector<std::uint8_t> image_;
};

class CuptiPmDevice final : public PmDevice {
 public:
  CuptiPmDevice(const PmLibrary& library, std::unique_ptr<PmConfig> config, const std::string& chip,
                std::chrono::nanoseconds period);
  ~CuptiPmDevice() override;

  CallFailure open(std::size_t device);  // until sampling has begun
  Result<void> start() override;
  Result<void> stop() override;
  Result<Batch> decode() override;
  std::size_t most_samples() const override;

 private:
  CallFailure set_config();
  CallFailure make_image();
  CallFailure begin();
  CallFailure read_samples(Batch& batch);
  Error error_of(const CallFailure& failure) const;

  const PmLibrary& library_;
  std::unique_ptr<PmConfig> config_;
  std::chrono::nanoseconds period_;
  bool by_time_;  // else by cycles of the system clock
  void* object_ = nullptr;
  std::size_t hardware_bytes_ = std::size_t{256} << 20;
  std::vector<std::uint8_t> data_;
  bool running_ = false;
};

}  // namespace llmprof::hw::counters
