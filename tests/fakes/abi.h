#pragma once
// What the fakes say and are asked: the parts of CUDA's and CUPTI's interfaces that they serve, written down from the
// headers of CUDA 13.0 (abi_test.cpp holds them against those headers where they are installed), so that the fakes
// build anywhere. The collector has declarations of its own: two readings of the same interface meet in the tests.

#include <cstddef>
#include <cstdint>

namespace fake {

// ---- CUDA driver ---------------------------------------------------------------------------------------------------
inline constexpr int kCudaSuccess = 0, kCudaInvalidValue = 1, kCudaNotInitialized = 3, kCudaInvalidContext = 201,
                     kCudaInvalidHandle = 400, kCudaNotFound = 500, kCudaNotReady = 600, kCudaIllegalAddress = 700,
                     kCudaCaptureInvalidated = 901;

struct Uuid {
  char bytes[16];
};

enum NodeType : int {
  kKernelNode = 0,
  kCopyNode = 1,
  kMemsetNode = 2,
  kHostNode = 3,
  kGraphNode = 4,
  kEmptyNode = 5,
  kConditionalNode = 13
};

// CUlaunchConfig
struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

// CUDA_KERNEL_NODE_PARAMS_v2 and _v3
struct KernelNodeParams {
  void* function;
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void** arguments;
  void** extra;
  void* kernel;  // where there is no function
  void* context;
};

// CUDA_CONDITIONAL_NODE_PARAMS
struct ConditionalNodeParams {
  std::uint64_t handle;
  int type;
  unsigned size;
  void** bodies;  // out
  void* context;
};

// CUgraphNodeParams
struct NodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    KernelNodeParams kernel;
    ConditionalNodeParams conditional;
  };
  long long reserved2;
};

// Parameters of calls as callbacks get them (generated_cuda_meta.h).
struct LaunchKernelParams {
  void* function;
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void* stream;
  void** arguments;
  void** extra;
};
struct LaunchKernelExParams {
  const LaunchConfig* config;
  void* function;
  void** arguments;
  void** extra;
};
struct GraphLaunchParams {
  void* exec;
  void* stream;
};
struct AddKernelNodeParams {
  void** node;
  void* graph;
  const void* dependencies;
  std::size_t count;
  const KernelNodeParams* parameters;
};
struct AddNodeParams {
  void** node;
  void* graph;
  const void* dependencies;
  const void* edges;
  std::size_t count;
  NodeParams* parameters;
};
struct SetKernelNodeParams {
  void* exec;
  void* node;
  const KernelNodeParams* parameters;
};
struct UpdateParams {
  void* exec;
  void* graph;
  void* result;
};
struct CopyToDeviceParams {
  std::uint64_t to;
  const void* from;
  std::size_t bytes;
  void* stream;
};
struct CopyToHostParams {
  void* to;
  std::uint64_t from;
  std::size_t bytes;
  void* stream;
};
struct CopyOnDeviceParams {
  std::uint64_t to, from;
  std::size_t bytes;
  void* stream;
};
struct MemsetParams {
  std::uint64_t to;
  unsigned char value;
  std::size_t count;
  void* stream;
};
struct AllocateParams {
  std::uint64_t* address;
  std::size_t bytes;
};
struct FreeParams {
  std::uint64_t address;
};

// CUPTI_DRIVER_TRACE_CBID_*
enum DriverCall : std::uint32_t {
  kCuInit = 1,
  kCuCtxSynchronize = 17,
  kCuStreamSynchronize = 126,
  kCuMemsetD8Async = 216,
  kCuCtxCreate_v2 = 235,
  kCuMemAlloc_v2 = 243,
  kCuMemFree_v2 = 245,
  kCuMemcpyHtoDAsync_v2 = 277,
  kCuMemcpyDtoHAsync_v2 = 279,
  kCuMemcpyDtoDAsync_v2 = 281,
  kCuLaunchKernel = 307,
  kCuProfilerStart = 308,
  kCuProfilerStop = 309,
  kCuStreamEndCapture = 497,
  kCuGraphCreate = 501,
  kCuGraphAddKernelNode = 502,
  kCuGraphLaunch = 514,
  kCuGraphLaunch_ptsz = 515,
  kCuGraphExecDestroy = 516,
  kCuGraphDestroy = 517,
  kCuGraphClone = 523,
  kCuGraphAddChildGraphNode = 525,
  kCuLaunchHostFunc = 527,
  kCuStreamBeginCapture_v2 = 539,
  kCuGraphUpload = 580,
  kCuGraphInstantiateWithFlags = 643,
  kCuLaunchKernelEx = 652,
  kCuGraphAddKernelNode_v2 = 689,
  kCuGraphExecKernelNodeSetParams_v2 = 692,
  kCuGraphExecUpdate_v2 = 696,
  kCuGraphAddNode = 712,
  kCuGraphAddNode_v2 = 723,
};

// ---- CUPTI: callbacks ----------------------------------------------------------------------------------------------
enum Result : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kInvalidDevice = 2,
  kInvalidContext = 3,
  kInvalidOperation = 7,
  kOutOfMemory = 8,
  kMaxLimitReached = 12,
  kNotInitialized = 15,
  kInvalidMetricName = 17,
  kInvalidKind = 21,
  kHardwareBusy = 26,
  kNotSupported = 27,
  kVirtualized = 33,
  kInsufficientPrivileges = 35,
  kMultipleSubscribers = 39,
  kInvalidChipName = 46,
  kUnknownError = 999,
};

enum Domain : int {
  kDriverApi = 1,
  kRuntimeApi = 2,
  kResource = 3,
  kSynchronize = 4,
  kNvtx = 5,
  kState = 6,
  kDomains = 7
};
inline constexpr std::uint32_t kCallbackIds = 1024;

enum ResourceCall : std::uint32_t {
  kContextCreated = 1,
  kContextDestroyStarting = 2,
  kStreamCreated = 3,
  kStreamDestroyStarting = 4,
  kCuInitFinished = 5,
  kModuleLoaded = 6,
  kGraphCreated = 9,
  kGraphDestroyStarting = 10,
  kGraphCloned = 11,
  kNodeCreateStarting = 12,
  kNodeCreated = 13,
  kNodeDestroyStarting = 14,
  kExecCreateStarting = 17,
  kExecCreated = 18,
  kExecDestroyStarting = 19,
  kNodeCloned = 20,
  kNodeUpdated = 22,
};

struct CallbackData {
  int site;  // 0 enter, 1 exit
  const char* function_name;
  const void* parameters;
  void* return_value;
  const char* symbol_name;
  void* context;
  std::uint32_t context_uid;
  std::uint64_t* correlation_data;
  std::uint32_t correlation_id;
};

struct ResourceData {
  void* context;
  void* stream;
  void* descriptor;
};

struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  int node_type;
  void* dependency;
  void* exec;
};

struct SubscriberParams {
  std::size_t struct_size;
  const char* subscriber_name;
  char* old_subscriber_name;
  std::size_t old_subscriber_size;
};

using CallbackFunction = void (*)(void* user_data, int domain, std::uint32_t id, const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                 std::size_t valid_bytes);
using TimestampFunction = std::uint64_t (*)();

// ---- CUPTI: activity -----------------------------------------------------------------------------------------------
enum ActivityKind : std::uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernel = 3,
  kDriver = 4,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory2 = 49,
  kMemoryPool = 50,
  kGraphTrace = 51,
  kUnheardOf = 77,  // no CUPTI has it yet
  kActivityKinds = 128,
};

#define FAKE_RECORD __attribute__((packed, aligned(8)))

struct FAKE_RECORD KernelActivity {  // CUpti_ActivityKernel10
  std::uint32_t kind;
  std::uint8_t cache_config;
  std::uint8_t shared_memory_config;
  std::uint16_t registers;
  std::uint32_t partitioned_requested, partitioned_executed;
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3];
  std::int32_t static_shared, dynamic_shared;
  std::uint32_t local_per_thread, local_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
  void* reserved0;
  std::uint64_t queued, submitted;
  std::uint8_t launch_type, carveout_requested, carveout;
  std::uint8_t padding;
  std::uint32_t shared_executed;
  std::uint64_t graph_node;
  std::uint32_t shmem_limit;
  std::uint32_t graph;
  void* access_policy;
  std::uint32_t channel, channel_type;
  std::uint32_t cluster[3], cluster_policy;
  std::uint64_t local_total_v2;                              // Kernel8, CUDA 11.8, ends here
  std::uint32_t max_potential_cluster, max_active_clusters;  // Kernel9, CUDA 12, ends here
  std::uint8_t device_launched;
  std::uint8_t padding3[7];
};

struct FAKE_RECORD MemcpyActivity {  // CUpti_ActivityMemcpy6
  std::uint32_t kind;
  std::uint8_t copy_kind, from_kind, to_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation, runtime_correlation;
  std::uint32_t pad;
  void* reserved0;
  std::uint64_t graph_node;
  std::uint32_t graph;
  std::uint32_t channel, channel_type;
  std::uint8_t device_launched;
  std::uint8_t pad2[3];  // Memcpy5, CUDA 12, ends here
  std::uint64_t copy_count;
};

struct FAKE_RECORD MemsetActivity {  // CUpti_ActivityMemset4
  std::uint32_t kind;
  std::uint32_t value;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
  std::uint16_t flags, memory_kind;
  std::uint32_t pad;
  void* reserved0;
  std::uint64_t graph_node;
  std::uint32_t graph;
  std::uint32_t channel, channel_type;
  std::uint8_t device_launched;
  std::uint8_t pad2[3];
};

struct GraphTraceActivity {  // CUpti_ActivityGraphTrace2
  std::uint32_t kind;
  std::uint32_t correlation;
  std::uint64_t start, end;
  std::uint32_t device, graph, context, stream;
  void* reserved;  // GraphTrace, before CUDA 12.4, ends here
  std::uint32_t end_device, end_context;
};

struct FAKE_RECORD MemoryPoolConfig {
  std::uint32_t type;
  std::uint32_t pad2;
  std::uint64_t address, release_threshold, size, utilized;
};

struct FAKE_RECORD MemoryActivity {  // CUpti_ActivityMemory4
  std::uint32_t kind;
  std::uint32_t operation;  // 1 allocation, 2 release
  std::uint32_t memory_kind;
  std::uint32_t correlation;
  std::uint64_t address, bytes, timestamp, pc;
  std::uint32_t process, device, context, stream;
  const char* name;
  std::uint32_t is_async;
  std::uint32_t pad1;
  MemoryPoolConfig pool;
  const char* source;
};

struct FAKE_RECORD ApiActivity {  // CUpti_ActivityAPI
  std::uint32_t kind;
  std::uint32_t id;
  std::uint64_t start, end;
  std::uint32_t process, thread, correlation, return_value;
};

struct FAKE_RECORD SynchronizationActivity {  // CUpti_ActivitySynchronization2
  std::uint32_t kind;
  std::uint32_t type;
  std::uint64_t start, end;
  std::uint32_t correlation, context, stream, event;
  std::uint64_t event_sync;
  std::uint32_t return_value;
  std::uint32_t pad;
};

struct FAKE_RECORD UnheardOfActivity {
  std::uint32_t kind;
  std::uint32_t pad;
  std::uint64_t content[4];
};

}  // namespace fake
