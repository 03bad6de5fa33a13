// Built-in models recognised by the sizes of their matrices.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "analyze/model/detect_model.h"
#include "model/shard.h"
#include "model/zoo/zoo.h"

namespace llmprof::analyze {

namespace {

constexpr double kTolerance = 0.1;  // between the calls of layers and those of the logits: prompts differ in rows

enum class Fit : std::uint8_t { kNo, kNear, kYes };

struct Needed {
  double forward = 0;   // products of this size in one pass
  double backward = 0;  // those that make the gradients of inputs: the matrix the other way round
};

// How often the passes were made whose products the calls are, forward and backward: every size says one equation. A
// program that only goes forward makes no call of the second kind. nullopt: no such numbers explain the calls.
std::optional<double> forward_passes(const std::map<MatrixSize, Needed>& needed, const SizeCounts& counts) {
  double ff = 0, fb = 0, bb = 0, fc = 0, bc = 0;
  for (const auto& [size, per_pass] : needed) {
    const auto called = counts.find(size);
    if (called == counts.end()) return std::nullopt;
    const auto calls = static_cast<double>(called->second);
    ff += per_pass.forward * per_pass.forward, fb += per_pass.forward * per_pass.backward;
    bb += per_pass.backward * per_pass.backward;
    fc += per_pass.forward * calls, bc += per_pass.backward * calls;
  }
  const auto explains = [&](double forward, double backward) {
    return forward > 0 && backward >= 0 && backward <= forward * (1 + 1e-9) &&
           std::ranges::all_of(needed, [&](const auto& entry) {
             const auto calls = static_cast<double>(counts.at(entry.first));
             return std::abs(forward * entry.second.forward + backward * entry.second.backward - calls) < 1e-6 * calls;
           });
  };
  if (ff > 0 && explains(fc / ff, 0)) return fc / ff;
  const double determinant = ff * bb - fb * fb;
  if (needed.size() < 3 || std::abs(determinant) < 1e-9) return std::nullopt;  // two equations always agree
  const double forward = (fc * bb - bc * fb) / determinant, backward = (bc * ff - fc * fb) / determinant;
  return explains(forward, backward) ? std::optional(forward) : std::nullopt;
}

// Calls per product. Those of the layers must be made equally often; experts are called as tokens choose them.
Fit fit(const Products& products, const SizeCounts& counts) {
  std::map<MatrixSize, Needed> needed;
  for (const Slot& slot : products.slots) {
    if (slot.layer >= 0 && !slot.expert) needed[slot.size].forward += 1;
    if (slot.expert && !counts.contains(slot.size)) return Fit::kNo;
  }
  for (const Slot& slot : products.slots) {
    const auto back = needed.find({slot.size.second, slot.size.first});
    if (back != needed.end() && !slot.expert) back->second.backward += 1;
  }
  const std::optional<double> times = forward_passes(needed, counts);
  if (!times) return Fit::kNo;
  const auto logits =
      std::find_if(products.slots.begin(), products.slots.end(), [](const Slot& slot) { return slot.sampled; });
  if (logits == products.slots.end() || needed.contains(logits->size)) return Fit::kNear;
  const auto called = counts.find(logits->size);
  if (called == counts.end()) return Fit::kNear;
  return std::abs(static_cast<double>(called->second) / *times - 1) <= kTolerance ? Fit::kYes : Fit::kNear;
}

std::vector<std::pair<MatrixSize, std::int32_t>> layout_of(const Products& products) {
  std::vector<std::pair<MatrixSize, std::int32_t>> layout;
  for (const Slot& slot : products.slots) layout.emplace_back(slot.size, slot.layer);
  return layout;
}


Recognised recognise(const SizeCounts& counts, const std::set<std::int64_t>& inputs, std::int64_t ranks) {
  Recognised out;
  std::vector<std::pair<MatrixSize, std::int32_t>> layout;
  for (const model::ZooEntry& entry : model::zoo()) {
    auto config = model::config_of(entry);
    if (!config || !inputs.contains(config->hidden)) continue;
    if (ranks > 1) config = model::shard(*config, {.tensor = ranks}, {});
    if (!config) continue;
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

}  // namespace

Recognised recognise(const SizeCounts& counts) {
  std::set<std::int64_t> inputs;
  for (const auto& [size, calls] : counts) inputs.insert(size.first);
  const Recognised whole = recognise(counts, inputs, 1);
  if (!whole.name.empty() || !whole.near.empty()) return whole;
  for (const std::int64_t ranks : {2, 4, 8}) {
    if (Recognised part = recognise(counts, inputs, ranks); !part.name.empty()) return part;
  }
  return whole;
}

}  // namespace llmprof::analyze
