#pragma once
// All state of the collector: one constant-initialised struct, and one mapping that exists from the first name or
// event on. Nothing here has a constructor that runs, so nothing happens in a process that raises no event.

#include <atomic>
#include <cstdint>

#include "collect/cuda/kernel_sampling.h"
#include "collect/settings.h"
#include "collect/tables.h"
#include "collect/writer/selection.h"
#include "wire/format.h"

namespace llmprof::collect {

inline constexpr std::uint32_t kChunkRecords = 32;
inline constexpr std::uint32_t kMaxChunks = 16384;  // 32 MiB of records
inline constexpr std::uint32_t kMaxThreads = 16384;
inline constexpr std::uint32_t kMaxDomains = 256;
inline constexpr std::uint32_t kTrackedDomains = 64;  // domains whose push/pop levels are kept per thread
inline constexpr std::uint32_t kMaxCategories = 1024;
inline constexpr std::uint32_t kMaxLibraries = 64;
inline constexpr std::uint32_t kNameCacheSlots = 64;
inline constexpr std::uint32_t kBlockBytes = 256u << 10;
inline constexpr auto kLossKinds = static_cast<std::uint32_t>(wire::LossKind::kCount);
inline constexpr std::uint32_t kMaxFacts = 4096;
inline constexpr std::uint32_t kDeviceBatch = 512;  // records of the device that are encoded together

// A buffer of one thread. Only the writer gives chunks back, so whoever sees one may read it.
struct alignas(64) Chunk {
  std::atomic<std::uint32_t> committed;  // records that are complete
  std::atomic<std::uint32_t> next;       // link of the list it is in: index + 1
  std::uint32_t thread;                  // number of the owner
  std::uint32_t tid;
  std::uint32_t slot;      // of the owner
  std::uint32_t drained;   // writer only
  std::uint32_t freed_in;  // writer only: its last pass that gave this chunk back
  std::uint32_t watched;   // writer only: shown to the selection
};

enum class SlotState : std::uint32_t { kFree = 0, kLive = 1, kExited = 2 };

struct alignas(64) Thread {
  // The owning thread.
  wire::Record* records;  // of the current chunk; null: none
  Chunk* chunk;
  std::uint32_t used;
  std::uint32_t number;  // of this thread in the log; 0: it is the collector's own
  std::uint32_t tid;
  std::uint32_t ranges_started;
  std::uint32_t dropped;  // records of this thread that found no buffer
  bool introduced;        // its kThread record is made
  // Shared with the writer.
  std::atomic<std::uint32_t> current;  // index + 1 of the chunk being filled
  std::atomic<SlotState> state;
  std::atomic<std::uint32_t> next;  // link in the list of free slots
  // The writer.
  std::uint32_t seen_chunk;
  std::uint32_t seen_records;
  SlotState seen_state;
  // The owning thread again.
  std::int32_t level[kTrackedDomains];
  wire::StringId name_cache[kNameCacheSlots];
};

// Things that are defined once and must be in every log that may use them.
struct Domain {
  std::atomic<wire::StringId> name;
  std::uint32_t emitted;  // writer only, as in StringTable::Name
};
struct Category {
  std::atomic<std::uint32_t> ready;
  std::uint32_t domain, category;
  wire::StringId name;
  std::uint32_t emitted;
};
struct Library {
  std::atomic<wire::StringId> path;
  std::atomic<std::uint32_t> hooked;
  std::uint32_t emitted;  // writer only
  std::uint32_t emitted_hooked;
};

// A record about the collection itself (cuda/facts.h).
struct Fact {
  std::atomic<std::uint32_t> ready;
  std::uint32_t emitted;  // writer only
  wire::Record record;
};

// Nodes of graphs, the last ones made: a graph outlives the logs that are kept (writer only, when only the end is
// kept).
struct KeptNodes {
  static constexpr std::uint32_t kMost = 1u << 16;
  std::uint64_t made;
  wire::Record records[kMost];
};

// The mapping. Zero bytes are its initial state. What precedes `strings` is dropped in a forked child.
struct Shared {
  wire::Record records[kMaxChunks][kChunkRecords];
  Chunk chunks[kMaxChunks];
  Thread threads[kMaxThreads];
  Fact facts[kMaxFacts];
  std::atomic<std::uint32_t> fact_count;
  KeptNodes nodes;
  SelectionMemory selection;  // writer only
  alignas(4096) StringTable strings;
  DefinitionTable definitions;
  Domain domains[kMaxDomains];
  Category categories[kMaxCategories];
  Library libraries[kMaxLibraries];
  std::uint8_t name_verdicts[StringTable::kMaxNames];  // writer only, of RangeNames
  char scratch[wire::kMaxNameBytes];                   // writer only
  std::uint8_t block[kBlockBytes];                     // writer only
};
static_assert(kMaxRangeThreads == kMaxThreads);
static_assert(sizeof(Shared) < (78u << 20));

enum class Phase : std::uint32_t {
  kUnread,    // settings not read yet
  kCold,      // on, nothing recorded yet
  kStarting,  // one thread is building the state
  kRunning,
  kDropping,  // recording stopped; events are counted under drop_reason
  kOff,
  kEnded,
};

inline constexpr std::uint32_t kNotLive = ~0u;

// What threads take from and what they give to lie on cache lines of their own: the writer works on the one while they
// work on the other.
struct Lists {
  alignas(64) std::atomic<std::uint64_t> free_chunks;  // tag << 32 | index + 1
  alignas(64) std::atomic<std::uint32_t> full_chunks;  // index + 1; pushed by all, taken whole by the writer
  std::atomic<std::uint32_t> full_count;
  alignas(64) std::atomic<std::uint64_t> free_threads;  // as free_chunks
  std::atomic<std::uint32_t> fresh_chunks;              // never used so far: from here on
  std::atomic<std::uint32_t> fresh_threads;
  std::atomic<std::uint32_t> thread_numbers;
};

struct Collector {
  std::atomic<std::uint32_t> live{kNotLive};  // generation being recorded; a thread compares its own with it
  std::atomic<Phase> phase{Phase::kUnread};
  std::atomic<std::uint32_t> generation{0};  // counts starts: 1, then one more in each forked child that records
  std::atomic<std::uint32_t> drop_reason{0};
  std::atomic<Shared*> shared{nullptr};
  std::atomic<std::int32_t> shared_lock{0};  // pid of the holder
  std::atomic<std::int32_t> pid{0};          // of the process that started, or is starting, this recording
  std::atomic<std::uint32_t> cuda_seen{0};
  std::atomic<std::uint32_t> definitions{0};  // bumped after every new domain, category or library
  std::atomic<std::uint32_t> wake{0};         // futex: the writer should look now
  std::atomic<std::uint32_t> stop{0};
  std::atomic<std::uint32_t> flushes_wanted{0};
  std::atomic<std::uint32_t> flushes_made{0};    // futex
  std::atomic<std::uint32_t> done{0};            // futex: the writer has ended
  std::atomic<std::uint64_t> exit_waited_ns{0};  // by the exiting thread, for CUPTI
  std::atomic<std::uint64_t> lost[kLossKinds]{};
  std::atomic<std::uint64_t> loss_details[kLossKinds]{};  // the last one of each kind
  Lists lists{};
  std::uint32_t logs = 0;  // begun so far, also by the processes this one was forked from
  std::uint32_t key = 0;
  std::uint32_t key_made = 0;
  std::uint32_t forked = 0;  // this is a forked child that has not started yet
  Settings settings{};
};
extern constinit Collector g;

// The launch this thread is in, for the nodes that a capture makes of it.
struct CurrentLaunch {
  const char* symbol;  // of the kernel
  std::uint32_t graph;
  wire::LaunchOp op;
  wire::DefinitionId stack;
  std::uint32_t nodes;  // made since it began
  bool inside;
  std::uint16_t number;  // LaunchRecord::number
  bool noted;            // what it runs may not be recorded
};

// A node of a graph that a thread made last, outside of a launch.
struct MadeNode {
  const void* handle;  // null: none
  std::uint64_t id;
  std::uint64_t ts_ns;
  std::uint32_t graph;
  wire::DefinitionId stack;
  wire::GraphNodeKind kind;
};

// The range or launch of this thread whose counters are being read (cuda/counters).
struct CountedWindow {
  std::uint32_t number;  // 0: none
  std::uint32_t domain;  // of a kernel: the correlation of its launch
  std::int32_t level;
};

// Per thread, as small as can be: dynamic thread-local storage is scarce.
struct ThreadLocal {
  Thread* thread;
  const wire::GemmRecord* gemm;  // the BLAS call this thread is in
  std::uint32_t generation;      // 0: never attached
  std::uint32_t inside;          // an event of this thread is being recorded
  CurrentLaunch launch;
  LaunchTrace launched;  // before
  MadeNode made;
  std::uint32_t node_type;     // of the node that is about to be made
  std::uint32_t graph_thread;  // a number of this thread, for its default stream; 0: none yet
  std::uint8_t instantiating;  // a graph (cuda/graphs.cpp)
  bool in_graph_launch;
  bool in_runtime;  // a call of the CUDA runtime, if these are recorded
  bool measuring;   // a profiler of CUPTI's is being called: what it does with the driver is not the program's
  CountedWindow counted;
  bool is_ours;  // a thread of the collector: what it records is of no thread of the program
};
extern __thread ThreadLocal tl;

inline void count_loss(wire::LossKind kind, std::uint64_t count = 1) {
  g.lost[static_cast<std::uint32_t>(kind)].fetch_add(count, std::memory_order_relaxed);
}

// A loss whose record says what it is about: a string id or a number, as LossKind has it.
inline void count_loss_about(wire::LossKind kind, std::uint64_t count, std::uint64_t detail) {
  g.loss_details[static_cast<std::uint32_t>(kind)].store(detail, std::memory_order_release);
  g.lost[static_cast<std::uint32_t>(kind)].fetch_add(count, std::memory_order_release);  // after its detail
}

}  // namespace llmprof::collect
