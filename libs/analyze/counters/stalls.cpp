#include "analyze/counters/stalls.h"

#include <algorithm>
#include <map>

#include "analyze/rows_of.h"

namespace llmprof::analyze::counters {
namespace {

constexpr std::size_t kPlaces = 5;
constexpr const char* kUnknownCode = "<unknown code>";  // as the collector names it

constexpr const char* kReasons = R"(
SELECT coalesce(kernel, '') AS kernel, coalesce(reason, 'unknown') AS reason, sum(samples)::BIGINT AS samples
FROM stall GROUP BY ALL ORDER BY samples DESC, kernel, reason)";

// Per kernel the places with most samples, each with the reason that most of them have.
constexpr const char* kPlacesSql = R"(
WITH by_reason AS (
  SELECT kernel, offset_bytes, coalesce(file, '') AS file, line, coalesce(reason, 'unknown') AS reason,
    sum(samples)::BIGINT AS samples
  FROM stall WHERE kernel IS NOT NULL GROUP BY ALL),
place AS (
  SELECT kernel, offset_bytes, file, line, sum(samples)::BIGINT AS samples, arg_max(reason, samples) AS reason
  FROM by_reason GROUP BY ALL)
SELECT * FROM place
QUALIFY row_number() OVER (PARTITION BY kernel ORDER BY samples DESC, offset_bytes) <= 5
ORDER BY kernel, samples DESC, offset_bytes)";

double share(std::int64_t part, std::int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

Result<void> fill_stalls(const trace::Run& run, Counters& counters) {
  std::map<std::string, KernelStalls> kernels;
  LLMPROF_LET(const trace::ResultTable reasons, run.query(kReasons));
  for (std::size_t i = 0; i < reasons.rows.size(); ++i) {
    const RowView row{reasons, i};
    const std::int64_t samples = row.integer("samples");
    counters.stall_samples += samples;
    if (row.text("kernel") == kUnknownCode || row.text("kernel").empty()) {
      counters.stall_unknown += samples;
      continue;
    }
    KernelStalls& kernel = kernels[row.text("kernel")];
    kernel.samples += samples;
    kernel.reasons.push_back({row.text("reason"), static_cast<double>(samples)});
  }
  LLMPROF_LET(const trace::ResultTable places, run.query(kPlacesSql));
  for (std::size_t i = 0; i < places.rows.size(); ++i) {
    const RowView row{places, i};
    const auto kernel = kernels.find(row.text("kernel"));
    if (kernel == kernels.end() || kernel->second.places.size() == kPlaces) continue;
    kernel->second.places.push_back({.kernel = row.text("kernel"),
                                     .reason = row.text("reason"),
                                     .file = row.text("file"),
                                     .line = row.maybe_integer("line"),
                                     .pc_offset = row.integer("offset_bytes"),
                                     .samples = row.integer("samples"),
                                     .share = share(row.integer("samples"), kernel->second.samples)});
  }
  for (auto& [name, kernel] : kernels) {
    kernel.kernel = name;
    kernel.share = share(kernel.samples, counters.stall_samples);
    for (auto& [reason, samples] : kernel.reasons)
      samples /= static_cast<double>(std::max<std::int64_t>(1, kernel.samples));
    counters.stalls.push_back(std::move(kernel));
  }
  std::ranges::stable_sort(counters.stalls, std::greater{}, &KernelStalls::samples);
  return {};
}

}  // namespace llmprof::analyze::counters
