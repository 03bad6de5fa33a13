#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "importers/memory_snapshot/pickle.h"
#include "importers/text.h"

namespace llmprof::importers {
namespace {

constexpr std::size_t kKeptMembers = 256;       // of a place that is used again
constexpr std::size_t kTextOverheadBytes = 96;  // of the dictionary, per text
constexpr std::size_t kMemberBytes = 12;        // with what a vector reserves
constexpr std::size_t kKeysShown = 6;

// Hexadecimal digits after \x, \u, \U: how many there have to be.
std::size_t digits_after(char letter) { return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0; }

char plain_escape(char letter) {
  constexpr std::string_view kLetters = "nrt\\'\"", kMeanings = "\n\r\t\\'\"";
  const std::size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? '\0' : kMeanings[at];
}

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
  constexpr std::string_view kPlain[] = {"None", "a bool", "an int", "a float", "a text", "bytes or a long number"};
  if (value.kind() != Kind::kObject) return std::string(kPlain[static_cast<std::size_t>(value.kind())]);
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

std::string unescaped(std::string_view text, bool quoted) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    const std::size_t digits = escape ? digits_after(text[i + 1]) : 0;
    std::uint32_t point = 0;
    if (digits > 0 && i + 2 + digits <= text.size() && (quoted || text[i + 1] != 'x')) {
      const char* begin = text.data() + i + 2;
      if (std::from_chars(begin, begin + digits, point, 16).ptr == begin + digits) {
        append_utf8(out, point);
        i += 1 + digits;
        continue;
      }
    }
    if (escape && quoted && plain_escape(text[i + 1]) != 0) {
      out += plain_escape(text[++i]);
    } else if (!quoted && static_cast<unsigned char>(text[i]) >= 0x80) {
      append_utf8(out, static_cast<unsigned char>(text[i]));  // raw-unicode-escape writes Latin-1
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out = to_utf8(text.substr(0, kMost));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

}  // namespace llmprof::importers
