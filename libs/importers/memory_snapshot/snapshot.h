#pragma once
// What the dictionaries of a PyTorch memory snapshot mean: frames, events, blocks, segments, annotations. Taken while
// the pickle is read, so that events, which are nearly all of a file, are not kept.

#include <map>
#include <memory>
#include <unordered_map>

#include "importers/memory_snapshot/allocation_trace.h"
#include "importers/memory_snapshot/pickle_reader.h"
#include "importers/memory_snapshot/snapshot_fields.h"

namespace llmprof::importers {

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
