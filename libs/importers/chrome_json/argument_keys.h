#pragma once
// The members of "args" that are known by name, and where they go. Everything else is left to Arguments::raw.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "importers/chrome_json/event.h"

namespace llmprof::importers::chrome_json {

struct ArgumentKey {
  enum class Kind : std::uint8_t { kNone, kInteger, kTriple, kText, kRaw };

  constexpr ArgumentKey() = default;
  constexpr ArgumentKey(std::string_view key, std::int64_t Arguments::*field)
      : text(key), kind(Kind::kInteger), integer(field) {}
  constexpr ArgumentKey(std::string_view key, std::array<std::int64_t, 3> Arguments::*field)
      : text(key), kind(Kind::kTriple), triple(field) {}
  constexpr ArgumentKey(std::string_view key, std::string_view Arguments::*field, Kind k = Kind::kText)
      : text(key), kind(k), view(field) {}

  std::string_view text;
  Kind kind = Kind::kNone;
  std::int64_t Arguments::*integer = nullptr;
  std::array<std::int64_t, 3> Arguments::*triple = nullptr;
  std::string_view Arguments::*view = nullptr;
};

inline constexpr auto kRawJson = ArgumentKey::Kind::kRaw;
inline constexpr ArgumentKey kArgumentKeys[] = {
    {"External id", &Arguments::external_id},
    {"correlation", &Arguments::correlation},
    {"device", &Arguments::device},
    {"Device Id", &Arguments::device},
    {"context", &Arguments::context},
    {"stream", &Arguments::stream},
    {"grid", &Arguments::grid},
    {"block", &Arguments::block},
    {"registers per thread", &Arguments::registers},
    {"shared memory", &Arguments::shared_bytes},
    {"bytes", &Arguments::bytes},
    {"Bytes", &Arguments::bytes},
    {"graph node id", &Arguments::graph_node_id},
    {"graph id", &Arguments::graph_id},
    {"Python id", &Arguments::python_id},
    {"Python parent id", &Arguments::python_parent_id},
    {"Python module id", &Arguments::python_module_id},
    {"Sequence number", &Arguments::sequence},
    {"Fwd thread id", &Arguments::forward_thread},
    {"Addr", &Arguments::address},
    {"Total Allocated", &Arguments::total_allocated},
    {"Total Reserved", &Arguments::total_reserved},
    {"Device Type", &Arguments::device_type},
    {"Input Dims", &Arguments::dims, kRawJson},
    {"Input dims", &Arguments::dims, kRawJson},  // until PyTorch 2.0
    {"Input type", &Arguments::types, kRawJson},
    {"Concrete Inputs", &Arguments::concrete, kRawJson},
    {"Input Strides", &Arguments::strides, kRawJson},
    {"name", &Arguments::name},
    {"labels", &Arguments::labels},
    {"sort_index", &Arguments::sort_index},
    {"Collective name", &Arguments::collective},
    {"Process Group Name", &Arguments::process_group},
    {"Process Group Description", &Arguments::group_description},
    {"Process Group Ranks", &Arguments::group_ranks},
    {"dtype", &Arguments::dtype},
    {"In msg nelems", &Arguments::in_elements},
    {"Out msg nelems", &Arguments::out_elements},
    {"Group size", &Arguments::group_size},
};

// An open-addressed table, made by the compiler.
class ArgumentTable {
 public:
  constexpr ArgumentTable() {
    for (const ArgumentKey& key : kArgumentKeys) {
      std::size_t slot = slot_of(key.text);
      while (slots_[slot].kind != ArgumentKey::Kind::kNone) slot = (slot + 1) % kSlots;
      slots_[slot] = key;
    }
  }
  const ArgumentKey* find(std::string_view text) const {
    if (text.empty()) return nullptr;
    for (std::size_t slot = slot_of(text);; slot = (slot + 1) % kSlots) {
      const ArgumentKey& key = slots_[slot];
      if (key.kind == ArgumentKey::Kind::kNone) return nullptr;
      if (key.text.size() == text.size() && std::memcmp(key.text.data(), text.data(), text.size()) == 0) return &key;
    }
  }

 private:
  static constexpr std::size_t kSlots = 256;
  static_assert(std::size(kArgumentKeys) < kSlots / 2);
  static constexpr std::size_t slot_of(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(text[i])); };
    return (at(0) * 7 + at(text.size() / 2) * 13 + at(text.size() - 1) * 31 + text.size() * 5) % kSlots;
  }
  std::array<ArgumentKey, kSlots> slots_{};
};

inline constexpr ArgumentTable kArgumentTable;

}  // namespace llmprof::importers::chrome_json
