#include "analyze/design/design.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/design/describe.h"
#include "analyze/design/notes.h"

namespace llmprof::analyze::design {
namespace {

Result<void> check(std::string_view name, std::int64_t value) {
  if (value >= 1 && value <= kMost) return {};
  return Error{ErrorCode::kUsage, fmt::format("{} must be between 1 and {}, not {}", name, kMost, value), ""};
}

std::string counted(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string describe(const std::vector<model::Sequences>& sequences) {
  std::string text;
  for (const model::Sequences& s : sequences) {
    text += fmt::format("{}{} x {} at context {}", text.empty() ? "" : ", ", s.count, counted(s.tokens, "token"),
                        s.context);
  }
  return text;
}

std::vector<NamedPass> inference_passes(const Options& o) {
  std::vector<NamedPass> passes;
  const std::string batch = counted(o.batch, "sequence");
  passes.push_back(
      {"prefill", fmt::format("{} of {}", batch, counted(o.prompt, "token")), model::prefill(o.batch, o.prompt)});
  passes.push_back(
      {"decode", fmt::format("1 token of {} at context {}", batch, o.context), model::decode(o.batch, o.context)});
  if (!o.mixed.empty()) passes.push_back({"mixed", describe(o.mixed), model::mixed(o.mixed)});
  return passes;
}

std::vector<NamedPass> training_passes(const Options& o) {
  const std::string what = fmt::format("{} of {}", counted(o.batch, "sequence"), counted(o.prompt, "token"));
  std::vector<NamedPass> passes;
  passes.push_back({"forward", what, model::train(model::PassKind::kForward, o.batch, o.prompt)});
  passes.push_back({"backward", what, model::train(model::PassKind::kBackward, o.batch, o.prompt)});
  passes.push_back(
      {"optimizer", "AdamW over every parameter", model::train(model::PassKind::kOptimizer, o.batch, o.prompt)});
  return passes;
}

Speeds speeds_of(const Design& design) {
  Speeds speeds;
  const Stage* prefill = design.stage("prefill");
  const Stage* decode = design.stage("decode");
  if (prefill != nullptr) speeds.ttft_ns = prefill->floor.ns;
  if (decode != nullptr) speeds.tpot_ns = decode->floor.ns;
  if (speeds.tpot_ns && *speeds.tpot_ns > 0) {
    speeds.tokens_per_s_per_sequence = 1e9 / *speeds.tpot_ns;
    const double tokens = decode->tokens * static_cast<double>(design.groups);
    speeds.tokens_per_s = tokens * 1e9 / slowest_ns({*decode}).value_or(*speeds.tpot_ns);
  }
  return speeds;
}

Training training_of(const Design& design, const Graphs& graphs) {
  const Options& o = design.options;
  Training training;
  training.memory = training_memory_of(graphs, {o.batch, o.prompt, o.prompt}, o.recompute);
  training.recomputed_flops = training.memory.recomputed_flops;
  if (design.roof.memory_bytes > 0) training.fits = training.memory.total() <= design.roof.memory_bytes;
  Floor step{.compute_ns = 0, .memory_ns = 0, .ns = 0};
  for (const Stage& stage : design.stages) {
    training.flops += stage.costs.flops;
    step += stage.floor;
  }
  training.step_ns = step.ns;
  if (const std::optional<double> slowest = slowest_ns(design.stages)) {
    training.tokens_per_s = design.stages.front().tokens * static_cast<double>(design.groups) / (*slowest * 1e-9);
  }
  return training;
}

}  // namespace

const Stage* Design::stage(std::string_view name) const {
  const auto found = std::ranges::find(stages, name, &Stage::name);
  return found == stages.end() ? nullptr : &*found;
}

Result<Options> complete(Options options, const model::Config& config) {
  if (options.prompt == 0) {
    options.prompt = config.positions > 0 ? std::min(kUsualPrompt, config.positions) : kUsualPrompt;
  }
  if (options.context == 0) options.context = options.prompt;
  LLMPROF_TRY(check("--batch", options.batch));
  LLMPROF_TRY(check("--prompt", options.prompt));
  LLMPROF_TRY(check("--context", options.context));
  return options;
}

model::Conditions conditions_of(const Options& options, const Roof& roof) {
  return {.on_chip_bytes = roof.on_chip_bytes, .latent = options.latent};
}

Result<Design> make_design(const Subject& subject, const Options& wanted, const Roof& roof) {
  LLMPROF_LET(const Options options, complete(wanted, subject.config));
  LLMPROF_LET(const Graphs graphs, make_graphs(subject.config, options.parallel));
  const Ruler ruler(roof, arithmetic_types(graphs));
  Design design{.config = subject.config,
                .origin = subject.origin,
                .checkpoint = subject.checkpoint,
                .options = options,
                .roof = roof};
  design.devices = graphs.devices();
  design.groups = graphs.groups();
  design.architecture = describe_architecture(subject.config);
  design.types = describe_types(subject.config);
  design.weights_source = describe_source(subject.config, subject.checkpoint);
  design.parameters = model::parameters(graphs.whole);
  design.active_parameters = model::active_parameters(graphs.whole);
  design.parts = model::parameters_by_part(graphs.whole);
  design.memory = memory_of(graphs, {options.batch, options.prompt, options.context}, roof.memory_bytes);
  for (const NamedPass& pass : options.train ? training_passes(options) : inference_passes(options)) {
    design.stages.push_back(cost_stage(graphs, pass, conditions_of(options, roof), ruler));
  }
  if (options.train) design.training = training_of(design, graphs);
  if (!options.train) design.speeds = speeds_of(design);
  design.peaks = ruler.peaks();
  design.bandwidth = ruler.bandwidth();
  design.caveats = caveats_of(design, ruler, model::weights_read_bytes(graphs.stages.front()));
  design.notes = notes_of(design);
  design.notes.insert(design.notes.end(), subject.notes.begin(), subject.notes.end());
  return design;
}

}  // namespace llmprof::analyze::design
