#pragma once
// CUPTI's profilers as the fakes serve them: host API, range profiler, PM sampling, PC sampling. Written down from the
// headers of CUDA 13.0; profiler_abi_test.cpp holds it against them where they are installed.

#include <cstddef>
#include <cstdint>

namespace fake {

// What every parameter block begins with. The size is that of all fields, without padding at the end.
struct Params {
  std::size_t struct_size;
  void* reserved;
};
// The size that CUPTI's macros give a parameter block.
#define FAKE_PARAMS_BYTES(type, last) (offsetof(fake::type, last) + sizeof(fake::type::last))

struct ProfilerParams : Params {};  // cuptiProfilerInitialize, cuptiProfilerDeInitialize

struct ChipNameParams {
  Params params;
  std::size_t device;
  const char* chip;
};
struct AvailabilityParams {
  Params params;
  void* context;
  std::size_t image_bytes;
  std::uint8_t* image;
};

// ---- host API ------------------------------------------------------------------------------------------------------
enum ProfilerType : int { kRangeProfiler = 0, kPmSampling = 1 };

struct HostInitializeParams {
  Params params;
  ProfilerType type;
  const char* chip;
  const std::uint8_t* availability;
  void* host;
};
struct HostParams {  // Deinitialize
  Params params;
  void* host;
};
struct SupportedChipsParams {
  Params params;
  std::size_t count;
  const char* const* names;
};
struct BaseMetricsParams {
  Params params;
  void* host;
  int metric_type;
  const char** names;
  std::size_t count;
};
struct SubMetricsParams {
  Params params;
  void* host;
  int metric_type;
  const char* metric;
  std::size_t count;
  const char** names;
};
struct MetricPropertiesParams {
  Params params;
  void* host;
  const char* metric;
  const char *description, *hardware_unit, *unit;
  int metric_type;
};
struct HostRangeNameParams {
  Params params;
  const std::uint8_t* image;
  std::size_t image_bytes, range;
  const char* delimiter;
  const char* name;  // the caller frees it
};
struct EvaluateParams {
  Params params;
  void* host;
  const std::uint8_t* image;
  std::size_t image_bytes, range;
  const char** metrics;
  std::size_t metric_count;
  double* values;
};
struct AddMetricsParams {
  Params params;
  void* host;
  const char** metrics;
  std::size_t metric_count;
};
struct ConfigSizeParams {
  Params params;
  void* host;
  std::size_t bytes;
};
struct ConfigImageParams {
  Params params;
  void* host;
  std::size_t bytes;
  std::uint8_t* image;
};
struct PassesParams {
  Params params;
  std::size_t bytes;
  std::uint8_t* image;
  std::size_t passes;
};
struct MostPerPassParams {
  Params params;
  ProfilerType type;
  const char* chip;
  std::uint8_t* availability;
  std::size_t metrics;
};

// ---- range profiler ------------------------------------------------------------------------------------------------
enum RangeMode : int { kAutoRange = 1, kUserRange = 2 };
enum ReplayMode : int { kApplicationReplay = 1, kKernelReplay = 2, kUserReplay = 3 };

struct RangeEnableParams {
  Params params;
  void* context;
  void* object;
};
struct RangeParams {  // Disable, Start, PopRange
  Params params;
  void* object;
};
struct RangeConfigParams {
  Params params;
  void* object;
  std::size_t config_bytes;
  const std::uint8_t* config;
  std::size_t image_bytes;
  std::uint8_t* image;
  RangeMode range_mode;
  ReplayMode replay_mode;
  std::size_t most_ranges;
  std::uint16_t nesting_levels, min_nesting_level;
  std::size_t pass;
  std::uint16_t target_nesting_level;
};
struct RangeStopParams {
  Params params;
  void* object;
  std::size_t pass, target_nesting_level;
  std::uint8_t all_passes_submitted;
};
struct RangePushParams {
  Params params;
  void* object;
  const char* name;
};
struct RangeDecodeParams {
  Params params;
  void* object;
  std::size_t dropped;
};
struct RangeDataSizeParams {
  Params params;
  void* object;
  const char** metrics;
  std::size_t metric_count, most_ranges;
  std::uint32_t most_nodes;
  std::size_t bytes;
};
struct DataInitializeParams {  // of range profiler and PM sampling
  Params params;
  void* object;
  std::size_t bytes;
  std::uint8_t* image;
};
struct RangeDataInfoParams {
  Params params;
  const std::uint8_t* image;
  std::size_t image_bytes, ranges;
};
struct RangeInfoParams {
  Params params;
  const std::uint8_t* image;
  std::size_t image_bytes, range;
  const char *delimiter, *name;
};

// ---- PM sampling ---------------------------------------------------------------------------------------------------
enum Trigger : int { kByClock = 0, kByTime = 1 };
enum AppendMode : int { kKeepOldest = 0, kKeepLatest = 1 };
enum DecodeStop : int { kOtherReason = 0, kImageFull = 1, kEndOfRecords = 2 };

struct PmConfigParams {
  Params params;
  void* object;
  std::size_t config_bytes;
  const std::uint8_t* config;
  std::size_t buffer_bytes;
  std::uint64_t interval;
  Trigger trigger;
  AppendMode append;
};
struct PmEnableParams {
  Params params;
  std::size_t device;
  void* object;
};
struct PmParams {  // Disable, Start, Stop
  Params params;
  void* object;
};
struct PmDecodeParams {
  Params params;
  void* object;
  std::uint8_t* image;
  std::size_t image_bytes;
  DecodeStop why;
  std::uint8_t overflow;
};
struct PmAvailabilityParams {
  Params params;
  std::size_t device, image_bytes;
  std::uint8_t* image;
};
struct PmDataSizeParams {
  Params params;
  void* object;
  const char** metrics;
  std::size_t metric_count;
  std::uint32_t most_samples;
  std::size_t bytes;
};
struct PmDataInfoParams {
  Params params;
  const std::uint8_t* image;
  std::size_t image_bytes, total, populated, completed;
};
struct PmSampleInfoParams {
  Params params;
  void* object;
  const std::uint8_t* image;
  std::size_t image_bytes, sample;
  std::uint64_t begin, end;
};

// ---- PC sampling ---------------------------------------------------------------------------------------------------
enum PcAttribute : int {
  kPcPeriod = 1,
  kPcReasons = 2,
  kPcScratchBytes = 3,
  kPcHardwareBytes = 4,
  kPcMode = 5,
  kPcStartStop = 6,
  kPcFormat = 7,
  kPcBuffer = 8,
  kPcWorkerSleep = 9,
};
inline constexpr std::size_t kReasonBytes = 128;

struct __attribute__((packed, aligned(8))) PcStall {
  std::uint32_t reason, samples;
};
struct __attribute__((packed, aligned(8))) PcPlace {
  std::size_t size;
  std::uint64_t cubin, offset;
  std::uint32_t function_index, pad;
  char* function;  // shared between records
  std::size_t stall_count;
  PcStall* stalls;
  std::uint32_t correlation;
};
struct __attribute__((packed, aligned(8))) PcData {
  std::size_t size, most_places;
  std::uint64_t total_samples, dropped_samples;
  std::size_t places, remaining_places;
  std::uint64_t range;
  PcPlace* place;
  std::uint64_t foreign_samples;
  std::uint8_t buffer_full;
};
struct PcAttributeValue {
  PcAttribute attribute;
  int status;
  union {
    std::uint64_t words[3];
    std::uint32_t number;
    void* pointer;
  } value;
};
struct PcConfigParams {
  Params params;
  void* context;
  std::size_t count;
  PcAttributeValue* attributes;
};
struct PcParams {  // Enable, Disable, Start, Stop
  Params params;
  void* context;
};
struct PcGetDataParams {
  Params params;
  void* context;
  void* data;
};
struct PcReasonCountParams {
  Params params;
  void* context;
  std::size_t* count;
};
struct PcReasonsParams {
  Params params;
  void* context;
  std::size_t count;
  std::uint32_t* indices;
  char** names;
};
struct SourceParams {
  std::size_t size;
  const void* cubin;
  const char* function;
  std::size_t cubin_bytes;
  std::uint32_t line;
  std::uint64_t offset;
  char *file, *folder;
};
struct CubinCrcParams {
  std::size_t size, cubin_bytes;
  const void* cubin;
  std::uint64_t crc;
};
struct ModuleData {  // CUpti_ModuleResourceData
  std::uint32_t module;
  std::size_t cubin_bytes;
  const char* cubin;
};

}  // namespace fake
