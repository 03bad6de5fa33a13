#pragma once
// A PyTorch memory snapshot: its dictionaries, its events paired to allocations, its rows.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/memory_snapshot/pickle.h"
#include "importers/sink.h"

namespace llmprof::importers {

// The keys that the dictionaries of a snapshot have, and one dictionary by them.
enum class Key : std::uint8_t {
  kAction,
  kAddr,
  kAddress,
  kActiveSize,
  kAllocatedSize,
  kBlocks,
  kDevice,
  kDeviceFree,
  kExpandable,
  kFilename,
  kFrames,
  kLine,
  kName,
  kPoolId,
  kRequestedSize,
  kSegmentType,
  kSize,
  kStage,
  kState,
  kStream,
  kTime,
  kTotalSize,
  kCount,
  kOther
};

class SnapshotFields {
 public:
  void read(const PickleHeap& heap, PickleHeap::Id dict);

  bool has(Key key) const { return values_[at(key)].has_value(); }
  std::optional<PickleValue> value(Key key) const { return values_[at(key)]; }
  std::optional<std::int64_t> integer(Key key) const {
    const auto& value = values_[at(key)];
    return value ? value->as_int() : std::nullopt;
  }
  // Not negative; nullopt if it is, or is no integer.
  std::optional<std::int64_t> count(Key key) const {
    const auto value = integer(key);
    return value && *value >= 0 ? value : std::nullopt;
  }
  std::string_view text(const PickleHeap& heap, Key key) const {
    const auto& value = values_[at(key)];
    return value ? heap.text(*value) : std::string_view();
  }

 private:
  static constexpr std::size_t at(Key key) { return static_cast<std::size_t>(key); }
  Key key_of(const PickleHeap& heap, PickleValue text);

  std::array<std::optional<PickleValue>, static_cast<std::size_t>(Key::kCount)> values_;
  std::vector<Key> known_;  // by number of the text
};

// The events of one device's allocator, in their order, paired to allocations: a row for every tensor (kind "tensor")
// and for every piece of memory that the allocator holds (kind "segment").
// An allocation ends when its memory can be used again (free_completed), not when the program gave it up.
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
  template <class Map>
  void begin(Map& open, std::string_view kind, const AllocatorEvent& event);
  void freed(const AllocatorEvent& event);
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

// What the dictionaries of a PyTorch memory snapshot mean: frames, events, blocks, segments, annotations. Taken while
// the pickle is read, so that events, which are nearly all of a file, are not kept.
class Snapshot : public PickleShapes {
 public:
  explicit Snapshot(Sink& sink);

  void dict_done(PickleHeap& heap, PickleHeap::Id dict) override;
  bool take(PickleHeap& heap, std::span<const PickleValue> stack, const PickleHeap::Object& record) override;
  std::size_t held_bytes() const override;

  // The pickle is read: writes all that could not be written on the way.
  Result<void> finish(PickleHeap& heap, PickleValue root);

 private:
  enum Record : std::uint8_t { kFrame, kStack, kEvent, kBlock, kSegment, kAnnotation };
  struct Block {
    std::int64_t address = 0, bytes = 0, requested_bytes = -1;
    std::uint32_t stack = 0, state = 0;  // ids of a stack and of a name; 0 none
  };
  struct Segment {
    std::int64_t device = 0, address = 0, bytes = 0, allocated_bytes = 0, active_bytes = 0;
    trace::OptionalInt requested_bytes, stream;
    std::optional<bool> expandable;
    std::uint32_t stack = 0;
    trace::Name kind;
    std::vector<std::uint32_t> blocks;
  };
  struct Annotation {
    std::int64_t ts_ns = 0, device = 0;
    trace::Name name;
    bool begins = false;
  };
  using Fields = SnapshotFields;
  // Two hashes of its frames: what is the same stack is told by them alone.
  struct StackHash {
    std::uint64_t a = 0, b = 0;
    friend bool operator==(const StackHash&, const StackHash&) = default;
  };
  struct FrameKey {
    std::uint32_t name = 0, file = 0;  // texts of the heap
    std::int64_t line = 0;
    friend bool operator==(const FrameKey&, const FrameKey&) = default;
  };
  struct Hash {
    std::size_t operator()(const StackHash& hash) const { return hash.a; }
    std::size_t operator()(const FrameKey& key) const {
      return (std::size_t{key.name} << 32 | key.file) * 0x9e3779b97f4a7c15u ^ static_cast<std::size_t>(key.line);
    }
  };

  void frame_done(PickleHeap& heap, PickleHeap::Id dict);
  void event_done(PickleHeap& heap, PickleHeap::Id dict);
  void block_done(PickleHeap& heap, PickleHeap::Id dict);
  void segment_done(PickleHeap& heap, PickleHeap::Id dict);
  void annotation_done(PickleHeap& heap, PickleHeap::Id dict);
  std::string kind_of_segment(const PickleHeap& heap) const;
  std::uint32_t stack_of(PickleHeap& heap);  // of `fields_`
  AllocationTrace* trace_of(const PickleHeap& heap, std::span<const PickleValue> stack);

  Result<std::vector<std::uint32_t>> find_segments(PickleHeap& heap, PickleValue root) const;
  trace::Id device_id(std::int64_t ordinal);
  void write_segments(const std::vector<std::uint32_t>& segments);
  void write_blocks(const Segment& segment, trace::Id segment_id, AllocationTrace* trace);
  void write_ranges();
  void write_notes(PickleHeap& heap, PickleValue root);

  Sink& sink_;
  Fields fields_;
  std::unordered_map<FrameKey, std::uint32_t, Hash> frames_;
  std::unordered_map<StackHash, std::uint32_t, Hash> stacks_;
  std::vector<Block> blocks_;
  std::vector<Segment> segments_;
  std::vector<Annotation> annotations_;
  std::unordered_map<PickleHeap::Id, std::unique_ptr<AllocationTrace>> traces_;  // by list
  std::map<std::int64_t, AllocationTrace*> traces_by_device_;
  std::map<std::int64_t, trace::Id> devices_;
  AllocatorEvent event_;  // the last, until its list takes it
  std::uint32_t event_number_ = 0;
};

}  // namespace llmprof::importers
