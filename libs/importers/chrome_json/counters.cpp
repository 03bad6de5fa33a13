#include "importers/chrome_json/counters.h"

#include <cmath>
#include <string>

#include "base/json.h"

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::size_t kMaxSeries = 64;

}  // namespace

void Counters::take(const Event& event) {
  const auto args = base::parse_json(event.args.raw, "args");
  if (!args || !args->is_object()) {
    sink_.lose(trace::Loss::kInputDamaged, 1, "counters without values");
    return;
  }
  std::size_t series = 0;
  for (const auto& [key, value] : args->items()) {
    if (!value.is_number() || ++series > kMaxSeries) {
      sink_.lose(trace::Loss::kInputIgnored, 1, "series of counters that are no numbers");
      continue;
    }
    trace::MetricRow row;
    row.id = sink_.new_id();
    row.ts_ns = event.ts_ns;
    row.name = names_(event.name);
    row.labels = names_(key);
    row.value = value.get<double>();
    row.kind = names_("gauge");
    sink_.add(row);
  }
}

}  // namespace llmprof::importers::chrome_json
