#pragma once
// Numbers and units as Nsight Compute prints them.

#include <cstdint>
#include <string>
#include <string_view>

namespace llmprof::importers::ncu {

enum class ValueKind : std::uint8_t {
  kNumber,
  kAbsent,        // empty, n/a, nan, inf
  kText,          // "NVIDIA H200"
  kDecimalComma,  // "1.234,5": a locale that swaps points and commas
};
// "1,234.5" -> 1234.5; of "7 (3; 4)" (values of instances) the first.
ValueKind parse_value(std::string_view text, double& value);

struct Unit {
  double factor = 1;  // a value in the printed unit times this is in `name`
  std::string name;   // byte, byte/s, ns, hz, %, …; as printed where the unit is not known
};
// "Gbyte/s" -> {1e9, "byte/s"}, "us" -> {1e3, "ns"}, "Ghz" -> {1e9, "hz"}. Prefixes are powers of 1000.
Unit base_unit(std::string_view printed);

// "(128, 1, 1)"; false if it is not three numbers.
bool parse_triple(std::string_view text, std::int32_t (&values)[3]);

}  // namespace llmprof::importers::ncu
