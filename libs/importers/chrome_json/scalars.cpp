#include "importers/chrome_json/scalars.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "importers/text.h"

namespace llmprof::importers::chrome_json {
namespace {

struct Digits {
  std::uint64_t value = 0;
  int exponent = 0;  // of ten
  bool negative = false;
};

// Digits beyond the 18th only count as places: rounding to integers of 63 bits never needs them, as halves have one.
void append(Digits& digits, char c, bool fraction) {
  if (digits.value >= 1'000'000'000'000'000'000u) {
    digits.exponent += fraction ? 0 : 1;
    return;
  }
  digits.value = digits.value * 10 + static_cast<std::uint64_t>(c - '0');
  digits.exponent -= fraction ? 1 : 0;
}

std::optional<Digits> read_digits(std::string_view text) {
  Digits digits;
  std::size_t at = 0, count = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) digits.negative = text[at++] == '-';
  for (; at < text.size() && base::is_digit(text[at]); ++at, ++count) append(digits, text[at], false);
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && base::is_digit(text[at]); ++at, ++count) append(digits, text[at], true);
  }
  if (count == 0) return std::nullopt;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::string_view power = text.substr(at + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    int exponent = 0;
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (error == std::errc::invalid_argument || end != power.data() + power.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) exponent = power.starts_with('-') ? -100'000 : 100'000;
    if (exponent > 100'000 || exponent < -100'000) exponent = exponent > 0 ? 100'000 : -100'000;
    digits.exponent += exponent;
    at = text.size();
  }
  if (at != text.size()) return std::nullopt;
  return digits;
}

// Plain digits of an unsigned 64-bit number.
std::optional<std::uint64_t> unsigned_digits(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr std::uint32_t kReplacement = 0xFFFD;

// The four digits behind \u at the beginning.
std::optional<std::uint32_t> four_digits(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, code, 16);
  if (error != std::errc() || end != text.data() + 6) return std::nullopt;
  return code;
}

// \uXXXX, or two of them that are one character; returns the bytes used, 0 if it is none.
std::size_t append_code(std::string& out, std::string_view text, bool& repaired) {
  const std::optional<std::uint32_t> code = four_digits(text);
  if (!code) return 0;
  if (*code >= 0xD800 && *code < 0xDC00) {
    const std::optional<std::uint32_t> low = four_digits(text.substr(6));
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      append_utf8(out, 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00));
      return 12;
    }
  }
  const bool bad = (*code >= 0xD800 && *code < 0xE000) || *code == 0;
  repaired |= bad;
  append_utf8(out, bad ? kReplacement : *code);
  return 6;
}

// What a letter behind a backslash means; 0: nothing.
char meaning(char letter) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const std::size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? '\0' : kMeanings[at];
}

}  // namespace

std::optional<std::int64_t> scaled(std::string_view text, int scale) {
  const std::optional<Digits> digits = read_digits(text);
  if (!digits) return std::nullopt;
  std::uint64_t value = digits->value;
  int exponent = digits->exponent + scale;
  if (value == 0) return 0;
  for (; exponent > 0; --exponent) {
    if (value > INT64_MAX / 10) return std::nullopt;
    value *= 10;
  }
  if (exponent < -19) return 0;
  std::uint64_t divisor = 1;
  for (; exponent < 0; ++exponent) {
    if (divisor == 10'000'000'000'000'000'000u) return 0;
    divisor *= 10;
  }
  const std::uint64_t rest = value % divisor;
  value = value / divisor + (divisor > 1 && rest >= divisor / 2 ? 1 : 0);
  if (value > INT64_MAX) return std::nullopt;
  return digits->negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> integer(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  if (const auto value = unsigned_digits(text, hexadecimal ? 16 : 10)) return static_cast<std::int64_t>(*value);
  if (hexadecimal) return std::nullopt;
  return scaled(text, 0);
}

std::string unescape(std::string_view written, bool& repaired) {
  std::string out;
  out.reserve(written.size());
  while (!written.empty()) {
    const std::size_t plain = std::min(written.find('\\'), written.size());
    out += written.substr(0, plain);
    written.remove_prefix(plain);
    if (written.empty()) break;
    std::size_t used = 2;
    if (const char letter = written.size() < 2 ? '\0' : meaning(written[1]); letter != 0) {
      out += letter;
    } else if (used = append_code(out, written, repaired); used == 0) {
      out += '\\';  // a path of Windows, most likely
      repaired = true;
      used = 1;
    }
    written.remove_prefix(used);
  }
  if (is_utf8(out)) return out;
  repaired = true;
  return to_utf8(out);
}

}  // namespace llmprof::importers::chrome_json
