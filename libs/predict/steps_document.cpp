#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "predict/document.h"

namespace llmprof::predict {
namespace {

std::optional<double> known(double ns) { return ns > 0 ? std::optional(ns) : std::nullopt; }

StageRow row_of(const StageTimes& stage) {
  StageRow row{stage.stage,    stage.steps,  stage.step_ns, stage.device_ns, stage.host_ns,
               stage.floor_ns, std::nullopt, stage.bound,   stage.flops,     stage.bytes};
  if (stage.floor_ns && stage.step_ns > 0) row.of_floor = *stage.floor_ns / stage.step_ns;
  if (!(stage.device_ns > 0)) return row;
  const double operators = stage.stands_on.total() / stage.device_ns;
  row.measured = operators * stage.stands_on.share(Basis::kMeasured);
  row.interpolated =
      operators * (stage.stands_on.share(Basis::kInterpolated) + stage.stands_on.share(Basis::kExtrapolated));
  row.roof = operators * stage.stands_on.share(Basis::kRoof);
  row.assumed = stage.assumed_ns / stage.device_ns;
  return row;
}

OpRow row_of(const StageTimes& stage, const OpTime& op) {
  OpRow row{stage.stage, op.op, op.calls, op.ns, stage.device_ns > 0 ? op.ns / stage.device_ns : 0};
  row.floor_ns = known(op.floor_ns);
  if (row.floor_ns && op.ns > 0) row.of_floor = op.floor_ns / op.ns;
  row.basis = basis_name(op.ns > 0 ? op.basis : Basis::kRoof);  // nothing has to move
  row.source = op.source;
  return row;
}

// A model that was inferred has no name.
std::string model_name(const model::Config& config, const std::string& origin) {
  if (!config.name.empty()) return config.name;
  return fmt::format("{}, {} parameters{}", config.family,
                     base::human_count(static_cast<double>(model::parameters(model::Graph(config)))),
                     origin.empty() ? "" : ", " + origin);
}

std::vector<EnergyRow> energy_rows(const StepsInput& input, const StepsPrediction& prediction) {
  std::vector<EnergyRow> rows;
  if (!prediction.energy) return rows;
  const StepsEnergy& e = *prediction.energy;
  const auto batch = static_cast<double>(input.batch);
  if (e.prefill_j) {
    const Power& p = *e.prefill_power;
    rows.push_back({"prefill", p.watts, p.bound, p.source, *e.prefill_j,
                    *e.prefill_j / (batch * static_cast<double>(std::max<std::int64_t>(1, input.prompt)))});
  }
  if (e.decode_j_per_token) {
    const Power& p = *e.decode_power;
    rows.push_back({"decode", p.watts, p.bound, p.source, *e.decode_j_per_token * batch, *e.decode_j_per_token});
  }
  return rows;
}

}  // namespace

StepsDocument document_of(const StepsInput& input, const StepsPrediction& prediction, const TableStepCost& cost) {
  StepsDocument out;
  out.model = model_name(cost.input().config, input.model_origin), out.device = input.device.name;
  out.batch = input.batch, out.prompt = input.prompt;
  out.context = input.context > 0 ? input.context : input.prompt + 1;
  out.ttft_ns = prediction.ttft_ns, out.tpot_ns = prediction.tpot_ns;
  if (prediction.total_ns > 0) out.total_ns = prediction.total_ns;
  out.tpot_first_ns = prediction.tpot_first_ns, out.tpot_last_ns = prediction.tpot_last_ns;
  if (prediction.tpot_ns) out.tokens_per_s = static_cast<double>(input.batch) * 1e9 / *prediction.tpot_ns;
  BasisTimes all;
  for (const StageTimes& stage : prediction.stages) {
    out.stages.push_back(row_of(stage));
    for (const OpTime& op : stage.ops) out.operators.push_back(row_of(stage, op));
    for (const Variant& each : stage.variants)
      out.variants.push_back({stage.stage, each.name, each.kernels, each.ns, each.meaning, each.why});
    all += stage.stands_on;
  }
  out.step_error = step_error(backtest_operators(cost), all);
  const StepsMemory& memory = prediction.memory;
  out.needs = {memory.needs.weights_bytes, memory.kv_bytes, memory.needs.activation_bytes, memory.total_bytes,
               known(memory.device_bytes), memory.fits()};
  out.energy = energy_rows(input, prediction);
  out.notes = prediction.notes;
  return out;
}

}  // namespace llmprof::predict
