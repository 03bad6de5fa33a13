#include "analyze/design/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/design/stage.h"
#include "base/human.h"
#include "model/checkpoint/checkpoint.h"
#include "model/config.h"

namespace llmprof::analyze::design {

namespace {

// ---- the architecture in sentences ---------------------------------------------------------------------------------

std::string describe(const model::Attention& a) {
  std::string text;
  if (a.latent()) {
    text = fmt::format("{} heads of {} (keys) and {} (values), a latent of {} + {} cached (MLA)", a.heads, a.qk_dim,
                       a.v_dim, a.kv_rank, a.rope_dim);
  } else {
    const std::string size =
        a.qk_dim == a.v_dim ? fmt::format("{}", a.qk_dim) : fmt::format("{} (keys) and {} (values)", a.qk_dim, a.v_dim);
    const char* kind = a.kv_heads == a.heads ? "MHA" : a.kv_heads == 1 ? "MQA" : "GQA";
    text = fmt::format("{} heads of {}, {} for keys and values ({})", a.heads, size, a.kv_heads, kind);
  }
  if (a.window > 0) text += fmt::format(", window {}", a.window);
  if (a.chunk > 0) text += fmt::format(", chunks of {}", a.chunk);
  return "attention: " + text;
}

std::string describe(const model::Mlp& m) {
  const std::string gated = m.gated ? "gated, " : "";
  if (m.experts == 0) return fmt::format("MLP: {}width {}", gated, m.width);
  std::string text = fmt::format("MoE: {} of {} experts, {}width {}", m.experts_per_token, m.experts, gated, m.width);
  if (m.shared_width > 0) text += fmt::format(", shared width {}", m.shared_width);
  return text;
}

// Sentences with the layers they are true of, in the order of their first layer.
using Sentences = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

void add(Sentences& sentences, std::string text, std::int64_t layer) {
  for (auto& [known, layers] : sentences) {
    if (known != text) continue;
    layers.push_back(layer);
    return;
  }
  sentences.push_back({std::move(text), {layer}});
}

void append(const Sentences& sentences, std::size_t all, std::vector<std::string>& out) {
  for (const auto& [text, layers] : sentences) {
    const bool everywhere = layers.size() == all;
    out.push_back(everywhere ? text : fmt::format("{} (layers {})", text, layer_numbers(layers)));
  }
}

std::vector<std::string> describe_architecture(const model::Config& config) {
  Sentences attention, mlp;
  for (std::size_t i = 0; i < config.kind_of_layer.size(); ++i) {
    const model::LayerKind& kind = config.kinds.at(config.kind_of_layer[i]);
    const auto layer = config.first_layer + static_cast<std::int64_t>(i);
    add(attention, describe(kind.attention), layer);
    add(mlp, describe(kind.mlp), layer);
  }
  std::vector<std::string> out;
  append(attention, config.kind_of_layer.size(), out);
  append(mlp, config.kind_of_layer.size(), out);
  return out;
}

std::string describe_types(const model::Config& config) {
  std::string weights = config.weight.type;
  std::string products = config.arithmetic;
  if (config.quantization) {
    weights = fmt::format("{} where quantised ({}), else {}", config.quantization->weight.type,
                          config.quantization->method, config.weight.type);
    if (!config.quantization->arithmetic.empty()) products = config.quantization->arithmetic + " and " + products;
  }
  if (!config.stored.empty()) weights = "as the checkpoint holds them";
  return fmt::format("weights {}, KV cache {}, activations {}, products {}", weights, config.kv.type,
                     config.activation.type, products);
}

std::string describe_source(const model::Config& config, const std::optional<model::Checkpoint>& checkpoint) {
  if (config.stored.empty() || !checkpoint) return "analytic, from the config";
  return fmt::format("exact, from the headers of {} {} file{}: {} in {} tensors", checkpoint->files.size(),
                     checkpoint->format, checkpoint->files.size() == 1 ? "" : "s",
                     base::human_bytes(static_cast<double>(checkpoint->bytes)), checkpoint->tensors);
}

// ---- what a reader must know before the numbers --------------------------------------------------------------------

void add_model_caveats(const Design& design, std::vector<std::string>& out) {
  for (const model::Caveat& caveat : design.config.caveats) {
    out.push_back(caveat.field.empty() ? caveat.meaning : caveat.field + ": " + caveat.meaning);
  }
  const std::int64_t longest = std::max(design.options.prompt, design.options.context);
  if (design.config.positions > 0 && longest > design.config.positions) {
    out.push_back(fmt::format("{} tokens are more than the {} positions this model was made for", longest,
                              design.config.positions));
  }
}

void add_device_caveats(const Design& design, const hw::Roofline& roofline, double weights_read_bytes,
                        std::vector<std::string>& out) {
  const Roof& roof = design.roof;
  if (!roof.known()) {
    out.push_back(roof.why.empty() ? "no device: no floors" : roof.why);
    return;
  }
  for (const UsedPeak& peak : roofline.peaks()) {
    if (!peak.note.empty()) out.push_back(peak.note);
    if (peak.method.find(hw::kShortOfCpu) != std::string::npos) {
      out.push_back("the peaks were measured on a busy machine and are too low: " + peak.method);
    }
  }
  for (const std::string& type : roofline.unknown_types()) {
    out.push_back(fmt::format("{} has no peak for {}, nor for a type that could stand in: floors are unknown",
                              roof.device, type));
  }
  if (!roofline.bandwidth()) out.push_back(roof.device + " has no memory bandwidth: floors are unknown");
  if (roof.on_chip_bytes > 0 && weights_read_bytes <= static_cast<double>(roof.on_chip_bytes)) {
    out.push_back(
        fmt::format("the weights ({}) fit the last-level cache ({}): a run may read them faster than memory, "
                    "so times bound by memory are no floors",
                    base::human_bytes(weights_read_bytes), base::human_bytes(static_cast<double>(roof.on_chip_bytes))));
  }
}

// What turns numbers into bounds, or keeps them unknown. `weights_read_bytes`: of one pass on one device.
std::vector<std::string> caveats_of(const Design& design, const hw::Roofline& roofline, double weights_read_bytes) {
  std::vector<std::string> out;
  add_model_caveats(design, out);
  add_device_caveats(design, roofline, weights_read_bytes, out);
  return out;
}

// What the numbers rest on: conventions, devices, types.
std::vector<std::string> notes_of(const Design& design) {
  std::vector<std::string> out;
  out.push_back(
      "Analytic lower bounds: matrix products only (2MNK), attention causal, logits for sampled positions, each byte "
      "moved once. A real run needs more.");
  if (design.roof.on_chip_bytes > 0) {
    out.push_back(fmt::format("Activations of an operator count as moved where they exceed the {} on chip.",
                              base::human_bytes(static_cast<double>(design.roof.on_chip_bytes))));
  } else {
    out.push_back("On-chip memory is unknown: every activation counts as moved, so bytes of activations are no bound.");
  }
  if (design.devices > 1) {
    out.push_back(
        fmt::format("{} devices: costs, memory and floors are those of the one with most; communication is "
                    "not in the floors.",
                    design.devices));
  }
  if (design.options.parallel.pipeline > 1) {
    out.push_back(
        "Costs are added over the stages of the pipeline, which one pass goes through one after the other; tokens/s in "
        "total are with a batch in every stage, and memory is that of one batch.");
  }
  if (design.groups > 1) {
    out.push_back(
        fmt::format("The batch is that of each of the {} groups of devices that share the experts.", design.groups));
  }
  for (const model::Caveat& left_out : design.config.notes) out.push_back(left_out.field + ": " + left_out.meaning);
  return out;
}

// ---- passes, speeds, training --------------------------------------------------------------------------------------

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
  const hw::Roofline roofline(roof.peaks, roof.device, model::arithmetic_types(graphs.whole));
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
    design.stages.push_back(cost_stage(graphs, pass, conditions_of(options, roof), roofline));
  }
  if (options.train) design.training = training_of(design, graphs);
  if (!options.train) design.speeds = speeds_of(design);
  design.peaks = roofline.peaks();
  design.bandwidth = roofline.bandwidth();
  design.caveats = caveats_of(design, roofline, model::weights_read_bytes(graphs.stages.front()));
  design.notes = notes_of(design);
  design.notes.insert(design.notes.end(), subject.notes.begin(), subject.notes.end());
  return design;
}

}  // namespace llmprof::analyze::design
