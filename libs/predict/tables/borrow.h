#pragma once
// Tables of a model for the same model changed: what was measured of its operators, where the change leaves them as
// they are, and what that makes expectable of those whose shape or type it changes. On the same device.

#include <string>
#include <vector>

#include "base/result.h"
#include "model/shard.h"
#include "predict/tables/step_cost.h"

namespace llmprof::predict {

struct TablesOf {
  const model::Config& config;  // of the whole model
  model::Parallel parallel;
  const DeviceRoof& roof;
};

// How the time of an operator follows its floor, where only the time of another shape is known.
enum class Follows : std::uint8_t {
  kInProportion,  // the same share of the roof is reached
  kByDifference,  // what it takes over its floor stays
};

struct BorrowedTables {
  OperatorTables tables;
  std::vector<std::string> scaled;  // operators whose times are not measured of this shape
};

std::string scaled_note(const std::vector<std::string>& scaled);  // for who reads the prediction

Result<BorrowedTables> borrow_tables(const OperatorTables& measured, const TablesOf& before, const TablesOf& after,
                                     Follows follows);

}  // namespace llmprof::predict
