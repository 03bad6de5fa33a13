#pragma once
// The part of CUPTI that we use, declared here so that building needs no CUDA headers. Records grow at their end only,
// so each is declared up to the last member we read: the layouts of CUDA 11.8 (API version 18) to 13 agree that far.
// cupti_abi_test.cpp holds every value against the real headers where they are installed.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect::cupti {

inline constexpr std::uint32_t kOldestVersion = 18;           // CUDA 11.8: the first with these layouts
inline constexpr std::uint32_t kMayRefuseBuffer = 27;         // CUDA 12.9: a request may be answered with no buffer
inline constexpr std::size_t kHolderNameBytes = 64;           // of who subscribed before us
inline constexpr std::uint32_t kFlushForced = 1;              // flag of cuptiActivityFlushAll
inline constexpr std::uint32_t kNoSuchRecords = 0xffffffffu;  // no stream, no event

enum Result : std::uint32_t { kSuccess = 0, kMaxLimitReached = 12, kNotCompatible = 14, kHeldByAnother = 39 };

enum ActivityKind : std::uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kConcurrentKernel = 10,
  kKernel = 3,
  kOverhead = 17,
  kMemcpyPeer = 22,
  kGraphTrace = 51,
};

enum Attribute : std::uint32_t { kZeroedBuffers = 5 };

enum Domain : std::uint32_t { kDriverApi = 1, kRuntimeApi = 2, kResource = 3, kState = 6 };
enum Site : std::uint32_t { kEnter = 0, kExit = 1 };
enum ResourceId : std::uint32_t {
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kStreamDestroyStarting = 4,
  kModuleLoaded = 6,
  kGraphNodeCreateStarting = 12,
  kGraphNodeCreated = 13,
  kGraphExecCreateStarting = 17,
  kGraphExecCreated = 18,
  kGraphExecDestroyStarting = 19,
  kGraphNodeCloned = 20,
};
enum StateId : std::uint32_t { kFatalError = 1 };

enum NodeType : std::uint32_t {
  kNodeKernel = 0,
  kNodeMemcpy = 1,
  kNodeMemset = 2,
  kNodeHost = 3,
  kNodeGraph = 4,
  kNodeEmpty = 5,
  kNodeWaitEvent = 6,
  kNodeRecordEvent = 7,
  kNodeSignal = 8,
  kNodeWait = 9,
  kNodeAllocate = 10,
  kNodeFree = 11,
  kNodeBatchMemory = 12,
  kNodeConditional = 13,
};

enum CopyKind : std::uint8_t {
  kCopyHostToDevice = 1,
  kCopyDeviceToHost = 2,
  kCopyHostToArray = 3,
  kCopyArrayToHost = 4,
  kCopyArrayToArray = 5,
  kCopyArrayToDevice = 6,
  kCopyDeviceToArray = 7,
  kCopyDeviceToDevice = 8,
  kCopyHostToHost = 9,
  kCopyPeerToPeer = 10,
};
enum MemoryKind : std::uint8_t {
  kMemoryPageable = 1,
  kMemoryPinned = 2,
  kMemoryDevice = 3,
  kMemoryArray = 4,
  kMemoryManaged = 5,
  kMemoryDeviceStatic = 6,
  kMemoryManagedStatic = 7,
};

struct Activity {
  std::uint32_t kind;
};

struct KernelActivity {
  std::uint32_t kind;
  std::uint8_t cache_config, shared_config;
  std::uint16_t registers;
  std::uint32_t cache_requested, cache_executed;
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
  std::int32_t static_shared, dynamic_shared;
  std::uint32_t local_per_thread, local_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
  void* reserved;
  std::uint64_t queued, submitted;
  std::uint8_t launch_type, carveout_requested, carveout, padding;
  std::uint32_t shared_executed;
  std::uint64_t graph_node;
  std::uint32_t shared_limit;
  std::uint32_t graph;
  void* access_policy;
  std::uint32_t channel, channel_type;
  std::uint32_t cluster_x, cluster_y, cluster_z;
};

struct CopyActivity {
  std::uint32_t kind;
  std::uint8_t copy_kind, source_kind, target_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation, runtime_correlation, pad;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph;
};

struct PeerCopyActivity {
  std::uint32_t kind;
  std::uint8_t copy_kind, source_kind, target_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream;
  std::uint32_t source_device, source_context, target_device, target_context;
  std::uint32_t correlation;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph;
};

struct MemsetActivity {
  std::uint32_t kind;
  std::uint32_t value;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
  std::uint16_t flags, memory_kind;
  std::uint32_t pad;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph;
};

struct GraphActivity {
  std::uint32_t kind;
  std::uint32_t correlation;
  std::uint64_t start, end;
  std::uint32_t device, graph, context, stream;
};

struct OverheadActivity {
  std::uint32_t kind;
  std::uint32_t overhead;
  std::uint32_t object_kind;
  std::uint32_t object[3];
  std::uint64_t start, end;
};

// What a callback of the driver's or the runtime's functions is given.
struct CallbackData {
  std::uint32_t site;
  const char* function;
  const void* arguments;  // one after the other, as in the function's declaration
  const void* result;     // of the function, at its exit
  const char* symbol;     // of the kernel that is launched
  void* context;
  std::uint32_t context_id;
  std::uint64_t* shared;  // ours, from enter to exit of one call
  std::uint32_t correlation;
};

struct ResourceData {
  void* context;
  void* handle;
  void* descriptor;  // GraphData, if it is about a graph
};

struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  std::uint32_t node_type;
  void* dependency;
  void* executable;
};

struct StateData {
  std::uint32_t result;
  const char* message;
};

struct SubscriberParams {
  std::size_t size;
  const char* name;
  char* holder;  // out: who has it
  std::size_t holder_bytes;
};

using Callback = void (*)(void* user, std::uint32_t domain, std::uint32_t id, const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                                 std::size_t valid_size);
using Timestamp = std::uint64_t (*)();

}  // namespace llmprof::collect::cupti
