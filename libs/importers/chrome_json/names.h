#pragma once
// Texts of events to names. The same few come again and again: the latest are found without the sink's dictionary.

#include <cstring>
#include <string_view>
#include <vector>

#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

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

}  // namespace llmprof::importers::chrome_json
