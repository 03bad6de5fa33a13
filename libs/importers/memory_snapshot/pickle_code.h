#pragma once
// The opcodes of pickles: what each is, and the texts of protocol 0. Facts from Python's pickletools.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::importers {

enum class CodeKind : std::uint8_t {
  kUnknown,
  kProtocol,
  kFrame,
  kScalar,      // None, bool, int, float in binary
  kTextNumber,  // the same as a line of text
  kText,        // text and bytes
  kContainer,   // marks, lists, tuples, dictionaries, sets
  kMemo,
  kRefused,  // calls something, or refers to something outside
};

CodeKind kind_of(unsigned char code);
std::string_view name_of_code(unsigned char code);  // of those that are refused: "REDUCE"

std::uint64_t little_endian(std::string_view bytes);                // at most 8
std::optional<std::int64_t> whole_number(std::string_view digits);  // all of it, in decimal
std::optional<double> real_number(std::string_view digits);
std::string unescaped(std::string_view text, bool quoted);  // \xNN, \uNNNN, \UNNNNNNNN, \n … as UTF-8
std::string shown(std::string_view text);                   // short and printable

}  // namespace llmprof::importers
