#include "whatif_prices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "given_names.h"
#include "predict/deployment.h"
#include "predict/measured/store.h"
#include "serving/engine.h"
#include "predict/tables/backtest.h"
#include "predict/tables/borrow.h"
#include "predict/tables/jumps.h"
#include "predict/tables/memory.h"
#include "predict/tables/read_tables.h"

namespace llmprof::app {
namespace {

namespace design = analyze::design;
using design::ModelSetup;
using design::Priced;
using design::Source;

// What a setup's times depend on, beside the sizes of its steps.
std::string identity(const ModelSetup& setup) {
  const model::Config& c = setup.subject.config;
  const model::Parallel& p = setup.options.parallel;
  return fmt::format("{} {} {} {} {} {} {}.{}.{} {}", predict::shape_key(c), c.weight.type, c.kv.type,
                     c.activation.type, c.arithmetic, c.quantization ? c.quantization->weight.type : "", p.tensor,
                     p.pipeline, p.expert, setup.roof.device);
}

serving::Batch prefill_batch(const design::Options& options) {
  serving::Batch batch;
  batch.chunks.assign(static_cast<std::size_t>(options.batch), {.tokens = options.prompt, .computed = 0});
  batch.sampled = batch.new_requests = options.batch;
  batch.padded_tokens = batch.tokens();
  return batch;
}

serving::Batch decode_batch(const design::Options& options) {
  serving::Batch batch;
  batch.contexts.assign(static_cast<std::size_t>(options.batch), options.context);
  batch.sampled = batch.padded_tokens = options.batch;
  batch.launch = serving::Launch::kGraph;
  return batch;
}

void set_rate(const design::Options& options, Priced& priced) {
  const design::PricedStage* decode = priced.stage("decode");
  priced.tokens_per_s = decode != nullptr && decode->ns > 0
                            ? std::optional(static_cast<double>(options.batch) * 1e9 / decode->ns)
                            : std::nullopt;
}

}  // namespace

Result<WhatIfPrices> WhatIfPrices::make(const Arguments& arguments, const ModelSetup& setup, predict::TimesOf times) {
  WhatIfPrices out;
  out.base_ = setup;
  out.times_ = times;
  const std::string name = arguments.get("--tables");
  out.given_ = !name.empty();
  if (!name.empty() && is_run(name)) {
    LLMPROF_LET(const trace::Run run, trace::Run::open(trace::run_folder(name)));
    LLMPROF_LET(out.tables_, predict::tables_from_run(run, times));
  } else if (!name.empty()) {
    LLMPROF_LET(out.tables_, predict::read_tables(name, setup.options.parallel.tensor));
  } else if (const auto device = hw::resolve_device(setup.roof.device); device) {
    const model::Config& config = setup.subject.config;
    const predict::TablesKey key{device->device, config, setup.options.parallel.tensor,
                                 predict::kept_type(config, device->device, "")};
    if (auto kept = predict::kept_tables(key, times)) out.tables_ = std::move(*kept);
  }
  return out;
}

bool WhatIfPrices::is_program(const ModelSetup& setup) const { return program_ && identity(setup) == identity(base_); }

Result<Priced> WhatIfPrices::price(const ModelSetup& setup, Source at_most) {
  LLMPROF_LET(Priced priced, design::price_at_floor(setup, at_most));
  if (at_most == Source::kFloor) return priced;
  ModelSetup whole = setup;
  LLMPROF_LET(whole.options, design::complete(setup.options, setup.subject.config));
  if (at_most == Source::kProgram && is_program(whole)) {
    add_program(whole, priced);
  } else if (Cost* cost = cost_of(whole)) {
    add_tables(*cost, whole, priced);
  }
  return priced;
}

void WhatIfPrices::add_program(const ModelSetup& setup, Priced& priced) const {
  const design::Options& o = setup.options;
  std::vector<design::PricedStage> stages;
  for (const predict::StageSteps& stage : program_->implementation().stages) {
    const bool decode = stage.stage == "decode";
    if (!decode && stage.stage != "prefill") continue;
    const predict::StepSize size = decode ? predict::StepSize{o.batch, o.batch, o.batch * o.context}
                                          : predict::StepSize{o.batch, o.batch * o.prompt, o.batch * o.prompt};
    const predict::StepError error = predict::program_error(*program_, stage, size);
    stages.push_back({stage.stage, program_->step(stage, size).total_ns(), error.least, error.most});
  }
  if (stages.empty()) return;
  priced.source = Source::kProgram, priced.with_host = true, priced.stages = std::move(stages);
  priced.stands_on = fmt::format(
      "the kernels of a recorded step, at times measured on this device ({} {}), and the "
      "host's time as in that run",
      program_->rows().framework, program_->rows().version);
  set_rate(o, priced);
}

void WhatIfPrices::add_tables(Cost& cost, const ModelSetup& setup, Priced& priced) {
  struct Step {
    std::string name;
    serving::Batch batch;
  };
  const auto total = [](const predict::TableStepCost& of, const serving::Batch& batch, predict::BasisTimes& times) {
    double ns = 0;
    for (const predict::OpTime& op : of.explain(batch)) {
      ns += op.ns;
      times.add({op.ns, op.basis}, 1);
    }
    return ns;
  };
  std::vector<design::PricedStage> stages;
  predict::BasisTimes all;
  for (const Step& step :
       {Step{"prefill", prefill_batch(setup.options)}, Step{"decode", decode_batch(setup.options)}}) {
    predict::BasisTimes times, ignored;
    const double ns = total(*cost.in_proportion, step.batch, times);
    if (!(ns > 0)) return;
    const predict::StepError error = predict::step_error(cost.errors, times);
    const double other = cost.by_difference ? total(*cost.by_difference, step.batch, ignored) / ns : 1;
    stages.push_back({step.name, ns, error.least * std::min(1.0, other), error.most * std::max(1.0, other)});
    all += times;
  }
  priced.source = Source::kTables, priced.stages = std::move(stages);
  priced.scaled = cost.by_difference != nullptr;
  priced.notes = cost.notes;
  priced.stands_on = predict::stands_on_words(all);
  if (priced.scaled) priced.stands_on += "; scaled operators count as what they are scaled from";
  set_rate(setup.options, priced);
}

WhatIfPrices::Cost* WhatIfPrices::cost_of(const ModelSetup& setup) {
  const auto [place, fresh] = costs_.try_emplace(identity(setup));
  if (fresh) place->second = make_cost(setup);
  return place->second ? &*place->second : nullptr;
}

std::optional<WhatIfPrices::Cost> WhatIfPrices::make_cost(const ModelSetup& setup) {
  const model::Config& config = setup.subject.config;
  const model::Parallel& parallel = setup.options.parallel;
  const auto device = hw::resolve_device(setup.roof.device);
  if (!device || parallel.pipeline > 1) return std::nullopt;
  predict::ServingInput input{.config = config, .parallel = parallel, .device = *device};
  const predict::TablesKey key{device->device, config, parallel.tensor, predict::kept_type(config, device->device, "")};
  const bool same = identity(setup) == identity(base_);
  if (same) {
    input.tables = tables_;
  } else if (auto kept = predict::kept_tables(key, times_); kept && !given_) {
    input.tables = std::move(*kept);
  } else if (setup.roof.device == base_.roof.device &&
             !predict::use_tables_of(input, tables_, base_.subject.config, base_.options.parallel)) {
    return std::nullopt;
  }
  if (input.tables.empty()) return std::nullopt;
  auto made = predict::step_cost_of(input);
  if (!made) {
    problem_ = fmt::format("operator tables are not used: {}", made.error().message);
    return std::nullopt;
  }
  Cost cost{.in_proportion = std::move(*made), .by_difference = nullptr, .errors = {}, .notes = {}};
  cost.errors = predict::backtest_operators(*cost.in_proportion);
  if (!input.other_tables.empty()) {
    input.tables = input.other_tables;
    if (auto other = predict::step_cost_of(input)) cost.by_difference = std::move(*other);
  }
  cost.notes = input.notes;
  return cost;
}

design::CliffFacts WhatIfPrices::cliff_facts(const ModelSetup& setup, const std::string& engine,
                                             const std::vector<std::string>& settings) {
  design::CliffFacts facts;
  if (Cost* cost = cost_of(setup)) {
    for (const predict::RowJump& jump : predict::row_jumps(*cost->in_proportion))
      facts.jumps.push_back({jump.rows_below, jump.rows_above, jump.ns_below, jump.ns_above});
  }
  const auto device = hw::resolve_device(setup.roof.device);
  if (!device || device->device.kind != "gpu") return facts;
  facts.units = device->device.units;
  const auto memory = static_cast<double>(device->device.memory_bytes);
  auto rules = serving::engine_rules(engine, {memory, device->device.name, 0});
  if (!rules) return facts;
  for (const std::string& setting : settings) {
    if (!serving::set_rule(*rules, setting)) return facts;
  }
  facts.engine = rules->engine + (rules->version.empty() ? "" : " " + rules->version);
  facts.max_num_seqs = rules->max_num_seqs, facts.max_num_batched_tokens = rules->max_num_batched_tokens;
  facts.capture_sizes = rules->capture_sizes();
  const auto needs =
      predict::memory_needs(setup.subject.config, setup.options.parallel,
                            {.max_batched_tokens = std::max<std::int64_t>(1, rules->max_num_batched_tokens),
                             .max_requests = rules->max_num_seqs});
  if (!needs) return facts;
  facts.block_tokens = rules->block_size;
  facts.kv_blocks = rules->num_gpu_blocks;
  if (facts.kv_blocks > 0) return facts;
  if (const auto blocks =
          serving::kv_blocks(*rules, {.device_bytes = memory,
                                               .weight_bytes = needs->weights_bytes,
                                               .activation_bytes = needs->activation_bytes + needs->outside_bytes,
                                               .graph_bytes = needs->graph_bytes,
                                               .kv_bytes_per_token = needs->kv_bytes_per_token}))
    facts.kv_blocks = *blocks;
  return facts;
}

}  // namespace llmprof::app
