#include "predict/run/predict_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/human.h"
#include "predict/run/layout.h"

namespace llmprof::predict {
namespace {

constexpr std::int64_t kMostSteps = 100'000;

Result<void> check(const StepsInput& input, const model::Config& config) {
  if (input.batch < 1 || input.batch > kMostStepBatch)
    return usage_error("a batch of {} requests: 1 to {} can be predicted", input.batch, kMostStepBatch);
  if (input.prompt < 0 || input.context < 0 || input.decode_steps < 0 || input.decode_steps > kMostSteps)
    return usage_error("prompt, context and steps must not be negative, and steps at most {}", kMostSteps);
  if (input.prompt == 0 && input.decode_steps == 0) return usage_error("neither a prompt nor decode steps to predict");
  const std::int64_t first = input.context > 0 ? input.context : input.prompt + 1;
  const std::int64_t longest = std::max(input.prompt, input.decode_steps > 0 ? first + input.decode_steps - 1 : 0);
  if (longest > kMostStepTokens) return usage_error("a context of {} tokens: at most {}", longest, kMostStepTokens);
  if (config.position_table && config.positions > 0 && longest > config.positions)
    return usage_error("a context of {} tokens: this model has {} positions", longest, config.positions);
  return {};
}

Batch prefill_batch(const StepsInput& input) {
  Batch batch;
  batch.chunks.assign(static_cast<std::size_t>(input.batch), Chunk{.tokens = input.prompt, .computed = 0});
  batch.sampled = batch.new_requests = input.batch;
  batch.padded_tokens = batch.tokens();
  batch.launch = Launch::kEager;
  return batch;
}

Batch decode_batch(const StepsInput& input, std::int64_t context) {
  Batch batch;
  batch.contexts.assign(static_cast<std::size_t>(input.batch), context);
  batch.sampled = batch.padded_tokens = input.batch;
  batch.launch = input.launch;
  return batch;
}

double host_ns(const HostCosts& host, const Batch& batch) {
  return host.per_step_ns + host.per_request_ns * static_cast<double>(batch.requests()) +
         host.per_new_request_ns * static_cast<double>(batch.new_requests);
}

// Adds up steps of one stage, then divides.
class StageSum {
 public:
  explicit StageSum(std::string_view stage) { out_.stage = stage; }

  void add(const std::vector<OpTime>& ops, double host_ns, double step_ns) {
    ++out_.steps;
    out_.host_ns += host_ns;
    out_.step_ns += step_ns;
    if (out_.ops.empty()) out_.ops = ops;
    for (const OpTime& op : ops) {
      out_.device_ns += op.ns;
      // Costs of links and launches are stated, not the least that they can be.
      if (op.basis == Basis::kAssumed) {
        out_.assumed_ns += op.ns;
      } else {
        out_.stands_on.add({op.ns, op.basis}, 1);
      }
    }
    if (out_.steps == 1) return;
    for (std::size_t i = 0; i < std::min(ops.size(), out_.ops.size()); ++i) {
      out_.ops[i].ns += ops[i].ns;
      out_.ops[i].floor_ns += ops[i].floor_ns;
      out_.ops[i].basis = std::max(out_.ops[i].basis, ops[i].basis);
    }
  }

  void add_work(const model::Graph& graph, const Batch& batch, const DeviceRoof& roof) {
    const model::PassCosts costs = model::total(graph, pass_of(batch), {.on_chip_bytes = roof.on_chip_bytes});
    out_.flops += costs.flops;
    out_.bytes += costs.bytes();
    const hw::Floor floor = roof.peaks.floor(costs.flops_by_type, costs.bytes());
    floor_ = out_.steps <= 1 ? floor : floor_ += floor;
  }

  StageTimes mean() {
    const double n = static_cast<double>(std::max<std::int64_t>(1, out_.steps));
    for (double* value : {&out_.device_ns, &out_.assumed_ns, &out_.host_ns, &out_.step_ns, &out_.flops, &out_.bytes})
      *value /= n;
    for (OpTime& op : out_.ops) op.ns /= n, op.floor_ns /= n;
    for (double& ns : out_.stands_on.ns) ns /= n;
    if (floor_.ns) out_.floor_ns = *floor_.ns / n;
    out_.bound = floor_.bound();
    return out_;
  }

 private:
  StageTimes out_;
  hw::Floor floor_;
};

class Steps {
 public:
  Steps(const TableStepCost& cost, const StepsInput& input, StepLayout layout, model::Graph graph)
      : cost_(cost), input_(input), layout_(std::move(layout)), graph_(std::move(graph)) {}

  Result<void> predict(StepsPrediction& out) {
    out.run.places = input_.program != nullptr ? input_.program->places() : layout_.places();
    if (input_.prompt > 0) {
      StageSum sum("prefill");
      out.ttft_ns = add(prefill_batch(input_), sum, out.run);
      LLMPROF_TRY(finish(sum, prefill_batch(input_), out));
      out.total_ns = total_ns_;
    }
    if (input_.decode_steps == 0) return {};
    const std::int64_t first = input_.context > 0 ? input_.context : input_.prompt + 1;
    StageSum sum("decode");
    for (std::int64_t i = 0; i < input_.decode_steps; ++i) {
      const double ns = add(decode_batch(input_, first + i), sum, out.run);
      if (i == 0) out.tpot_first_ns = ns;
      out.tpot_last_ns = ns;
    }
    out.total_ns = total_ns_;
    LLMPROF_TRY(finish(sum, decode_batch(input_, first + input_.decode_steps / 2), out));
    out.tpot_ns = out.stages.back().step_ns;
    return {};
  }

 private:
  // Returns the time from this step to the next.
  double add(const Batch& batch, StageSum& sum, PredictedRun& run) {
    PricedStep priced = input_.program != nullptr ? input_.program->price(batch) : price(batch);
    PredictedStep step{.begin_ns = now_ns_, .device_ns = 0, .batch = batch, .work = std::move(priced.work)};
    for (const OpTime& op : priced.ops) step.device_ns += op.ns;
    const double step_ns = priced.step_ns;
    total_ns_ += priced.mean_step_ns;
    sum.add(priced.ops, priced.host_ns, step_ns);
    sum.add_work(graph_, batch, cost_.input().roof);
    // The host prepares a step, then the device works on it.
    step.begin_ns += step_ns - step.device_ns;
    now_ns_ += step_ns;
    run.steps.push_back(std::move(step));
    return step_ns;
  }

  PricedStep price(const Batch& batch) const {
    PricedStep out{.ops = cost_.explain(batch)};
    double device_ns = 0;
    for (const OpTime& op : out.ops) device_ns += op.ns;
    out.host_ns = host_ns(cost_.input().host, batch);
    out.step_ns = input_.host_hidden ? std::max(device_ns, out.host_ns) : device_ns + out.host_ns;
    out.mean_step_ns = out.step_ns;
    out.work = layout_.lay_out(batch, out.ops);
    return out;
  }

  Result<void> finish(StageSum& sum, const Batch& typical, StepsPrediction& out) const {
    StageTimes times = sum.mean();
    if (input_.program != nullptr) {
      times.variants = input_.program->variants(typical);
    } else {
      LLMPROF_LET(times.variants, variants_of(cost_, typical, launch_price(cost_.input().launch, input_.peaks)));
    }
    out.stages.push_back(std::move(times));
    return {};
  }

  const TableStepCost& cost_;
  const StepsInput& input_;
  StepLayout layout_;
  model::Graph graph_;
  double now_ns_ = 0, total_ns_ = 0;
};

Result<StepsMemory> memory_of(const TableStepCost& cost, const StepsInput& input) {
  const StepCostInput& made = cost.input();
  StepsMemory memory;
  LLMPROF_LET(memory.needs, memory_needs(made.config, made.parallel,
                                         {.max_batched_tokens = input.batch * std::max<std::int64_t>(1, input.prompt),
                                          .max_requests = input.batch,
                                          .graphs = 0}));
  const std::int64_t first = input.context > 0 ? input.context : input.prompt + 1;
  const std::int64_t longest = input.decode_steps > 0 ? first + input.decode_steps - 1 : input.prompt;
  memory.kv_bytes = memory.needs.kv_bytes_per_token * static_cast<double>(input.batch * longest);
  memory.total_bytes = memory.needs.before_cache() + memory.kv_bytes;
  memory.device_bytes = static_cast<double>(input.device.memory_bytes);
  return memory;
}

std::optional<StepsEnergy> energy_of(const StepsPrediction& prediction, const StepsInput& input) {
  StepsEnergy energy;
  energy.prefill_power = input.prefill_power ? input.prefill_power : input.power;
  energy.decode_power = input.decode_power ? input.decode_power : input.power;
  if (!energy.prefill_power && !energy.decode_power) return std::nullopt;
  const auto ranks = static_cast<double>(std::max<std::int64_t>(1, prediction.run.parallel.ranks()));
  if (prediction.ttft_ns && energy.prefill_power)
    energy.prefill_j = energy.prefill_power->watts * ranks * *prediction.ttft_ns * 1e-9;
  if (prediction.tpot_ns && energy.decode_power) {
    energy.decode_j_per_token =
        energy.decode_power->watts * ranks * *prediction.tpot_ns * 1e-9 / static_cast<double>(input.batch);
  }
  return energy;
}

std::string sentence(const TableStepCost& cost, const StepsPrediction& prediction) {
  BasisTimes all;
  double assumed_ns = 0;
  for (const StageTimes& stage : prediction.stages) {
    BasisTimes times = stage.stands_on;
    for (double& ns : times.ns) ns *= static_cast<double>(stage.steps);
    all += times;
    assumed_ns += stage.assumed_ns * static_cast<double>(stage.steps);
  }
  const double device_ns = all.total() + assumed_ns;
  std::string text = fmt::format("The device's time stands on {}", stands_on_words(all));
  if (assumed_ns > 0 && device_ns > 0)
    text = fmt::format("{} of the device's time is of stated costs of links and launches, the rest stands on {}",
                       base::human_percent(assumed_ns / device_ns), stands_on_words(all));
  const TableSource& source = cost.source();
  if (!source.folder.empty()) text += fmt::format("; tables of {}", source.folder);
  const HostCosts& host = cost.input().host;
  const bool known = host.per_step_ns > 0 || host.per_request_ns > 0 || host.per_new_request_ns > 0;
  return text + (known ? fmt::format("; the host's on {}", host.source) : "; the host's is unknown and counts as 0") +
         ".";
}

void add_notes(const TableStepCost& cost, const StepsInput& input, StepsPrediction& out) {
  if (input.program == nullptr) {
    out.notes = cost.notes();
    out.notes.push_back(
        "a kernel that does the work of several operators (qkv_proj, gate_up_proj) stands as one row for each, by "
        "their "
        "floors");
  }
  if (input.host_hidden) out.notes.push_back("the host prepares the next step while the device works");
  for (const std::string& each : out.memory.needs.assumptions) out.notes.push_back("memory: " + each);
  if (!out.memory.fits()) {
    out.notes.push_back(fmt::format("it does not fit: {} of the device's {}", base::human_bytes(out.memory.total_bytes),
                                    base::human_bytes(out.memory.device_bytes)));
  }
}

}  // namespace

std::string stands_on_words(const BasisTimes& times) {
  constexpr std::string_view kWords[kBases] = {"times as they were measured", "times between measured points",
                                               "times beyond measured points", "the device's roof, the least it can be",
                                               "stated costs of links and launches"};
  std::string out;
  for (std::size_t i = 0; i < kBases; ++i) {
    const double share = times.share(static_cast<Basis>(i));
    if (share <= 0) continue;
    if (share >= 1) return std::string(kWords[i]);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", base::human_percent(share), kWords[i]);
  }
  return out.empty() ? "nothing" : out;
}

Result<StepsPrediction> predict_steps(const TableStepCost& cost, const StepsInput& input) {
  const StepCostInput& made = cost.input();
  LLMPROF_TRY(check(input, made.config));
  LLMPROF_LET(StepLayout layout, StepLayout::make(cost, Detail::kLayers));
  LLMPROF_LET(const model::Config shard, model::shard(made.config, made.parallel, {}));
  StepsPrediction out;
  LLMPROF_TRY(Steps(cost, input, std::move(layout), model::Graph(shard)).predict(out));
  LLMPROF_LET(out.memory, memory_of(cost, input));
  PredictedRun& run = out.run;
  run.command = input.command;
  run.config_text = input.config_text, run.model_origin = input.model_origin, run.types = input.types;
  run.parallel = made.parallel;
  run.device = input.device, run.peaks = input.peaks;
  out.energy = energy_of(out, input);
  add_notes(cost, input, out);
  run.stands_on = input.program != nullptr ? input.program->source() : sentence(cost, out);
  run.notes = out.notes;
  return out;
}

}  // namespace llmprof::predict
