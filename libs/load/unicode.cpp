#include "load/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "base/strings.h"

namespace llmprof::load {
namespace {

struct Composition {
  char32_t code, first, second;
  bool composes;
};
#include "load/unicode_tables.inc"

// Hangul syllables are composed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;

template <std::size_t kBits, std::size_t kCount>
std::uint32_t value_at(const std::uint32_t (&table)[kCount], char32_t code) {
  const auto after = std::upper_bound(std::begin(table), std::end(table), (code << kBits) | ((1u << kBits) - 1));
  return after == std::begin(table) ? 0 : *(after - 1) & ((1u << kBits) - 1);
}

std::uint32_t combining_class(char32_t code) { return code < 0x300 ? 0 : value_at<8>(kCombining, code); }

// Chains are short: a code's first part may itself be composed, its second never is.
void decompose(char32_t code, std::u32string& out) {
  if (code >= kSyllables && code < kSyllables + kLeadCount * kVowelCount * kTailCount) {
    const char32_t index = code - kSyllables;
    out += {kLeads + index / (kVowelCount * kTailCount), kVowels + index / kTailCount % kVowelCount};
    if (index % kTailCount != 0) out += kTails + index % kTailCount;
    return;
  }
  std::u32string behind;
  for (;;) {
    const auto found = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), code,
                                        [](const Composition& each, char32_t value) { return each.code < value; });
    if (found == std::end(kCompositions) || found->code != code) break;
    if (found->second != 0) behind += found->second;
    code = found->first;
  }
  out += code;
  out.append(behind.rbegin(), behind.rend());
}

// 0: they do not compose.
char32_t compose(char32_t first, char32_t second) {
  static const auto* const pairs = [] {
    auto* map = new std::map<std::pair<char32_t, char32_t>, char32_t>;
    for (const Composition& each : kCompositions) {
      if (each.composes) map->emplace(std::pair(each.first, each.second), each.code);
    }
    return map;
  }();
  if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels && second < kVowels + kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
  if (first >= kSyllables && first < kSyllables + kLeadCount * kVowelCount * kTailCount &&
      (first - kSyllables) % kTailCount == 0 && second > kTails && second < kTails + kTailCount)
    return first + (second - kTails);
  const auto found = pairs->find({first, second});
  return found == pairs->end() ? 0 : found->second;
}

void order_marks(std::u32string& text) {
  for (std::size_t i = 0; i < text.size();) {
    if (combining_class(text[i]) == 0) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

}  // namespace

std::uint32_t category(char32_t code) { return code >= 0x110000 ? 0 : 1u << value_at<5>(kClasses, code); }

std::uint32_t categories_named(std::string_view name) {
  constexpr std::string_view kNames = "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";
  if (name.empty() || name.size() > 2) return 0;
  std::uint32_t found = 0;
  for (std::size_t i = 0; 2 * i < kNames.size(); ++i) {
    if (kNames.substr(2 * i, name.size()) == name) found |= 1u << i;
  }
  return found;
}

bool is_white_space(char32_t code) {
  return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t bytes = first == 0 ? 1 : base::utf8_bytes(text);
    char32_t code = bytes == 1 ? first : bytes == 2 ? first & 0x1F : bytes == 3 ? first & 0xF : first & 7;
    for (std::size_t i = 1; i < bytes; ++i) code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3F);
    out += bytes == 0 ? U'\uFFFD' : code;
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

void append_utf8(char32_t code, std::string& out) {
  const auto byte = [&](char32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F)),
        byte(0x80 | (code & 0x3F));
  }
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t code : text) append_utf8(code, out);
  return out;
}

std::string composed(std::string_view text) {
  const auto plain = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::u32string parts;
  for (const char32_t code : decode_utf8(text)) decompose(code, parts);
  order_marks(parts);
  std::u32string out;
  std::size_t starter = std::u32string::npos;  // in out
  std::uint32_t before = 0;                    // the class of what stands between it and the next
  for (const char32_t code : parts) {
    const std::uint32_t own = combining_class(code);
    const bool adjacent = starter != std::u32string::npos && starter + 1 == out.size();
    if (starter != std::u32string::npos && (adjacent || before < own)) {
      if (const char32_t both = compose(out[starter], code); both != 0) {
        out[starter] = both;
        continue;
      }
    }
    if (own == 0) starter = out.size();
    before = own;
    out += code;
  }
  return encode_utf8(out);
}

}  // namespace llmprof::load
