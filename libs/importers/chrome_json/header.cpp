#include "importers/chrome_json/header.h"

#include <fmt/format.h>

#include "base/json.h"

namespace llmprof::importers::chrome_json {
namespace {

// Times of day in microseconds: 2001 … 2096. Clocks that begin with the machine do not get there.
constexpr std::int64_t kEarliestNs = 1'000'000'000'000'000'000, kLatestNs = 4'000'000'000'000'000'000;

std::optional<std::int64_t> integer(const base::Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::string kineto_tool(const base::Json& other) {
  std::string tool = "PyTorch profiler (Kineto)";
  if (const auto version = integer(other, "cuda_runtime_version"); version && *version > 0) {
    tool += fmt::format(", CUDA {}.{}", *version / 1000, *version % 1000 / 10);
  }
  if (const auto version = integer(other, "cupti_version")) tool += fmt::format(", CUPTI {}", *version);
  return tool;
}

}  // namespace

void take(const Header& header, Origin& origin) {
  if (header.base_time_ns) origin.base_time_ns = header.base_time_ns;
  const auto other = base::parse_json(header.other, "header");
  if (!other || !other->is_object()) return;
  origin.kineto = origin.kineto || header.base_time_ns || !header.device_properties.empty() ||
                  !header.distributed_info.empty() || integer(*other, "schemaVersion").has_value();
  if (!origin.kineto) return;
  origin.with_stack = origin.with_stack || integer(*other, "with_stack").value_or(0) != 0;
  if (const auto shapes = integer(*other, "record_shapes")) origin.record_shapes = *shapes != 0;
  origin.tool = kineto_tool(*other);
}

FileClock clock_of(const Origin& origin, std::int64_t first_ns) {
  if (origin.base_time_ns) return {origin.base_time_ns, "Kineto: microseconds since baseTimeNanoseconds"};
  if (first_ns > kEarliestNs && first_ns < kLatestNs) return {0, "microseconds since 1970"};
  return {std::nullopt, "microseconds of the writer's clock"};
}

}  // namespace llmprof::importers::chrome_json
