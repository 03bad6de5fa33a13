#include <charconv>
#include <cmath>

#include "base/strings.h"
#include "record/record.h"

namespace llmprof::record {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},       {"b", 1},         {"kb", 1e3},         {"mb", 1e6},           {"gb", 1e9},
    {"tb", 1e12},  {"kib", 1024.0},  {"mib", 1048576.0},  {"gib", 1073741824.0}, {"tib", 1099511627776.0},
    {"k", 1024.0}, {"m", 1048576.0}, {"g", 1073741824.0}, {"t", 1099511627776.0}};

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const Error error{ErrorCode::kUsage, "'" + std::string(text) + "' is not a size", "write it as 500MB or 10GiB"};
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || !(value > 0)) return error;
  const std::string unit = base::lowercase(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const Unit& known : kUnits) {
    if (unit == known.name && value * known.bytes < 9e18) return static_cast<std::uint64_t>(value * known.bytes);
  }
  return error;
}

}  // namespace llmprof::record
