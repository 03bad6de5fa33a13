#pragma once
// The events of one device's allocator, in their order, paired to allocations: a row for every tensor (kind "tensor")
// and for every piece of memory that the allocator holds (kind "segment").
// An allocation ends when its memory can be used again (free_completed), not when the program gave it up.

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "importers/sink.h"

namespace llmprof::importers {

struct AllocatorEvent {
  std::string_view action;
  std::int64_t address = 0, bytes = 0;
  std::int64_t ts_ns = 0;
  trace::OptionalId stack_id;
  std::optional<std::int64_t> device_free_bytes;  // of "oom"
};

class AllocationTrace {
 public:
  static constexpr std::size_t kMaxOpen = 3'000'000;  // allocations at the same time

  AllocationTrace(Sink& sink, trace::Id device_id) : sink_(sink), device_id_(device_id) {}

  void take(const AllocatorEvent& event);
  // What the snapshot shows to be there and no event told of: allocated before the first event.
  void there_at_end(std::int64_t address, std::int64_t bytes, trace::OptionalId stack_id);
  void segment_at_end(std::int64_t address, std::int64_t bytes, trace::OptionalId stack_id);
  void finish();  // writes what was never freed

  trace::Id device_id() const { return device_id_; }
  std::optional<std::int64_t> first_ns() const { return first_ns_; }
  std::optional<std::int64_t> snapshot_ns() const { return snapshot_ns_; }
  std::int64_t events() const { return events_; }
  std::int64_t older() const { return older_; }  // allocations from before the first event
  std::size_t held_bytes() const { return open_.size() * 72 + segments_.size() * 96; }

 private:
  struct Open {
    std::int64_t begin_ns = 0, bytes = 0;
    trace::OptionalId stack_id;
  };
  void allocated(const AllocatorEvent& event);
  void freed(const AllocatorEvent& event);
  void mapped(const AllocatorEvent& event);
  void unmapped(const AllocatorEvent& event);
  void out_of_memory(const AllocatorEvent& event);
  void write(std::string_view kind, std::int64_t address, const Open& open, trace::OptionalInt end_ns);

  Sink& sink_;
  trace::Id device_id_;
  std::optional<std::int64_t> first_ns_, snapshot_ns_;
  std::unordered_map<std::int64_t, Open> open_;
  std::map<std::int64_t, Open> segments_;  // disjoint, by address
  std::int64_t events_ = 0, older_ = 0;
};

}  // namespace llmprof::importers
