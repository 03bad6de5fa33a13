#pragma once
// The parts of a PyTorch memory snapshot: the fields of its dictionaries, its events paired to allocations.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/human.h"
#include "importers/memory_snapshot/pickle.h"
#include "importers/sink.h"

namespace llmprof::importers {

// The keys that the dictionaries of a snapshot have, and one dictionary by them.
// clang-format off
#define LLMPROF_SNAPSHOT_KEYS(X) \
  X(kAction, "action") X(kAddr, "addr") X(kAddress, "address") X(kActiveSize, "active_size") \
  X(kAllocatedSize, "allocated_size") X(kBlocks, "blocks") X(kDevice, "device") X(kDeviceFree, "device_free") \
  X(kExpandable, "is_expandable") X(kFilename, "filename") X(kFrames, "frames") X(kLine, "line") \
  X(kName, "name") X(kPoolId, "segment_pool_id") X(kRequestedSize, "requested_size") \
  X(kSegmentType, "segment_type") X(kSize, "size") X(kStage, "stage") X(kState, "state") X(kStream, "stream") \
  X(kTime, "time_us") X(kTotalSize, "total_size")
// clang-format on
#define LLMPROF_KEY(key, text) key,
#define LLMPROF_TEXT(key, text) text,
enum class Key : std::uint8_t { LLMPROF_SNAPSHOT_KEYS(LLMPROF_KEY) kCount, kOther };
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Key::kCount)> kKeyTexts{
    LLMPROF_SNAPSHOT_KEYS(LLMPROF_TEXT)};
#undef LLMPROF_SNAPSHOT_KEYS
#undef LLMPROF_KEY
#undef LLMPROF_TEXT

class SnapshotFields {
 public:
  void read(const PickleHeap& heap, PickleHeap::Id dict) {
    values_.fill(std::nullopt);
    const std::vector<PickleValue>& pairs = heap.members(dict);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      if (pairs[i].kind() != PickleValue::Kind::kText) continue;
      const Key key = key_of(heap, pairs[i]);
      if (key != Key::kOther) values_[at(key)] = pairs[i + 1];
    }
  }

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
  // Texts are numbered by the heap; what a number means is found once.
  Key key_of(const PickleHeap& heap, PickleValue text) {
    constexpr std::size_t kMostKnown = 1 << 16;  // keys come early
    const std::size_t number = text.number();
    if (number < known_.size() && known_[number] != Key::kCount) return known_[number];
    Key key = Key::kOther;
    for (std::size_t i = 0; i < kKeyTexts.size(); ++i) {
      if (heap.text(text) == kKeyTexts[i]) key = static_cast<Key>(i);
    }
    if (number < kMostKnown) {
      if (known_.size() <= number) known_.resize(number + 1, Key::kCount);
      known_[number] = key;
    }
    return key;
  }

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

  void take(const AllocatorEvent& event) {
    if (!first_ns_) first_ns_ = event.ts_ns;
    const std::string_view action = event.action;
    if (action == "alloc") return begin(open_, "tensor", event);
    if (action == "free_completed" || action == "free") return freed(event);
    if (action == "free_requested") return;  // its memory waits for a stream
    if (action == "segment_alloc" || action == "segment_map") return begin(segments_, "segment", event);
    if (action == "segment_free" || action == "segment_unmap") return unmapped(event);
    if (action == "oom") return out_of_memory(event);
    if (action == "snapshot") {
      snapshot_ns_ = event.ts_ns;
    } else {
      sink_.lose(trace::Loss::kInputIgnored, 1, "events of an unknown kind");
    }
  }

  // What the snapshot shows to be there and no event told of: allocated before the first event.
  void there_at_end(std::int64_t address, std::int64_t bytes, trace::OptionalId stack_id) {
    if (!first_ns_ || open_.contains(address)) return;
    ++older_;
    write("tensor", address, {*first_ns_, bytes, stack_id}, {});
  }

  void segment_at_end(std::int64_t address, std::int64_t bytes, trace::OptionalId stack_id) {
    if (!first_ns_) return;
    std::int64_t known = 0;
    auto at = segments_.upper_bound(address);
    if (at != segments_.begin()) --at;
    for (; at != segments_.end() && at->first < address + bytes; ++at) {
      known += std::max<std::int64_t>(
          0, std::min(address + bytes, at->first + at->second.bytes) - std::max(address, at->first));
    }
    if (known < bytes) write("segment", address, {*first_ns_, bytes - known, stack_id}, {});
  }

  // Writes what was never freed.
  void finish() {
    for (const auto& [address, open] : open_) write("tensor", address, open, {});
    for (const auto& [address, open] : segments_) write("segment", address, open, {});
  }

  std::optional<std::int64_t> first_ns() const { return first_ns_; }
  std::optional<std::int64_t> snapshot_ns() const { return snapshot_ns_; }
  std::int64_t older() const { return older_; }  // allocations from before the first event
  std::size_t held_bytes() const { return open_.size() * 72 + segments_.size() * 96; }

 private:
  struct Open {
    std::int64_t begin_ns = 0, bytes = 0;
    trace::OptionalId stack_id;
  };
  // Something begins at an address; what was open there has ended without being told.
  template <class Map>
  void begin(Map& open, std::string_view kind, const AllocatorEvent& event) {
    if (open.size() >= kMaxOpen)
      return sink_.lose(trace::Loss::kInputLimit, 1,
                        kind == "tensor" ? "allocations at the same time" : "segments at the same time");
    const Open begun{event.ts_ns, event.bytes, event.stack_id};
    const auto [place, added] = open.try_emplace(event.address, begun);
    if (added) return;
    sink_.lose(trace::Loss::kInputDamaged, 1,
               kind == "tensor" ? "allocations whose end is missing" : "segments whose end is missing");
    write(kind, event.address, place->second, event.ts_ns);
    place->second = begun;
  }

  void freed(const AllocatorEvent& event) {
    const auto found = open_.find(event.address);
    if (found == open_.end()) {
      ++older_;
      return write("tensor", event.address, {*first_ns_, event.bytes, {}}, event.ts_ns);
    }
    write("tensor", event.address, found->second, event.ts_ns);
    open_.erase(found);
  }

  // What is given back may be a part of what was taken, or several parts of it.
  void unmapped(const AllocatorEvent& event) {
    const std::int64_t begin = event.address, end = event.address + event.bytes;
    std::int64_t known = 0;
    auto at = segments_.upper_bound(begin);
    if (at != segments_.begin()) --at;
    while (at != segments_.end() && at->first < end) {
      const std::int64_t from = at->first, to = at->first + at->second.bytes;
      const Open whole = at->second;
      if (to <= begin) {
        ++at;
        continue;
      }
      at = segments_.erase(at);
      const std::int64_t cut_from = std::max(from, begin), cut_to = std::min(to, end);
      if (from < cut_from) segments_[from] = {whole.begin_ns, cut_from - from, whole.stack_id};
      if (to > cut_to) at = segments_.insert_or_assign(cut_to, Open{whole.begin_ns, to - cut_to, whole.stack_id}).first;
      write("segment", cut_from, {whole.begin_ns, cut_to - cut_from, whole.stack_id}, event.ts_ns);
      known += cut_to - cut_from;
      if (to > cut_to) break;
    }
    if (known < event.bytes) write("segment", begin, {*first_ns_, event.bytes - known, {}}, event.ts_ns);
  }

  void out_of_memory(const AllocatorEvent& event) {
    std::string text =
        fmt::format("PyTorch could not get {} of device memory", base::human_bytes(static_cast<double>(event.bytes)));
    if (event.device_free_bytes) {
      text +=
          fmt::format("; {} were free on the device", base::human_bytes(static_cast<double>(*event.device_free_bytes)));
    }
    sink_.note("out of memory", text, event.ts_ns);
  }

  void write(std::string_view kind, std::int64_t address, const Open& open, trace::OptionalInt end_ns) {
    if (end_ns && *end_ns < open.begin_ns)
      return sink_.lose(trace::Loss::kBadTime, 1, "allocations that end before they begin");
    sink_.add(trace::AllocationRow{.id = sink_.new_id(),
                                   .begin_ns = open.begin_ns,
                                   .end_ns = end_ns,
                                   .bytes = open.bytes,
                                   .address = address,
                                   .device_id = device_id_,
                                   .stack_id = open.stack_id,
                                   .kind = sink_.name(kind),
                                   .process_id = 0,  // the snapshot does not say
                                   .thread_id = {}});
  }

  Sink& sink_;
  trace::Id device_id_;
  std::optional<std::int64_t> first_ns_, snapshot_ns_;
  std::unordered_map<std::int64_t, Open> open_;
  std::map<std::int64_t, Open> segments_;  // disjoint, by address
  std::int64_t older_ = 0;
};

}  // namespace llmprof::importers
