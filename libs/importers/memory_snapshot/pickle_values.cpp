#include "importers/memory_snapshot/pickle_values.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "importers/text.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kKeptMembers = 256;       // of a place that is used again
constexpr std::size_t kTextOverheadBytes = 96;  // of the dictionary, per text
constexpr std::size_t kMemberBytes = 12;        // with what a vector reserves
constexpr std::size_t kKeysShown = 6;

}  // namespace

PickleValue PickleValue::integer(std::int64_t value) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 59) - 1;
  if (value > kMost || value < -kMost) return other();
  return PickleValue(Kind::kInt, static_cast<std::uint64_t>(value));
}

PickleValue PickleValue::real(double value) {
  PickleValue out;
  std::memcpy(&out.bits_, &value, sizeof value);
  out.bits_ = (out.bits_ & ~std::uint64_t{15}) | static_cast<std::uint64_t>(Kind::kFloat);
  return out;
}

double PickleValue::as_real() const {
  if (const auto whole = as_int()) return static_cast<double>(*whole);
  if (kind() != Kind::kFloat) return 0;
  const std::uint64_t bits = bits_ & ~std::uint64_t{15};
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

PickleValue PickleHeap::add_text(std::string_view text) {
  const std::size_t before = texts_.size();
  const trace::Name name = texts_.intern(text);
  if (texts_.size() != before) text_bytes_ += text.size() + kTextOverheadBytes;
  return PickleValue::text(name.id);
}

std::string_view PickleHeap::text(PickleValue value) const {
  return value.kind() == PickleValue::Kind::kText ? texts_.text({value.number()}) : std::string_view();
}

PickleValue PickleHeap::add(Type type) {
  std::uint32_t place = 0;
  if (unused_.empty()) {
    place = static_cast<std::uint32_t>(pool_.size());
    pool_.emplace_back();
  } else {
    place = unused_.back();
    unused_.pop_back();
  }
  objects_.push_back({.payload = place, .type = type});
  return PickleValue::object(static_cast<Id>(objects_.size() - 1));
}

std::uint64_t PickleHeap::expanded_size(PickleValue value) const {
  if (!value.is_object() || objects_[value.number()].type == Type::kRecord) return 1;
  return pool_[objects_[value.number()].payload].expanded;
}

std::optional<PickleValue> PickleHeap::find(Id dict, std::string_view key) const {
  if (objects_[dict].type != Type::kDict) return std::nullopt;
  const std::vector<PickleValue>& pairs = members(dict);
  for (std::size_t i = pairs.size(); i >= 2; i -= 2) {  // of equal keys the last counts
    if (pairs[i - 2].kind() == PickleValue::Kind::kText && text(pairs[i - 2]) == key) return pairs[i - 1];
  }
  return std::nullopt;
}

void PickleHeap::make_record(Id id, std::uint8_t record_type, std::uint32_t payload) {
  Object& object = objects_[id];
  Members& place = pool_[object.payload];
  members_held_ -= place.members.size();
  if (place.members.capacity() > kKeptMembers) place.members = {};
  place.members.clear();
  place.expanded = 1;
  unused_.push_back(object.payload);
  object.payload = payload;
  object.type = Type::kRecord;
  object.record_type = record_type;
}

const PickleHeap::Object* PickleHeap::record(PickleValue value, std::uint8_t record_type) const {
  if (!value.is_object()) return nullptr;
  const Object& object = objects_[value.number()];
  return object.type == Type::kRecord && object.record_type == record_type ? &object : nullptr;
}

std::size_t PickleHeap::held_bytes() const {
  return objects_.size() * sizeof(Object) + pool_.size() * sizeof(Members) + unused_.capacity() * 4 + text_bytes_ +
         members_held_ * kMemberBytes;
}

std::string PickleHeap::describe(PickleValue value) const {
  using Kind = PickleValue::Kind;
  switch (value.kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a bool";
    case Kind::kInt:
      return "an int";
    case Kind::kFloat:
      return "a float";
    case Kind::kText:
      return "a text";
    case Kind::kOther:
      return "bytes or a long number";
    case Kind::kObject:
      break;
  }
  const Object& object = objects_[value.number()];
  if (object.type == Type::kRecord) return "a part of a snapshot";
  const std::vector<PickleValue>& all = members(value.number());
  if (object.type != Type::kDict) {
    return fmt::format("a {} of {}", object.type == Type::kList ? "list" : "tuple", all.size());
  }
  std::string keys;
  for (std::size_t i = 0; i + 1 < all.size() && i < 2 * kKeysShown; i += 2) {
    std::string key = all[i].kind() == Kind::kText ? to_utf8(text(all[i])) : "(no text)";
    if (key.size() > 40) key = "(a long text)";
    keys += (keys.empty() ? "" : ", ") + key;
  }
  if (all.size() > 2 * kKeysShown) keys += ", …";
  return all.empty() ? "an empty dict" : fmt::format("a dict with the keys {}", keys);
}

}  // namespace llmprof::importers
