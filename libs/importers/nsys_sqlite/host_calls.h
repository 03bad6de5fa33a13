#pragma once
// What the host called, with which call stacks, and what devices did for it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "importers/nsys_sqlite/identities.h"

namespace llmprof::importers::nsys {

// The calls that may have launched device work, to be found by process and correlation id. 24 bytes each, so that ten
// million of them fit into the memory an import may take.
class Launches {
 public:
  static constexpr std::size_t kMost = 12'000'000;

  struct Call {
    std::int64_t begin_ns = 0, end_ns = 0;
    Actors::Index thread = 0;
    std::uint32_t stack = 0;  // index of a stack, 0 for none
  };

  // How many will come, about.
  void expect(std::int64_t count);
  // False: there are too many.
  bool add(Actors::Index process, std::uint32_t correlation, const Call& call);
  void sort();  // between the last add() and the first find()
  std::optional<Call> find(Actors::Index process, std::uint32_t correlation);

 private:
  struct Entry {
    std::int64_t begin_ns;
    std::uint32_t correlation;
    std::uint32_t duration_ns;
    std::uint32_t stack;
    Actors::Index process, thread;
  };
  static_assert(sizeof(Entry) == 24);
  static std::uint64_t key(const Entry& entry) { return std::uint64_t{entry.process} << 32 | entry.correlation; }

  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::int64_t> long_;  // ends of the few calls of more than 4 s
  std::size_t hint_ = 0;                                  // work is stored about in the order of its launches
  bool sorted_ = true;
};

// Call stacks of the tables *_CALLCHAINS: one row per frame, rows of one stack side by side. Equal stacks are stored
// once.
class Stacks {
 public:
  explicit Stacks(Export& from) : database_(from.database), strings_(from.strings) {}

  struct Found {
    trace::Id stack_id = 0;
    bool truncated = false;
  };
  using ById = std::unordered_map<std::int64_t, Found>;
  // The stacks of a table by the number that its events use.
  Result<ById> read(std::string_view table);

 private:
  static constexpr std::size_t kMostStacks = 1'000'000, kMostFrames = 1024;

  struct Frame {
    std::int64_t symbol, module;
    bool in_kernel;
  };
  void keep(std::int64_t id, ById& found);
  trace::Id frame_id(const Frame& frame);
  void add_frame(Rows& rows);

  Database& database_;
  Strings& strings_;
  std::vector<trace::Id> frames_;  // of the stack being read, innermost first
  bool cut_ = false;
  std::unordered_map<std::uint64_t, trace::Id> known_stacks_, known_frames_;  // by hash of their parts
};

// Calls of the CUDA runtime and driver (both are in CUPTI_ACTIVITY_KIND_RUNTIME), of which those that may have launched
// work are kept to be found by it. `stack_ids`: what Launches::Call::stack is an index into.
Result<void> read_calls(Export& from, Launches& launches, std::vector<trace::Id>& stack_ids);
// CUPTI_ACTIVITY_KIND_SYNCHRONIZATION tells the waits again, without names of functions: of use only where the calls
// themselves were not recorded.
Result<void> read_waits(Export& from);
// CUDA_GPU_MEMORY_USAGE_EVENTS: allocations of device memory, paired with their release by address.
Result<void> read_allocations(Export& from, Launches& launches);
// What the GPUs did: kernels, copies, fills and launches of graphs, and the calls that launched them. False: nothing.
Result<bool> read_device_work(Export& from);

}  // namespace llmprof::importers::nsys
