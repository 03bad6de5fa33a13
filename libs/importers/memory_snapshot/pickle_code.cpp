#include "importers/memory_snapshot/pickle_code.h"

#include <charconv>
#include <cmath>

#include "importers/text.h"

namespace llmprof::importers {
namespace {

struct Refused {
  unsigned char code;
  std::string_view name;
};
constexpr Refused kRefused[] = {
    {'c', "GLOBAL"}, {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},     {'b', "BUILD"},        {'i', "INST"},
    {'o', "OBJ"},    {0x81, "NEWOBJ"},       {0x92, "NEWOBJ_EX"}, {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},  {'P', "PERSID"},        {'Q', "BINPERSID"},  {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

constexpr std::array<CodeKind, 256> make_kinds() {
  std::array<CodeKind, 256> kinds{};
  const auto set = [&](std::initializer_list<unsigned char> codes, CodeKind kind) {
    for (const unsigned char code : codes) kinds[code] = kind;
  };
  set({0x80}, CodeKind::kProtocol);
  set({0x95}, CodeKind::kFrame);
  set({'N', 0x88, 0x89, 'J', 'K', 'M', 'G', 0x8a, 0x8b}, CodeKind::kScalar);
  set({'I', 'L', 'F'}, CodeKind::kTextNumber);
  set({'S', 'V', 'T', 'U', 'X', 0x8c, 0x8d, 'B', 'C', 0x8e, 0x96}, CodeKind::kText);
  set({'(', '0', '1', '2', ']', '}', ')', 'a', 's', 'e', 'u', 'l', 'd', 't', 0x85, 0x86, 0x87, 0x8f, 0x90, 0x91},
      CodeKind::kContainer);
  set({0x94, 'q', 'r', 'h', 'j', 'p', 'g'}, CodeKind::kMemo);
  for (const Refused& refused : kRefused) kinds[refused.code] = CodeKind::kRefused;
  return kinds;
}
constexpr std::array<CodeKind, 256> kKinds = make_kinds();

void append_utf8(std::string& out, std::uint32_t point) {
  if (point >= 0x110000 || (point >= 0xd800 && point < 0xe000)) point = 0xfffd;
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    out += static_cast<char>(0x80 | (point & 63));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    out += static_cast<char>(0x80 | (point >> 6 & 63));
    out += static_cast<char>(0x80 | (point & 63));
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    out += static_cast<char>(0x80 | (point >> 12 & 63));
    out += static_cast<char>(0x80 | (point >> 6 & 63));
    out += static_cast<char>(0x80 | (point & 63));
  }
}

// Hexadecimal digits after \x, \u, \U: how many there have to be.
std::size_t digits_after(char letter) { return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0; }

char plain_escape(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case '\\':
    case '\'':
    case '"':
      return letter;
    default:
      return 0;
  }
}

}  // namespace

CodeKind kind_of(unsigned char code) { return kKinds[code]; }

std::string_view name_of_code(unsigned char code) {
  for (const Refused& refused : kRefused) {
    if (refused.code == code) return refused.name;
  }
  return "an unknown opcode";
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::optional<std::int64_t> whole_number(std::string_view digits) {
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

std::optional<double> real_number(std::string_view digits) {
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return value;
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
