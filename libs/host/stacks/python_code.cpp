#include "host/stacks/python_code.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "host/stacks/byte_reader.h"

namespace llmprof::host {
namespace {

// The same in both versions: PyObject, PyVarObject, PyTypeObject, PyBytesObject, PyASCIIObject.
constexpr std::uint32_t kObjectType = 8, kVarSize = 16, kTypeName = 24, kBytesData = 32;
constexpr std::uint32_t kTextLength = 16, kTextState = 32;
constexpr std::uint32_t kStateKindShift = 2, kStateCompact = 0x20, kStateAscii = 0x40;

constexpr std::size_t kMaxCodes = 32768;
constexpr std::size_t kMaxTextBytes = 1024, kMaxLineBytes = 1 << 20;
constexpr std::uint64_t kMaxUnits = 1 << 24;

void append_utf8(std::string& out, std::uint32_t letter) {
  if (letter < 0x80) {
    out += static_cast<char>(letter);
  } else if (letter < 0x800) {
    out += static_cast<char>(0xc0 | letter >> 6);
    out += static_cast<char>(0x80 | (letter & 0x3f));
  } else if (letter < 0x10000) {
    out += static_cast<char>(0xe0 | letter >> 12);
    out += static_cast<char>(0x80 | (letter >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (letter & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (letter >> 18 & 7));
    out += static_cast<char>(0x80 | (letter >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (letter >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (letter & 0x3f));
  }
}

std::uint32_t six_bits(ByteReader& reader) {
  std::uint32_t value = 0;
  for (unsigned shift = 0;; shift += 6) {
    const auto byte = reader.fixed<std::uint8_t>();
    if (shift < 32) value |= static_cast<std::uint32_t>(byte & 0x3f) << shift;
    if ((byte & 0x40) == 0) return value;
  }
}

std::int32_t signed_six_bits(ByteReader& reader) {
  const std::uint32_t value = six_bits(reader);
  const auto half = static_cast<std::int32_t>(value >> 1);
  return (value & 1) != 0 ? -half : half;
}

}  // namespace

// Each entry: a byte with its form and how many code units it covers, then what the form needs.
std::int32_t line_in_table(const std::vector<std::uint8_t>& table, std::int32_t first_line, std::uint64_t unit) {
  ByteReader reader(table);
  std::int64_t line = first_line;
  std::uint64_t end = 0;
  while (reader.ok() && reader.left() > 0) {
    const auto head = reader.fixed<std::uint8_t>();
    if ((head & 0x80) == 0) break;  // not the begin of an entry
    const unsigned form = head >> 3 & 15;
    end += (head & 7u) + 1;
    bool has_line = true;
    if (form == 15) {
      has_line = false;
    } else if (form == 14) {
      line += signed_six_bits(reader);
      for (int i = 0; i < 3; ++i) six_bits(reader);
    } else if (form == 13) {
      line += signed_six_bits(reader);
    } else if (form >= 10) {
      line += form - 10;
      reader.block(2);
    } else {
      reader.block(1);
    }
    if (!reader.ok()) break;
    if (unit < end) return has_line && line > 0 && line <= INT32_MAX ? static_cast<std::int32_t>(line) : first_line;
  }
  return first_line;
}

std::uint32_t PythonCode::line_of(std::uint64_t instruction) const {
  const std::uint64_t unit = contains(instruction) ? (instruction - first_instruction) / 2 : 0;
  const std::int32_t line = contains(instruction) ? line_in_table(lines, first_line, unit) : first_line;
  return static_cast<std::uint32_t>(std::max(0, line));
}

std::string PythonCodes::text(std::uint64_t object) {
  std::uint64_t length = 0;
  std::uint32_t state = 0;
  if (!memory_.read(object + kTextLength, &length, sizeof length) ||
      !memory_.read(object + kTextState, &state, sizeof state))
    return "";
  const unsigned kind = state >> kStateKindShift & 7;
  if ((state & kStateCompact) == 0 || (kind != 1 && kind != 2 && kind != 4)) return "";
  length = std::min<std::uint64_t>(length, kMaxTextBytes);
  const bool ascii = (state & kStateAscii) != 0;
  std::vector<std::uint8_t> bytes(length * kind);
  if (!memory_.read(object + (ascii ? layout_.text_of_ascii : layout_.text_of_others), bytes.data(), bytes.size()))
    return "";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += kind) {
    std::uint32_t letter = 0;
    std::memcpy(&letter, bytes.data() + i, kind);
    append_utf8(out, letter);
  }
  return out;
}

bool PythonCodes::is_code(std::uint64_t type) {
  if (type == 0) return false;
  if (code_type_ != 0) return type == code_type_;
  const auto name = memory_.value<std::uint64_t>(type + kTypeName);
  if (!name || memory_.text(*name, 16) != "code") return false;
  code_type_ = type;
  return true;
}

// A code object's strings and lines never change: only what tells it from another is read again.
const PythonCode* PythonCodes::at(std::uint64_t address) {
  const auto type = memory_.value<std::uint64_t>(address + kObjectType);
  if (!type || !is_code(*type)) return nullptr;
  const auto name = memory_.value<std::uint64_t>(address + layout_.code_name);
  const auto file = memory_.value<std::uint64_t>(address + layout_.code_file);
  const auto lines = memory_.value<std::uint64_t>(address + layout_.code_lines);
  const auto first = memory_.value<std::int32_t>(address + layout_.code_first_line);
  if (!name || !file || !lines || !first) return nullptr;
  const auto known = codes_.find(address);
  if (known != codes_.end()) {
    const PythonCode& code = known->second;
    if (code.name_object == *name && code.file_object == *file && code.lines_object == *lines &&
        code.first_line == *first)
      return &code;
    codes_.erase(known);
  }
  if (codes_.size() >= kMaxCodes) codes_.clear();
  std::optional<PythonCode> code = read(address);
  if (!code) return nullptr;
  code->name_object = *name;
  code->file_object = *file;
  code->lines_object = *lines;
  code->first_line = *first;
  code->name = text(*name);
  code->file = text(*file);
  if (code->name.empty()) return nullptr;
  return &codes_.emplace(address, std::move(*code)).first->second;
}

const PythonCode* PythonCodes::containing(std::uint64_t instruction) const {
  auto after = codes_.upper_bound(instruction);
  if (after == codes_.begin()) return nullptr;
  const PythonCode& code = std::prev(after)->second;
  return code.contains(instruction) ? &code : nullptr;
}

std::optional<PythonCode> PythonCodes::read(std::uint64_t address) {
  PythonCode code;
  const auto units = memory_.value<std::uint64_t>(address + kVarSize);
  const auto lines = memory_.value<std::uint64_t>(address + layout_.code_lines);
  if (!units || *units > kMaxUnits || !lines) return std::nullopt;
  code.address = address;
  code.first_instruction = address + layout_.code_instructions;
  code.end_instruction = code.first_instruction + 2 * *units;
  const auto bytes = memory_.value<std::uint64_t>(*lines + kVarSize);
  if (!bytes || *bytes > kMaxLineBytes) return std::nullopt;
  code.lines.resize(*bytes);
  if (!memory_.read(*lines + kBytesData, code.lines.data(), code.lines.size())) return std::nullopt;
  return code;
}

}  // namespace llmprof::host
