#pragma once
// The seam between the two fakes. The fake driver does the work and tells the tool about it; the fake CUPTI is the
// tool. It attaches itself when its first function is called, as the real one does through the driver's export tables.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "abi.h"

namespace fake {

// The ledger: what was made, and what became of it. FAULT_LEDGER names a folder; the file is called .gpu.PID and
// is a shared mapping, so a killed program leaves it exact. Layout: entries of 24 bytes of name and a u64.
#define FAKE_COUNTERS(X)                                                                                             \
  /* made by the program */                                                                                          \
  X(contexts)                                                                                                        \
  X(streams)                                                                                                         \
  X(launch_calls)                                                                                                    \
  X(captured_calls)                                                                                                  \
  X(kernels)                                                                                                         \
  X(kernel_ns)                                                                                                       \
  X(node_kernels)                                                                                                    \
  X(copies)                                                                                                          \
  X(copy_bytes)                                                                                                      \
  X(copy_ns) X(memsets) X(node_copies) X(graph_launches) X(graph_execs) X(nodes_created) X(nodes_cloned)             \
      X(allocations) X(allocated_bytes) X(frees) X(injected) /* seen by CUPTI */                                     \
      X(cupti_calls) X(callbacks) X(kernel_records) X(copy_records) X(graph_records) X(memory_records)               \
          X(other_records) X(dropped_records) X(dropped_told) X(zero_records) X(bad_time_records) X(unknown_records) \
              X(stolen_records) X(unrecorded) X(undelivered_records) X(delivered_records) X(buffers_asked)           \
                  X(buffers_refused) X(buffers_returned) X(subscribed) X(timestamp_callbacks) X(finalized)           \
                      X(failed_calls) X(profiler_calls) X(profiler_starts) X(ranges_pushed) X(ranges_popped)         \
                          X(auto_ranges) X(pm_samples) X(pc_samples) /* what no client may do */                     \
      X(bad_null_buffer) X(bad_small_buffer) X(bad_buffer_twice) X(bad_late_graph_trace) X(bad_call_after_fini)      \
          X(untraced_execs) X(bad_switch_in_flight) X(bad_late_timestamp) X(bad_dirty_buffer) X(bad_exec_untraced)   \
              X(bad_in_capture) X(bad_dead_context) X(bad_in_child) X(bad_callback_off)

enum Counter {
#define X(name) k_##name,
  FAKE_COUNTERS(X)
#undef X
      kCounters
};

struct LedgerEntry {
  char name[24];
  std::atomic<std::uint64_t> value;
};

struct Stream;
struct Context {  // never freed
  std::uint32_t id;
  int device;
  std::atomic<bool> dead{false};
  Stream* own = nullptr;         // its default stream
  std::uint64_t idle_at_ns = 0;  // when it has done all it was given so far
};

struct Graph;
struct Stream {
  std::uint32_t id;
  Context* context;
  std::uint64_t busy_until_ns;
  Graph* capturing;
  bool capture_broken = false;
  bool destroyed = false;
};

struct Event {  // never freed
  Context* context;
  std::uint64_t at_ns;
};

struct Function {
  std::string name;
  std::uint64_t duration_ns;
};

struct Node {
  std::uint64_t id;
  NodeType type;
  Function* function;
  unsigned grid[3], block[3];
  std::uint64_t bytes;
  Graph* child;    // of a graph node or a conditional one
  unsigned times;  // a conditional node runs its child so often
  const Node* cloned_from = nullptr;
};

struct Graph {
  std::uint32_t id;
  std::vector<Node*> nodes;
};

struct Exec {
  std::uint32_t id;
  Graph* graph;           // its own clone
  bool untraced = false;  // made while graphs were not recorded as a whole, as they had been before
};

// One thing the device did.
struct Work {
  ActivityKind kind;
  const char* name;
  unsigned grid[3], block[3], shared_bytes;
  std::uint64_t begin_ns, end_ns, bytes, node;
  std::uint32_t correlation, stream, context, graph;
  std::uint8_t copy_kind, from_kind, to_kind;
  int device;
  std::uint64_t kernels, kernel_ns;  // of a whole graph
};

struct Memory {
  std::uint64_t address, bytes;
  std::uint32_t correlation, context;
  bool release;
};

struct Api {
  std::uint32_t id;
  const char* name;
  const void* parameters;
  const char* symbol;
  Context* context;
  std::uint64_t* correlation_data;
  std::uint32_t correlation;
  std::uint64_t begin_ns;
};

struct Tool {
  std::uint64_t (*now)();
  void (*api)(const Api& call, int site, int* result);
  void (*resource)(std::uint32_t id, Context* context, Stream* stream, void* descriptor);
  void (*work)(const Work& work);
  void (*memory)(const Memory& memory);
  void (*waited)(std::uint32_t correlation, Stream* stream, Context* context, std::uint64_t begin_ns);
  bool (*graphs_as_a_whole)();
  bool (*graphs_were_traced)();  // as a whole, at any time
};

struct Driver {
  LedgerEntry* ledger;
  void (*attach)(const Tool* tool);
  std::atomic<int>* contexts;
  std::atomic<int>* execs;
  std::atomic<bool>* fini;  // the driver's destructors have run
  std::atomic<bool>* initialising;
  std::atomic<bool>* lost;     // the device failed: nothing works any more
  std::atomic<int>* captures;  // that are under way
  void (*break_captures)();
  std::uint64_t (*idle_at_ns)();  // when the device has done all it was given so far
  bool (*graph_in_flight)();      // or being launched, or being instantiated
};

inline void count(LedgerEntry* ledger, Counter counter, std::uint64_t amount = 1) {
  ledger[counter].value.fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace fake

extern "C" const fake::Driver* fake_cuda_driver();
