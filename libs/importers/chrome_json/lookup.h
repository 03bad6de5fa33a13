#pragma once
// Tables that millions of events are looked up in: names by their text, values by the numbers of a file.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "importers/chrome_json/event.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

// Texts of events to names. The same few come again and again: the latest are found without the sink's dictionary.
class Names {
 public:
  explicit Names(Sink& sink) : sink_(sink), slots_(kSlots) {}
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  // "" is NULL.
  trace::Name operator()(std::string_view text) {
    if (text.empty()) return {};
    Slot& slot = slots_[place_of(text)];
    if (slot.text == text) return slot.name;
    const trace::Name name = sink_.name(text);
    slot = {sink_.names().text(name), name};
    return name;
  }
  std::string_view text(trace::Name name) const { return sink_.names().text(name); }

 private:
  static constexpr std::size_t kSlots = 1 << 13;
  struct Slot {
    std::string_view text;
    trace::Name name;
  };
  static std::uint64_t eight(const char* at) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, sizeof bytes);
    return bytes;
  }
  // A few places of a text are enough: who has the same ones shares a slot.
  static std::size_t place_of(std::string_view text) {
    std::uint64_t mixed = text.size() * 0x9E3779B97F4A7C15U;
    if (text.size() >= 8) {
      mixed ^= eight(text.data()) * 0xBF58476D1CE4E5B9U;
      mixed = (mixed ^ (mixed >> 29)) + eight(text.data() + text.size() / 2 - 4);
      mixed *= 0x94D049BB133111EBU;
      mixed = (mixed ^ (mixed >> 32)) + eight(text.data() + text.size() - 8);
    } else {
      for (const char c : text) mixed = (mixed + static_cast<unsigned char>(c)) * 0x100000001B3U;
    }
    mixed *= 0x9E3779B97F4A7C15U;
    return static_cast<std::size_t>(mixed >> 51);
  }

  Sink& sink_;
  std::vector<Slot> slots_;
};

// Numbers of a file (correlations, External ids) to what is known about them. Open addressing: such tables hold
// millions of small values. It holds at most `most`; what comes then is for the caller to count.
template <class Value>
class IdMap {
 public:
  explicit IdMap(std::size_t most) : most_(most), slots_(kFirstSlots) {}

  std::size_t size() const { return size_; }
  bool full() const { return size_ >= most_; }

  Value* find(std::int64_t key) {
    if (key == kUnknown) return nullptr;
    const std::size_t at = place_of(key);
    return slots_[at].key == key ? &slots_[at].value : nullptr;
  }

  // The value of `key`, which is `fresh` if there was none; nullptr if there was none and the table is full.
  Value* insert(std::int64_t key, const Value& fresh) {
    if (key == kUnknown) return nullptr;
    std::size_t at = place_of(key);
    if (slots_[at].key == key) return &slots_[at].value;
    if (full()) return nullptr;
    if ((size_ + 1) * 4 > slots_.size() * 3) {
      grow();
      at = place_of(key);
    }
    slots_[at] = {key, fresh};
    ++size_;
    return &slots_[at].value;
  }

  void erase(std::int64_t key) {
    if (key == kUnknown) return;
    std::size_t hole = place_of(key);
    if (slots_[hole].key != key) return;
    --size_;
    // What stands behind and could not stand earlier only because of the hole moves up.
    for (std::size_t next = following(hole); slots_[next].key != kUnknown; next = following(next)) {
      const std::size_t home = home_of(slots_[next].key);
      const bool stays = hole <= next ? (hole < home && home <= next) : (hole < home || home <= next);
      if (stays) continue;
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole].key = kUnknown;
  }

  template <class Visit>
  void each(Visit visit) {
    for (Slot& slot : slots_) {
      if (slot.key != kUnknown) visit(slot.key, slot.value);
    }
  }

 private:
  static constexpr std::size_t kFirstSlots = 64;
  struct Slot {
    std::int64_t key = kUnknown;
    Value value{};
  };

  // Where the table stands in memory is not known to who wrote the file, nor then which keys collide.
  std::size_t home_of(std::int64_t key) const {
    std::uint64_t mixed = static_cast<std::uint64_t>(key) + reinterpret_cast<std::uintptr_t>(this);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    return static_cast<std::size_t>(mixed ^ (mixed >> 31)) & (slots_.size() - 1);
  }
  std::size_t following(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
  std::size_t place_of(std::int64_t key) const {
    std::size_t at = home_of(key);
    while (slots_[at].key != key && slots_[at].key != kUnknown) at = following(at);
    return at;
  }
  void grow() {
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (Slot& slot : before) {
      if (slot.key != kUnknown) slots_[place_of(slot.key)] = std::move(slot);
    }
  }

  std::size_t most_, size_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace llmprof::importers::chrome_json
