#pragma once
// The bytes between the injected collector and the recorder. Both sides include this and share nothing else.
// Plain data, no std types beyond integers. docs/format/wire.md describes the file; it changes with kWireVersion.
//
// In memory the collector keeps fixed-size records of 64 bytes (one cache line), per thread. Its writer thread
// encodes them as columns (wire/encode.h) into CRC-framed blocks.

#include <cstdint>

#include "wire/loss_kind.h"

namespace llmprof::wire {

inline constexpr std::uint32_t kWireVersion = 1;

// How a log lies on disk: a FileHeader, then blocks. A block is a BlockHeader and `payload_bytes` of payload. All
// integers little-endian.

struct FileHeader {
  char magic[8];               // "LLMPROFW"
  std::uint32_t version;       // kWireVersion
  std::uint32_t header_bytes;  // sizeof(FileHeader): an old reader skips what it does not know
  std::uint64_t pid;
  std::uint64_t start_ticks;
  std::uint64_t raw_ns;  // clock pair at creation
  std::uint64_t wall_ns;
  std::uint32_t segment;  // 0, or the number of this log among those that continue each other (kSegment)
  std::uint32_t reserved[2];
  std::uint32_t crc;  // CRC-32C of all bytes before this field
};
static_assert(sizeof(FileHeader) == 64);
inline constexpr char kFileMagic[8] = {'L', 'L', 'M', 'P', 'R', 'O', 'F', 'W'};

struct BlockHeader {
  std::uint32_t magic;          // kBlockMagic
  std::uint32_t sequence;       // 0, 1, 2… in the file; a jump is a gap
  std::uint32_t payload_bytes;  // at most kMaxPayloadBytes
  std::uint32_t records;        // in this block
  std::uint32_t payload_crc;    // CRC-32C of the payload
  std::uint32_t header_crc;     // CRC-32C of the fields above
};
static_assert(sizeof(BlockHeader) == 24);
inline constexpr std::uint32_t kBlockMagic = 0x314B4C42;  // "BLK1"
inline constexpr std::uint32_t kMaxPayloadBytes = 1u << 20;
inline constexpr std::uint32_t kMaxNameBytes = 1u << 16;

inline constexpr std::uint32_t kMaxBlockRecords = 1u << 16;
inline constexpr std::uint32_t kMaxSectionRecords = 1u << 12;

// The payload is a sequence of sections: varint kind (0 = string definitions, else RecordKind), varint thread
// (number of the thread in this log, its kThread record gives the tid; 0 = the collector itself), varint count
// (1 to kMaxSectionRecords), varint bytes (of what follows, so that an unknown kind can be skipped), then the columns
// of that kind one after the other (wire/fields.h), or `count` definitions: varint id, varint length, the bytes.

// What one record says (wire/records.def).
enum class RecordKind : std::uint8_t {
  kNone = 0,
#define RECORD(number, name, member) k##name = number,
#include "wire/records.def"
};

enum class RangeOp : std::uint8_t { kPush = 1, kPop = 2, kStart = 3, kEnd = 4, kMark = 5 };

// Type of the 64-bit payload of a range event; the bits of `payload` are to be read as this.
enum class PayloadType : std::uint8_t { kNone = 0, kUnsigned = 1, kSigned = 2, kDouble = 3 };

// Element types, as in the gemm table.
enum class ElementType : std::uint8_t { kUnknown = 0, kFloat32 = 1, kFloat64 = 2, kComplex64 = 3, kComplex128 = 4 };

enum class Layout : std::uint8_t { kColumnMajor = 0, kRowMajor = 1 };
enum class Transpose : std::uint8_t { kNo = 0, kYes = 1, kConjugate = 2 };

// Names are string ids: defined in the log before their first use. 0 is "no name".
using StringId = std::uint32_t;

struct RangeRecord {
  std::uint64_t ts_ns;  // CLOCK_MONOTONIC_RAW
  std::uint64_t payload;
  std::uint64_t correlation;  // start/end: the range id that pairs them; else 0
  StringId name;              // 0 for pop and end
  std::uint32_t category;
  std::uint32_t domain;  // 0: the default domain; else the number of a kDomain record
  RangeOp op;
  PayloadType payload_type;
  // Push and pop: the range's 0-based level among those open on this thread in this domain, so that a reader finds
  // the right partner even when records in between were lost. kNoLevel: not tracked.
  std::uint16_t level;
};
inline constexpr std::uint16_t kNoLevel = 0xffff;

struct GemmRecord {
  std::uint64_t begin_ns;
  std::uint64_t end_ns;
  std::int64_t m, n, k;  // as the caller passed them: C (m x n) = op(A) (m x k) op(B) (k x n), in the caller's layout;
                         // gemv: m = rows of op(A), n = 1, k = columns of op(A)
  std::uint32_t batch;   // 1 unless a batched call
  StringId function;     // "cblas_sgemm"
  StringId library;      // path of the library that did the work
  ElementType type;
  Layout layout;
  Transpose trans_a;
  Transpose trans_b;
};

struct ClockSyncRecord {
  std::uint64_t raw_ns;    // CLOCK_MONOTONIC_RAW
  std::uint64_t wall_ns;   // CLOCK_REALTIME, read between two raw readings whose middle is raw_ns
  std::uint64_t error_ns;  // half the distance of these two readings
};

// Added up since the process began, but for rss_bytes and threads.
struct UsageRecord {
  std::uint64_t ts_ns;
  std::uint64_t rss_bytes;
  std::uint64_t user_ns;
  std::uint64_t system_ns;
  std::uint64_t minor_faults;
  std::uint64_t major_faults;
  std::uint32_t pid;
  std::uint32_t threads;
};

struct IoRecord {
  std::uint64_t ts_ns;
  std::uint64_t read_bytes;     // from storage
  std::uint64_t written_bytes;  // to storage
  std::uint64_t voluntary_switches;
  std::uint64_t involuntary_switches;
  std::uint64_t peak_rss_bytes;  // as the kernel keeps it: samples may miss the top
  std::uint32_t pid;
};

enum class FrameKind : std::uint8_t { kNative = 0, kPython = 1, kKernel = 2, kUnknown = 3 };

struct FrameRecord {
  std::uint32_t id;  // from 1
  StringId function;
  StringId file;  // shared object or source file
  std::uint32_t line;
  FrameKind kind;
  std::uint64_t offset;  // native, without function: where in `file` (its load bias taken off); else 0
};

// Stacks share their outer parts: each is one frame called by a stack that was defined before.
struct StackRecord {
  std::uint32_t id;      // from 1
  std::uint32_t parent;  // the stack of the caller; 0: this frame is the outermost
  std::uint32_t frame;
};

struct SampleRecord {
  std::uint64_t ts_ns;
  std::uint64_t weight_ns;  // time this sample stands for
  std::uint32_t pid;
  std::uint32_t tid;
  std::uint32_t stack;     // 0: nothing could be read
  std::uint8_t truncated;  // 1: outer frames are missing
};

// What a thread does, or waits for. Numbers are stored in files: append only.
enum class ThreadState : std::uint8_t {
  kUser = 0,      // on a CPU, in the program
  kSystem = 1,    // on a CPU, in the kernel
  kRunQueue = 2,  // could run, but has no CPU
  kLock = 3,      // a futex: mutexes, condition variables, barriers, idle threads of a pool
  kIo = 4,        // files
  kNetwork = 5,   // sockets, and events of any kind (poll, epoll)
  kSleep = 6,     // for a time
  kChild = 7,     // the end of a child
  kGpu = 8,       // the driver of a GPU
  kPipe = 9,      // a pipe or terminal: another process, or a person
  kOther = 10,
  kUnseen = 11,  // waits too short for their cause to be seen
};

struct ThreadTimeRecord {
  std::uint64_t ts_ns;
  std::uint64_t time_ns;  // since the last record of the thread
  std::uint32_t pid;
  std::uint32_t tid;
  ThreadState state;
};

// Added up since the group was made.
struct CpuGroupRecord {
  std::uint64_t ts_ns;
  std::uint64_t periods;
  std::uint64_t throttled;  // of these, in which the limit was reached
  std::uint64_t throttled_ns;
  std::uint32_t quota_us;  // of CPU time in a period; 0: no limit
  std::uint32_t period_us;
  std::uint32_t pid;
};

// Added up since the log began. Events count whether or not they were stored.
struct CostRecord {
  std::uint64_t ts_ns;
  std::uint64_t range_events;
  std::uint64_t gemm_events;
  std::uint64_t log_bytes;
  std::uint64_t writer_cpu_ns;
  std::uint64_t gpu_events;  // calls of CUDA and its libraries that left a record
};

struct SegmentRecord {
  std::uint64_t ts_ns;
  std::uint32_t number;  // 1 for the second log of the process image
};

struct LossRecord {
  std::uint64_t ts_ns;
  std::uint64_t count;  // since the last record of the same kind and detail
  std::uint64_t detail;
  LossKind kind;
};

struct ThreadRecord {
  std::uint64_t ts_ns;  // first event of the thread; when `ended`, its end
  std::uint64_t tid;    // kernel thread id
  StringId name;
  std::uint8_t ended;
};

struct ProcessRecord {
  std::uint64_t ts_ns;
  std::uint64_t pid;
  std::uint64_t parent_pid;
  std::uint64_t start_ticks;  // field 22 of /proc/self/stat: with the pid it names the process for this boot
  StringId executable;
  StringId arguments;  // argv joined by '\0' (bytes as they are; secrets are redacted when ingested)
  StringId host;
  StringId rank;       // value of RANK, LOCAL_RANK, SLURM_PROCID or OMPI_COMM_WORLD_RANK, first that is set
  StringId variables;  // "RANK=1 WORLD_SIZE=8": what launchers and engines say of its job, in its environment
  std::uint8_t ended;  // 1: the image ended in order (exit handlers ran)
};

struct DomainRecord {
  std::uint32_t domain;
  StringId name;
};

struct CategoryRecord {
  std::uint32_t domain;
  std::uint32_t category;
  StringId name;
};

inline constexpr std::uint8_t kLibraryIsModelFile = 2;  // LibraryRecord::hooked

struct LibraryRecord {
  std::uint64_t ts_ns;
  StringId path;
  std::uint8_t hooked;  // 1: its calls are seen; kLibraryIsModelFile: no library, but what its name says, opened
};

// ---- CUDA -----------------------------------------------------------------------------------------------------

// Definitions: interned records (kFrame, kStack, kKernelShape, kGemmShape). Their first member is their id, unique
// among all definitions of a log; 0 is "none". Defined before their first use.
using DefinitionId = std::uint32_t;

struct DeviceRecord {
  std::uint64_t uuid_high, uuid_low;  // the 16 bytes of the UUID, big-endian; 0: unknown
  std::uint64_t memory_bytes;
  StringId name;
  std::uint32_t device;              // as in the records of this log
  std::uint32_t units;               // streaming multiprocessors
  std::uint32_t compute_capability;  // 90 for 9.0
};

enum class LaunchOp : std::uint8_t { kKernel = 1, kGraph = 2, kCopy = 3, kMemset = 4, kOther = 5 };

struct LaunchRecord {
  std::uint64_t begin_ns;     // the driver call
  std::uint64_t end_ns;       // 0: its end was not seen
  std::uint32_t correlation;  // CUPTI's, in the records of what it launched
  DefinitionId stack;
  std::uint32_t graph;  // kGraph: id of the executable graph
  LaunchOp op;
  std::uint8_t captured;  // 1: nothing ran, a capture took it down (its kGraphNode records follow)
  // Where kernels are sampled: launches of the same number on any thread are the same again, so one whose kernel was
  // not recorded ran as those did whose was. 0: not numbered.
  std::uint16_t number;
};

struct KernelShapeRecord {
  DefinitionId id;
  StringId name;  // mangled, as the library has it
  std::uint32_t grid_x, grid_y, grid_z;
  std::uint16_t block_x, block_y, block_z;
  std::uint16_t registers;
  std::uint32_t static_shared_bytes, dynamic_shared_bytes;
  std::uint32_t local_bytes;  // per thread
  std::uint16_t cluster_x, cluster_y, cluster_z;
};

struct KernelRecord {
  std::uint64_t begin_ns, end_ns;
  std::uint64_t graph_node;  // id of the executable graph's node; 0: not in a graph
  std::uint32_t correlation;
  DefinitionId shape;
  std::uint32_t stream;
  std::uint32_t graph;  // id of the executable graph; 0: none
  std::uint32_t context;
  std::uint16_t device;
};

enum class CopyKind : std::uint8_t {
  kUnknown = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kHostToHost = 4,
  kPeer = 5,
  kMemset = 6
};
enum class HostMemory : std::uint8_t { kUnknown = 0, kPageable = 1, kPinned = 2, kDevice = 3, kManaged = 4 };

struct CopyRecord {
  std::uint64_t begin_ns, end_ns;
  std::uint64_t bytes;
  std::uint64_t graph_node;
  std::uint32_t correlation;
  std::uint32_t stream;
  std::uint32_t graph;
  std::uint16_t device;
  CopyKind kind;
  HostMemory host_memory;  // of the side that is on the host
};

struct GraphLaunchRecord {
  std::uint64_t begin_ns, end_ns;
  std::uint32_t correlation;
  std::uint32_t graph;  // id of the executable graph
  std::uint32_t stream;
  std::uint32_t context;
  std::uint16_t device;
};

enum class GraphNodeKind : std::uint8_t {
  kUnknown = 0,
  kKernel = 1,
  kCopy = 2,
  kMemset = 3,
  kHost = 4,
  kGraph = 5,
  kEmpty = 6,
  kEvent = 7,
  kMemory = 8,
  kConditional = 9,
  kUpdate = 10,  // no node, but other kernels for those of an executable: see below
};

// Made by the thread that created the node, at that moment: its time is inside the launch, the BLAS call and the ranges
// it was captured in.
struct GraphNodeRecord {
  std::uint64_t ts_ns;
  std::uint64_t node;         // id
  std::uint64_t cloned_from;  // id of the node this is a clone of; 0: it is an original
  StringId name;              // of the kernel, mangled, if known at capture; else 0
  std::uint32_t graph;        // id of the graph it is in
  DefinitionId stack;
  GraphNodeKind kind;
};
// As kUpdate: from `ts_ns` on the clone of `node` in the executable `graph` runs the kernel `name` (graph 0: `node`
// itself, in those that are instantiated from then on); or, where `node` is 0, the nodes of `graph` run what those of
// the graph `cloned_from` do, in their order.

// Names as in cublas_api.h without prefix: "16bf", "32f", "tf32", "8f_e4m3", "8i"; scaling "none", "tensor",
// "vec16_ue4m3"…
struct GemmShapeRecord {
  DefinitionId id;
  StringId function;                              // "cublasGemmEx"
  StringId library;                               // path
  StringId algorithm;                             // "algo 21 tile 128x128 stages 4 splitk 1", "heuristic"; 0: unknown
  StringId epilogue;                              // "relu_bias"; 0: none
  StringId scaling;                               // 0: none
  StringId type_a, type_b, type_c, compute_type;  // as our own type names: "bfloat16", "float32", "float8_e4m3"…
  Layout layout;
  Transpose trans_a, trans_b;
};

struct GpuGemmRecord {
  std::uint64_t begin_ns, end_ns;  // of the call on the host
  std::int64_t m, n, k;            // as GemmRecord
  std::uint32_t batch;
  DefinitionId shape;
};

enum class MemoryOp : std::uint8_t { kAllocate = 1, kFree = 2 };
enum class MemoryKind : std::uint8_t { kDevice = 0, kPinned = 1, kManaged = 2, kPool = 3, kMapped = 4 };

struct DeviceMemoryRecord {
  std::uint64_t ts_ns;
  std::uint64_t address;
  std::uint64_t bytes;  // kFree: 0 if unknown
  DefinitionId stack;
  std::uint16_t device;
  MemoryOp op;
  MemoryKind kind;
};

struct ApiRecord {
  std::uint64_t begin_ns, end_ns;
  StringId name;
  std::uint32_t correlation;
  std::uint32_t stream;
  std::uint8_t waits;  // 1: the host waits for the device in it
};

// GPU activity between these times is missing, but for what other records say.
struct GapRecord {
  std::uint64_t begin_ns, end_ns;
  StringId why;
};

// The recorder's log: metrics are named and in the unit that goes with the name (docs/format/telemetry.md).
struct TelemetryDeviceRecord {
  std::uint64_t uuid_high, uuid_low;
  StringId name;
  std::uint32_t device;
};

struct TelemetryRecord {
  std::uint64_t ts_ns;
  double value;
  StringId metric;
  std::uint32_t device;
  std::uint32_t pid;  // 0: of the device as a whole
};

struct NoteRecord {
  std::uint64_t ts_ns;
  StringId subject;  // "cupti", "graphs", "stacks", "telemetry"…
  StringId text;
};

enum class CounterScope : std::uint8_t {
  kRange = 1,   // a range of the program
  kGraph = 2,   // one launch of a graph
  kKernel = 3,  // one execution of a kernel
  kSample = 4,  // a period of the device, whatever ran
};

// Of a range, graph or kernel: host times, from before its first work was given to the device until all of it had
// ended; the range or launch that it is of is on the same thread and inside: begin_ns is before its begin, end_ns after
// its end. Of a sample: its own. A set that needs several passes takes several windows, one a pass: they have the same
// `measurement`. Its values are made after the last, maybe by another thread, so they may stand anywhere in the log; a
// window whose values never come was measured in vain.
struct CounterWindowRecord {
  std::uint64_t begin_ns, end_ns;
  std::uint64_t cost_ns;      // time that measuring took from the program here
  std::uint32_t measurement;  // in this log, from 1
  std::uint32_t correlation;  // graph, kernel: of the launch; else 0
  StringId name;              // of the range or kernel; else 0
  std::uint16_t device;
  CounterScope scope;
  std::uint8_t pass, passes;  // this window is pass `pass` (from 0) of so many
};

struct CounterRecord {
  std::uint64_t ts_ns;  // when it was read
  double value;         // NaN: the device gave none
  std::uint32_t measurement;
  StringId metric;  // the chip's own name: "dram__bytes_read.sum"
};

struct StallRecord {
  std::uint64_t ts_ns;      // when it was read
  std::uint64_t samples;    // since the last record of the same place and reason
  std::uint64_t cubin;      // checksum of the code it is in
  std::uint64_t pc_offset;  // from the begin of the function
  StringId function;        // mangled, as the library has it
  StringId reason;          // "long_scoreboard"
  StringId file;            // source, if it is known; else 0
  std::uint32_t line;
  std::uint16_t device;
  // CUPTI counts all samples of a reason, and again those in which the warp's scheduler issued nothing ("not_issued").
  // 0: these; 1: the others, in which it issued from another warp, or from this one. Samples of code that CUPTI does
  // not know are of function "<unknown code>", reason "unknown", issued 1.
  std::uint8_t issued;
};

// One slot of a thread's buffer.
struct alignas(64) Record {
  RecordKind kind;
  union {
#define RECORD(number, name, member) name##Record member;
#include "wire/records.def"
  };
};
static_assert(sizeof(RangeRecord) == 40 && sizeof(Record) == 64);

// A record of zeros of this kind: all bytes count where records are compared or interned.
inline void clear(Record* record, RecordKind kind) {
  __builtin_memset(static_cast<void*>(record), 0, sizeof(*record));
  record->kind = kind;
}
inline Record blank(RecordKind kind) {
  Record record;
  clear(&record, kind);
  return record;
}

}  // namespace llmprof::wire
