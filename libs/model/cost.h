#pragma once
// The cost of one operator in each kind of pass. docs/format/model.md derives every formula.

#include "model/op.h"

namespace llmprof::model {

inline constexpr double kMomentBytes = 4;  // both moments of AdamW are float32, whatever the parameters are

// The amounts of one pass, as floating point: products of the sizes of a large pass exceed 64 bits.
struct Amounts {
  double batch, tokens, context, sampled;
  double rows_of(Rows rows) const { return batch * (rows == Rows::kTokens ? tokens : sampled); }
};

// Passes come from other programs' annotations: whatever they say, no amount becomes negative.
Amounts amounts_of(const Pass& pass);

// Costs without module and op.
OpCost inference_cost(const Op& op, const Config& config, const Amounts& amounts, std::int64_t on_chip_bytes);
OpCost forward_cost(const Op& op, const Config& config, const Amounts& amounts, std::int64_t on_chip_bytes);
OpCost backward_cost(const Op& op, const Config& config, const Amounts& amounts, std::int64_t on_chip_bytes);
OpCost optimizer_cost(const Op& op, const Config& config);

}  // namespace llmprof::model
