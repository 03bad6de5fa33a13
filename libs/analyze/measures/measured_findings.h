#pragma once
// What a printed profile and the model's analysis say together: in which type the weights lie, how many passes there
// were, how fast the weights moved, how busy the device was, and what therefore would pay.

#include <optional>
#include <string>
#include <vector>

#include "analyze/design/stage.h"
#include "importers/key_averages/table.h"
#include "model/config.h"

namespace llmprof::analyze {

using importers::MeasuredRow;
using importers::MeasuredTable;

struct MeasuredFindings {
  // Weights in memory, and the type they are stored in.
  std::int64_t parameters = 0;
  std::optional<double> weights_bytes;        // as measured
  std::optional<double> bytes_per_parameter;  // weights_bytes / parameters
  std::string stored_type;                    // what that fits, else the config's own type
  bool type_inferred = false;                 // from memory; false: taken from the config
  double type_bytes = 0;                      // per parameter, as counted below

  // Passes: calls of linear layers / linear layers of the model.
  std::string linear_name;  // row of the table
  std::int64_t linear_calls = 0, linears_per_pass = 0;
  std::optional<std::int64_t> passes;

  // Linear layers of one pass against the device. Their weights are read once per pass.
  std::optional<double> linear_ns;  // on the device
  double linear_bytes = 0, linear_flops = 0;
  std::optional<double> linear_bytes_per_s, linear_share_of_bandwidth;
  std::optional<double> linear_floor_ns;
  std::string linear_bound;
  std::string floor_why;  // why the two above are unknown
  std::optional<design::UsedPeak> bandwidth, arithmetic;

  // The device's time over the whole profile.
  std::optional<double> cpu_total_ns, device_total_ns;
  std::optional<double> busy;  // device_total_ns / cpu_total_ns
  struct Share {
    std::string what, name;  // "linear layers", the row
    double ns = 0;
    std::optional<double> of_device;
  };
  std::vector<Share> shares;

  std::vector<std::string> follows;  // sentences, the largest gain first
  std::vector<std::string> caveats;
};

MeasuredFindings explain(const model::Config& config, const MeasuredTable& table, std::optional<double> weights_bytes,
                         const design::Roof& roof);

}  // namespace llmprof::analyze
