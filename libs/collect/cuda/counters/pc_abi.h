#pragma once
// The part of CUPTI's PC sampling that we use (cupti_pcsampling.h), declared here so that building needs no CUDA
// headers. pc_abi_test.cpp holds it against the real ones. Every struct begins with its own size: members after those
// declared here are not given.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect::pc {

#define LLMPROF_PC_PACKED __attribute__((packed, aligned(8)))

inline constexpr std::size_t kReasonNameBytes = 128;

enum Mode : std::uint32_t { kContinuous = 1, kSerialized = 2 };

enum AttributeType : std::uint32_t {
  kSamplingPeriod = 1,      // u32: 2^value cycles, 5 to 31
  kStallReasons = 2,        // count, indexes
  kScratchBufferSize = 3,   // bytes
  kHardwareBufferSize = 4,  // bytes
  kCollectionMode = 5,      // u32: Mode
  kStartStopControl = 6,    // u32
  kDataFormat = 7,          // u32: kParsed
  kDataBuffer = 8,          // Data*
  kWorkerSleepMs = 9,       // u32
};
inline constexpr std::uint32_t kParsed = 1;

// Samples of a place for one reason.
struct LLMPROF_PC_PACKED Reason {
  std::uint32_t index;
  std::uint32_t samples;
};

// A place in code.
struct LLMPROF_PC_PACKED Place {
  std::size_t size;
  std::uint64_t cubin;   // checksum
  std::uint64_t offset;  // from the begin of the function
  std::uint32_t function_index;
  std::uint32_t pad;
  char* function;  // from malloc, perhaps shared by places and by activity records
  std::size_t reason_count;
  Reason* reasons;            // ours
  std::uint32_t correlation;  // serialized mode only
};

struct LLMPROF_PC_PACKED Data {
  std::size_t size;
  std::size_t capacity;         // of `places`
  std::uint64_t total_samples;  // of everything: dropped ones, and code that is not the user's, too
  std::uint64_t dropped_samples;
  std::size_t count;      // of places given
  std::size_t remaining;  // that could be fetched
  std::uint64_t range;
  Place* places;
  std::uint64_t unknown_samples;  // of code that is not the user's ("non user kernels")
  std::uint8_t buffer_full;
};

struct Attribute {
  std::uint32_t type;    // AttributeType
  std::uint32_t status;  // out: 0, or why this one was refused
  union {
    std::uint64_t words[3];
    std::uint32_t number;
    std::size_t bytes;
    void* buffer;
    struct {
      std::size_t count;
      std::uint32_t* indexes;
    } reasons;
  } value;
};

struct ConfigureParams {
  std::size_t size;
  void* priv;
  void* context;
  std::size_t count;
  Attribute* attributes;
};

struct ContextParams {  // of Enable, Disable, Start and Stop
  std::size_t size;
  void* priv;
  void* context;
};

struct GetDataParams {
  std::size_t size;
  void* priv;
  void* context;
  void* data;  // Data*
};

struct CountReasonsParams {
  std::size_t size;
  void* priv;
  void* context;
  std::size_t* count;
};

struct GetReasonsParams {
  std::size_t size;
  void* priv;
  void* context;
  std::size_t count;
  std::uint32_t* indexes;
  char** names;  // each of kReasonNameBytes
};

struct SourceParams {
  std::size_t size;
  const void* cubin;
  const char* function;
  std::size_t cubin_bytes;
  std::uint32_t line;  // out
  std::uint64_t offset;
  char* file;    // out, from malloc
  char* folder;  // out, from malloc
};

struct ChecksumParams {
  std::size_t size;
  std::size_t cubin_bytes;
  const void* cubin;
  std::uint64_t checksum;  // out
};

// The resource that a callback with this number is about.
inline constexpr std::uint32_t kModuleLoaded = 6;
struct Module {
  std::uint32_t id;
  std::size_t bytes;
  const char* cubin;  // in the callback only
};

// One row a function: member, its row in wire/cupti_calls.h, whether we need it, what it is given.
#define LLMPROF_PC_FUNCTIONS(X)                             \
  X(configure, kSamplingConfigure, true, ConfigureParams)   \
  X(enable, kSamplingEnable, true, ContextParams)           \
  X(disable, kSamplingDisable, true, ContextParams)         \
  X(start, kSamplingStart, true, ContextParams)             \
  X(stop, kSamplingStop, true, ContextParams)               \
  X(get_data, kSamplingGetData, true, GetDataParams)        \
  X(count_reasons, kCountReasons, true, CountReasonsParams) \
  X(get_reasons, kGetReasons, true, GetReasonsParams)       \
  X(source_of, kSassToSource, false, SourceParams)          \
  X(checksum, kCubinCrc, false, ChecksumParams)

struct Library {
#define LLMPROF_PC_MEMBER(member, call, needed, params) std::uint32_t (*member)(params*);
  LLMPROF_PC_FUNCTIONS(LLMPROF_PC_MEMBER)
#undef LLMPROF_PC_MEMBER
};

}  // namespace llmprof::collect::pc
