#include "importers/memory_snapshot/snapshot_fields.h"

namespace llmprof::importers {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Key::kCount)> kTexts{
    "action",         "addr",          "address",  "active_size", "allocated_size", "blocks", "device",
    "device_free",    "is_expandable", "filename", "frames",      "line",           "name",   "segment_pool_id",
    "requested_size", "segment_type",  "size",     "stage",       "state",          "stream", "time_us",
    "total_size"};

}  // namespace

// Texts are numbered by the heap; what a number means is found once.
Key SnapshotFields::key_of(const PickleHeap& heap, PickleValue text) {
  constexpr std::size_t kMostKnown = 1 << 16;  // keys come early
  const std::size_t number = text.number();
  if (number < known_.size() && known_[number] != Key::kCount) return known_[number];
  Key key = Key::kOther;
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (heap.text(text) == kTexts[i]) key = static_cast<Key>(i);
  }
  if (number < kMostKnown) {
    if (known_.size() <= number) known_.resize(number + 1, Key::kCount);
    known_[number] = key;
  }
  return key;
}

void SnapshotFields::read(const PickleHeap& heap, PickleHeap::Id dict) {
  values_.fill(std::nullopt);
  const std::vector<PickleValue>& pairs = heap.members(dict);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind() != PickleValue::Kind::kText) continue;
    const Key key = key_of(heap, pairs[i]);
    if (key != Key::kOther) values_[at(key)] = pairs[i + 1];
  }
}

}  // namespace llmprof::importers
