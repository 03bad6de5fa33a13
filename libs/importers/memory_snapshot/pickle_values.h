#pragma once
// What a pickle builds: plain values, and containers in a heap that does not grow with what is only looked at.
// A container is *sealed* when something else first uses it; nothing may be added from then on, so no container can
// come to contain itself. A dictionary that was recognised as a record (pickle_reader.h) gives its members back.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/strings.h"

namespace llmprof::importers {

// 8 bytes: what it is in the low 4 bits, the rest above them.
class PickleValue {
 public:
  enum class Kind : std::uint8_t { kNone, kBool, kInt, kFloat, kText, kOther, kObject };

  PickleValue() = default;
  static PickleValue boolean(bool value) { return PickleValue(Kind::kBool, value ? 1 : 0); }
  static PickleValue text(std::uint32_t number) { return PickleValue(Kind::kText, number); }
  static PickleValue object(std::uint32_t number) { return PickleValue(Kind::kObject, number); }
  static PickleValue other() { return PickleValue(Kind::kOther, 0); }  // bytes, and integers that do not fit
  static PickleValue integer(std::int64_t value);
  static PickleValue real(double value);  // loses the last 4 bits of 53

  Kind kind() const { return static_cast<Kind>(bits_ & 15); }
  bool is_object() const { return kind() == Kind::kObject; }
  std::uint32_t number() const { return static_cast<std::uint32_t>(bits_ >> 4); }
  bool as_bool() const { return bits_ >> 4 != 0; }
  std::optional<std::int64_t> as_int() const {  // of a bool, too
    if (kind() != Kind::kInt && kind() != Kind::kBool) return std::nullopt;
    return static_cast<std::int64_t>(bits_) >> 4;
  }
  double as_real() const;

 private:
  PickleValue(Kind kind, std::uint64_t payload) : bits_(payload << 4 | static_cast<std::uint64_t>(kind)) {}
  std::uint64_t bits_ = 0;
};

class PickleHeap {
 public:
  using Id = std::uint32_t;
  enum class Type : std::uint8_t { kList, kTuple, kDict, kRecord };
  struct Object {
    std::uint32_t payload = 0;  // kRecord: whatever the record is; else the place of the members
    Type type = Type::kList;
    std::uint8_t record_type = 0;
    std::uint8_t depth = 0;  // levels of containers inside
    bool sealed = false;
  };
  static_assert(sizeof(Object) == 8);

  PickleValue add_text(std::string_view text);
  std::string_view text(PickleValue value) const;  // "" if it is none
  PickleValue add(Type type);
  Object& object(Id id) { return objects_[id]; }
  const Object& object(Id id) const { return objects_[id]; }
  void push(Id id, PickleValue member) {
    pool_[objects_[id].payload].members.push_back(member);
    ++members_held_;
  }
  const std::vector<PickleValue>& members(Id id) const { return pool_[objects_[id].payload].members; }
  // How many values it would be if nothing were shared. A record counts as one.
  std::uint64_t& expanded(Id id) { return pool_[objects_[id].payload].expanded; }
  std::uint64_t expanded_size(PickleValue value) const;
  // The value of a key in a dictionary.
  std::optional<PickleValue> find(Id dict, std::string_view key) const;
  // Gives the members back; the object stays what it was made to.
  void make_record(Id id, std::uint8_t record_type, std::uint32_t payload);
  const Object* record(PickleValue value, std::uint8_t record_type) const;  // nullptr: it is none of this type

  std::size_t objects() const { return objects_.size(); }
  std::size_t held_bytes() const;
  std::string describe(PickleValue value) const;  // "a dict with the keys a, b": for messages

 private:
  struct Members {
    std::vector<PickleValue> members;
    std::uint64_t expanded = 1;
  };
  std::deque<Object> objects_;
  std::deque<Members> pool_;
  std::vector<std::uint32_t> unused_;  // of pool_
  trace::Strings texts_;
  std::size_t text_bytes_ = 0, members_held_ = 0;
};

}  // namespace llmprof::importers
