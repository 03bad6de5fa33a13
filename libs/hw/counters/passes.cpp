#include "hw/counters/passes.h"

#include "base/asset.h"
#include "base/json.h"

namespace llmprof::hw_counters {
std::span<const base::Asset> assets();  // made by llmprof_embed_assets
}

namespace llmprof::hw::counters {
namespace {

const base::Json& table() {
  static const base::Json kTable = [] {
    const std::string_view name = "counters/passes.json";
    Result<base::Json> json = base::parse_json(base::find_asset(hw_counters::assets(), name), name);
    return json && json->is_object() ? std::move(*json) : base::Json::object();  // a test holds it to be readable
  }();
  return kTable;
}

// Counters of one pass are not listed.
int in_ranges(std::string_view name, std::string_view chip) {
  const auto row = table().find(std::string(chip));
  if (row == table().end() || !row->is_object()) return 1;
  const auto passes = row->find(std::string(name));
  return passes != row->end() && passes->is_number_integer() ? passes->get<int>() : 1;
}

}  // namespace

std::optional<int> passes_of(std::string_view set_or_counter, std::string_view chip, Method method) {
  if (find_set(set_or_counter) == nullptr && find_counter(set_or_counter) == nullptr) return std::nullopt;
  const Result<Selection> selection = select(set_or_counter);
  if (!selection || metrics_of(*selection, chip, method).metrics.empty()) return std::nullopt;
  return method == Method::kSampled ? 1 : in_ranges(set_or_counter, chip);
}

int passes_version() {
  const auto version = table().find("cupti");
  return version != table().end() && version->is_number_integer() ? version->get<int>() : 0;
}

}  // namespace llmprof::hw::counters
