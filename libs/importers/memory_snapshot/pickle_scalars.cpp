// The opcodes of a pickle that push one plain value.
#include <fmt/format.h>

#include <cstring>

#include "importers/memory_snapshot/pickle_code.h"
#include "importers/memory_snapshot/pickle_reader.h"

namespace llmprof::importers {
namespace {

double big_endian_double(const char* bytes) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<unsigned char>(bytes[i]);
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

Result<void> PickleReader::scalar(unsigned char code) {
  const auto integer = [&](std::size_t bytes) -> Result<void> {
    LLMPROF_LET(const std::uint64_t value, length(bytes));
    const auto signed_value =
        bytes == 4 ? static_cast<std::int64_t>(static_cast<std::int32_t>(value)) : static_cast<std::int64_t>(value);
    stack_.push_back(Value::integer(signed_value));
    return {};
  };
  switch (code) {
    case 'N':
      stack_.emplace_back();
      return {};
    case 0x88:
    case 0x89:
      stack_.push_back(Value::boolean(code == 0x88));
      return {};
    case 'J':
      return integer(4);
    case 'K':
      return integer(1);
    case 'M':
      return integer(2);
    case 'G': {
      const char* bytes = bytes_.take(8);
      if (bytes == nullptr) return bytes_.error();
      stack_.push_back(Value::real(big_endian_double(bytes)));
      return {};
    }
    default:
      break;  // LONG1, LONG4
  }
  LLMPROF_LET(const std::uint64_t bytes, length(code == 0x8a ? 1 : 4));
  return push_long(bytes);
}

// Two's complement, little endian.
Result<void> PickleReader::push_long(std::uint64_t bytes) {
  const char* text = bytes_.take(bytes);
  if (text == nullptr) return bytes_.error();
  if (bytes > 8) {
    stack_.push_back(Value::other());
    return {};
  }
  std::uint64_t value = little_endian({text, static_cast<std::size_t>(bytes)});
  if (bytes > 0 && bytes < 8 && (static_cast<unsigned char>(text[bytes - 1]) & 0x80) != 0) {
    value |= ~std::uint64_t{0} << (8 * bytes);
  }
  stack_.push_back(Value::integer(static_cast<std::int64_t>(value)));
  return {};
}

Result<void> PickleReader::text_number(unsigned char code) {
  std::string_view digits;
  if (!bytes_.line(digits)) return bytes_.error();
  if (code == 'I' && (digits == "00" || digits == "01")) {
    stack_.push_back(Value::boolean(digits == "01"));
    return {};
  }
  if (code == 'F') {
    const auto value = real_number(digits);
    if (!value) return corrupt("a float that is no number");
    stack_.push_back(Value::real(*value));
    return {};
  }
  if (code == 'L' && digits.ends_with('L')) digits.remove_suffix(1);
  if (digits.find_first_not_of("-0123456789") != std::string_view::npos || digits.empty()) {
    return corrupt("an int that is no number");
  }
  const auto value = whole_number(digits);
  stack_.push_back(value ? Value::integer(*value) : Value::other());
  return {};
}

Result<void> PickleReader::text(unsigned char code) {
  const auto sized = [&](std::size_t length_bytes, bool is_text) -> Result<void> {
    LLMPROF_LET(const std::uint64_t bytes, length(length_bytes));
    return push_bytes(bytes, is_text);
  };
  switch (code) {
    case 0x8c:
    case 'U':
      return sized(1, true);
    case 'X':
    case 'T':
      return sized(4, true);
    case 0x8d:
      return sized(8, true);
    case 'C':
      return sized(1, false);
    case 'B':
      return sized(4, false);
    case 0x8e:
    case 0x96:
      return sized(8, false);
    default:
      break;
  }
  std::string_view line;
  if (!bytes_.line(line)) return bytes_.error();
  if (code == 'S') {
    while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() < 2 || line.front() != line.back() || (line.front() != '\'' && line.front() != '"')) {
      return corrupt("a text without quotes");
    }
    line = line.substr(1, line.size() - 2);
  }
  stack_.push_back(heap_.add_text(unescaped(line.substr(0, Sink::kMaxNameBytes), code == 'S')));
  return {};
}

Result<void> PickleReader::push_bytes(std::uint64_t bytes, bool text) {
  const char* begin = bytes_.take(bytes);
  if (begin == nullptr) return bytes_.error();
  // Longer texts are cut where they become names; nothing of a snapshot is as long.
  const std::size_t kept = std::min<std::size_t>(static_cast<std::size_t>(bytes), Sink::kMaxNameBytes);
  stack_.push_back(text ? heap_.add_text({begin, kept}) : Value::other());
  return {};
}

}  // namespace llmprof::importers
