#pragma once
// Texts as code points, what class each is of, and canonical composition: with the tables of Unicode that Hugging
// Face's `tokenizers` has built in (unicode_tables.inc).

#include <cstdint>
#include <string>
#include <string_view>

namespace llmprof::load {

// General categories, in the order of the table, as bits: sets of them are sums.
enum Category : std::uint32_t {
  kLu = 1u << 0,
  kLl = 1u << 1,
  kLt = 1u << 2,
  kLm = 1u << 3,
  kLo = 1u << 4,
  kLetters = 0x1F,
  kMarks = 0x7u << 5,  // Mn Mc Me
  kNd = 1u << 8,
  kNumbers = 0x7u << 8,        // Nd Nl No
  kPunctuation = 0x7Fu << 11,  // Pc Pd Ps Pe Pi Pf Po
  kSymbols = 0xFu << 18,       // Sm Sc Sk So
  kSeparators = 0x7u << 22,    // Zs Zl Zp
  kOthers = 0x1Fu << 25,       // Cc Cf Cs Co Cn
};
std::uint32_t category(char32_t code);
// The categories of a name such as "L", "Lu" or "Nd"; 0: there is none of this name.
std::uint32_t categories_named(std::string_view name);
bool is_white_space(char32_t code);

// A byte that is no part of a character becomes U+FFFD.
std::u32string decode_utf8(std::string_view text);
void append_utf8(char32_t code, std::string& out);
std::string encode_utf8(std::u32string_view text);

// Normalization form C.
std::string composed(std::string_view text);

}  // namespace llmprof::load
