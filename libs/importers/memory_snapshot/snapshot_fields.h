#pragma once
// The keys that the dictionaries of a snapshot have, and one dictionary by them.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "importers/memory_snapshot/pickle_values.h"

namespace llmprof::importers {

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

}  // namespace llmprof::importers
