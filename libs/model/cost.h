#pragma once
// The cost of one operator in each kind of pass. docs/format/model.md derives every formula.

#include "model/model.h"

namespace llmprof::model {

inline constexpr double kMomentBytes = 4;  // both moments of AdamW are float32, whatever the parameters are

// A pass as amounts, as floating point: products of the sizes of a large pass exceed 64 bits.
class Amounts {
 public:
  // Passes come from other programs' annotations: whatever they say, no amount becomes negative.
  explicit Amounts(const Pass& pass);

  struct Group {
    double count, tokens, context, sampled;
  };
  const std::vector<Group>& groups() const { return groups_; }
  double rows(Rows rows) const { return rows == Rows::kTokens ? tokens_ : sampled_; }
  double positions() const { return positions_; }  // rows of a position table that are looked up

 private:
  std::vector<Group> groups_;
  double tokens_ = 0, sampled_ = 0, positions_ = 0;
};

Costs inference_cost(const Op& op, const Config& config, const Amounts& amounts, const Conditions& conditions);
Costs forward_cost(const Op& op, const Config& config, const Amounts& amounts, const Conditions& conditions);
Costs backward_cost(const Op& op, const Config& config, const Amounts& amounts, const Conditions& conditions);
Costs optimizer_cost(const Op& op);

bool used(const Op& op, PassKind kind);
Costs cost_of(const Op& op, const Config& config, PassKind kind, const Amounts& amounts, const Conditions& conditions);

// Pairs of a query and a key it sees, and keys that any of the queries sees, of n new tokens with context c.
double attended_pairs(const Attention& attention, double n, double c);
double attended_keys(const Attention& attention, double n, double c);
// Rows that an operator works on: those of the pass, or of the experts' share of them.
double rows_of(const Op& op, const Amounts& amounts);
// Expected number of experts of this shard that any of `tokens` tokens is sent to, with even routing.
double distinct_experts(const Experts& experts, double tokens);

}  // namespace llmprof::model
