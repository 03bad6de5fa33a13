#pragma once
// The allocator's "[memory]" events: memory that was allocated and freed, paired by its address. What was there before
// the recording shows when it is freed, or in the totals that every event carries.

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "importers/chrome_json/event.h"
#include "importers/chrome_json/lanes.h"
#include "importers/chrome_json/names.h"
#include "importers/chrome_json/stacks.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

class Memory {
 public:
  static constexpr std::size_t kMaxOpen = 500'000;
  static constexpr std::size_t kMaxHeld = 200'000;  // allocations that wait for their stacks

  Memory(Sink& sink, Names& names, Lanes& lanes, Stacks& stacks)
      : sink_(sink), names_(names), lanes_(lanes), stacks_(stacks) {}

  void wait_for_stacks() { wait_for_stacks_ = true; }
  void take(const Event& event, const Lanes::Thread& thread);
  void finish();

 private:
  struct Key {
    std::int64_t device = -1, address = 0;  // device: -1 the host
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      const std::uint64_t mixed =
          (static_cast<std::uint64_t>(key.address) ^ static_cast<std::uint64_t>(key.device) << 56) *
          0x9E3779B97F4A7C15U;
      return static_cast<std::size_t>(mixed ^ (mixed >> 32));
    }
  };
  struct Device {  // or the host
    bool seen = false;
    std::int64_t first_ns = 0, before_bytes = 0;  // allocated before the recording and not freed yet
    std::int64_t reserved_bytes = -1;
    Lanes::Thread thread;
  };

  void allocate(const Event& event, const Key& key, const Lanes::Thread& thread);
  void free(const Event& event, const Key& key, Device& device, const Lanes::Thread& thread);
  void read_totals(const Event& event, std::int64_t ordinal, Device& device);
  trace::AllocationRow row_of(const Key& key, std::int64_t bytes, std::int64_t begin_ns, const Lanes::Thread& thread);
  void emit(const trace::AllocationRow& row);

  Sink& sink_;
  Names& names_;
  Lanes& lanes_;
  Stacks& stacks_;
  bool wait_for_stacks_ = false;
  std::unordered_map<Key, trace::AllocationRow, Hash> open_;
  std::map<std::int64_t, Device> devices_;
  std::vector<trace::AllocationRow> held_;
};

}  // namespace llmprof::importers::chrome_json
