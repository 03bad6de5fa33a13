// Built-in models recognised by the sizes of their matrices.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "analyze/detect_model.h"
#include "model/zoo/zoo.h"

namespace llmprof::analyze {
namespace {

constexpr double kTolerance = 0.1;  // between the calls of layers and those of the logits: prompts differ in rows

enum class Fit : std::uint8_t { kNo, kNear, kYes };

// Calls per product. Those of the layers must be made equally often; experts are called as tokens choose them.
Fit fit(const Products& products, const SizeCounts& counts) {
  std::map<MatrixSize, double> needed;
  for (const Slot& slot : products.slots) {
    if (slot.layer >= 0 && !slot.expert) needed[slot.size] += 1;
    if (slot.expert && !counts.contains(slot.size)) return Fit::kNo;
  }
  std::optional<double> times;
  for (const auto& [size, count] : needed) {
    const auto called = counts.find(size);
    if (called == counts.end()) return Fit::kNo;
    const double here = static_cast<double>(called->second) / count;
    if (times && std::abs(here - *times) > 1e-9) return Fit::kNo;
    times = here;
  }
  const auto logits =
      std::find_if(products.slots.begin(), products.slots.end(), [](const Slot& slot) { return slot.sampled; });
  if (!times || logits == products.slots.end() || needed.contains(logits->size)) return Fit::kNear;
  const auto called = counts.find(logits->size);
  if (called == counts.end()) return Fit::kNear;
  return std::abs(static_cast<double>(called->second) / *times - 1) <= kTolerance ? Fit::kYes : Fit::kNear;
}

std::vector<std::pair<MatrixSize, std::int32_t>> layout_of(const Products& products) {
  std::vector<std::pair<MatrixSize, std::int32_t>> layout;
  for (const Slot& slot : products.slots) layout.emplace_back(slot.size, slot.layer);
  return layout;
}

}  // namespace

Recognised recognise(const SizeCounts& counts) {
  Recognised out;
  std::set<std::int64_t> inputs;
  for (const auto& [size, calls] : counts) inputs.insert(size.first);
  std::vector<std::pair<MatrixSize, std::int32_t>> layout;
  for (const model::ZooEntry& entry : model::zoo()) {
    const auto config = model::config_of(entry);
    if (!config || !inputs.contains(config->hidden)) continue;
    const Products products = products_of(model::Graph(*config), counts);
    const Fit found = fit(products, counts);
    if (found == Fit::kNear && out.near.size() < 3) out.near.push_back(entry.name);
    if (found != Fit::kYes) continue;
    if (out.name.empty()) {
      out.name = entry.name;
      layout = layout_of(products);
    } else if (layout_of(products) == layout) {
      out.same.push_back(entry.name);
    } else {  // two that differ: neither stands out
      return {.name = "", .same = {}, .near = {out.name, entry.name}};
    }
  }
  return out;
}

}  // namespace llmprof::analyze
