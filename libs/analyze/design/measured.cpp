#include <fmt/format.h>

#include "analyze/design/design.h"

namespace llmprof::analyze::design {

namespace {

struct Work {
  double flops = 0, bytes = 0;
  Floor floor{.compute_ns = 0, .memory_ns = 0, .ns = 0};
  std::optional<double> model_compute_ns = 0;

  Work& operator+=(const Stage& stage) {
    const bool known = model_compute_ns && stage.model_compute_ns;
    model_compute_ns = known ? std::optional(*model_compute_ns + *stage.model_compute_ns) : std::nullopt;
    flops += stage.costs.flops;
    bytes += stage.costs.bytes();
    floor += stage.floor;
    return *this;
  }
};

// MBU says nothing where the weights stay in the cache; the caveat about it stands first on the page.
bool weights_stay_on_chip(const Design& design) {
  return design.roof.on_chip_bytes > 0 && design.memory.weights <= static_cast<double>(design.roof.on_chip_bytes);
}

void explain(Reached& row, const Design& design) {
  if (!design.roof.known()) row.why = "no device: no peaks to compare with";
  if (design.roof.known() && weights_stay_on_chip(design)) row.why = "no MBU: the weights fit the last-level cache";
  if (design.roof.known() && !row.mfu) row.why = "the device has no peak for this arithmetic";
  if (row.mfu && *row.mfu > 1)
    row.why = "above the peak: the measurement, the types or the peak are not those of this run";
  if (row.floor_share && *row.floor_share > 1 && row.why.empty()) {
    row.why = "faster than the floor: batch, context, types or device are not those of this run";
  }
}

Reached against(const Work& work, double time_ns, std::optional<double> floor_ns, const Design& design) {
  // The stages of a pipeline take turns: each device works on its own part only.
  const double turns = design.options.parallel.pipeline;
  Reached row;
  row.time_ns = time_ns;
  row.flops_per_s = work.flops / turns / (time_ns * 1e-9);
  row.bytes_per_s = work.bytes / turns / (time_ns * 1e-9);
  if (work.model_compute_ns) row.mfu = *work.model_compute_ns / time_ns;
  if (work.floor.memory_ns && !weights_stay_on_chip(design)) row.mbu = *work.floor.memory_ns / turns / time_ns;
  row.floor_ns = floor_ns;
  if (floor_ns) row.floor_share = *floor_ns / time_ns;
  explain(row, design);
  return row;
}

Result<void> check_positive(std::string_view name, const std::optional<double>& value) {
  if (!value || (*value > 0 && *value < 1e18)) return {};
  return Error{ErrorCode::kUsage, fmt::format("{} must be above 0", name), ""};
}

// Tokens/s may come from a pipeline with a batch in every stage; a latency is that of one batch.
Result<Reached> of_stage(const Design& design, std::string_view name, double time_ns, std::string from, bool rate) {
  const Stage* stage = design.stage(name);
  if (stage == nullptr) {
    return Error{ErrorCode::kUsage, fmt::format("{} is of inference, and --train asks for training", from),
                 "use --measured-tps"};
  }
  Work work;
  work += *stage;
  Reached row = against(work, time_ns, rate ? slowest_ns({*stage}) : stage->floor.ns, design);
  row.stage = name;
  row.from = std::move(from);
  return row;
}

Reached of_training(const Design& design, double tokens_per_s) {
  Work work;
  for (const Stage& stage : design.stages) work += stage;
  const double tokens = design.stages.front().tokens * static_cast<double>(design.groups);
  Reached row = against(work, tokens / tokens_per_s * 1e9, slowest_ns(design.stages), design);
  row.stage = "training step";
  row.from = fmt::format("--measured-tps {:g}", tokens_per_s);
  const double executed = work.flops > 0 ? 1 + design.training->recomputed_flops / work.flops : 1;
  if (row.mfu) row.hfu = *row.mfu * executed;
  return row;
}

}  // namespace

Result<std::vector<Reached>> reached(const Design& design, const Measurement& measurement) {
  LLMPROF_TRY(check_positive("--measured-tps", measurement.tokens_per_s));
  LLMPROF_TRY(check_positive("--measured-ttft", measurement.ttft_ns));
  LLMPROF_TRY(check_positive("--measured-tpot", measurement.tpot_ns));
  std::vector<Reached> rows;
  if (measurement.ttft_ns) {
    LLMPROF_LET(Reached row, of_stage(design, "prefill", *measurement.ttft_ns, "--measured-ttft", false));
    rows.push_back(std::move(row));
  }
  if (measurement.tpot_ns) {
    LLMPROF_LET(Reached row, of_stage(design, "decode", *measurement.tpot_ns, "--measured-tpot", false));
    rows.push_back(std::move(row));
  }
  if (measurement.tokens_per_s && design.training) rows.push_back(of_training(design, *measurement.tokens_per_s));
  if (measurement.tokens_per_s && !design.training) {
    const double tokens = design.options.batch * design.groups;
    LLMPROF_LET(Reached row, of_stage(design, "decode", tokens / *measurement.tokens_per_s * 1e9,
                                      fmt::format("--measured-tps {:g}", *measurement.tokens_per_s), true));
    rows.push_back(std::move(row));
  }
  return rows;
}

namespace {

class Rows {
 public:
  explicit Rows(std::string_view part) : part_(part) {}
  void add(std::string name, std::string_view unit, std::optional<double> a, std::optional<double> b) {
    if (a || b) rows.push_back({std::string(part_), std::move(name), unit, a, b});
  }
  void count(std::string name, std::int64_t a, std::int64_t b) {
    add(std::move(name), "", static_cast<double>(a), static_cast<double>(b));
  }
  std::vector<DiffRow> rows;

 private:
  std::string_view part_;
};

std::optional<double> number(const std::optional<std::int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> part_parameters(const Design& design, std::string_view part) {
  for (const model::PartParameters& p : design.parts) {
    if (p.part == part) return static_cast<double>(p.parameters);
  }
  return std::nullopt;
}

std::vector<DiffRow> model_rows(const Design& a, const Design& b) {
  Rows out("model");
  out.count("parameters", a.parameters, b.parameters);
  out.count("active parameters", a.active_parameters, b.active_parameters);
  for (const model::PartParameters& p : a.parts) {
    out.add(p.part + " parameters", "", static_cast<double>(p.parameters), part_parameters(b, p.part));
  }
  for (const model::PartParameters& p : b.parts) {
    if (!part_parameters(a, p.part)) {
      out.add(p.part + " parameters", "", std::nullopt, static_cast<double>(p.parameters));
    }
  }
  out.count("layers", a.config.layers(), b.config.layers());
  out.count("hidden", a.config.hidden, b.config.hidden);
  out.count("vocabulary", a.config.vocab, b.config.vocab);
  return std::move(out.rows);
}

std::vector<DiffRow> memory_rows(const Design& a, const Design& b) {
  Rows out("memory");
  out.add("weights", "B", a.memory.weights, b.memory.weights);
  out.add("KV cache per token", "B", a.memory.kv_per_token, b.memory.kv_per_token);
  out.add("KV cache of the batch", "B", a.memory.kv, b.memory.kv);
  out.add("activations", "B", a.memory.activations, b.memory.activations);
  out.add("needed", "B", a.memory.needed(), b.memory.needed());
  out.add("longest context", "", number(a.memory.longest_context), number(b.memory.longest_context));
  out.add("largest batch", "", number(a.memory.largest_batch), number(b.memory.largest_batch));
  if (a.training && b.training) {
    out.add("training", "B", a.training->memory.total(), b.training->memory.total());
  }
  return std::move(out.rows);
}

std::vector<DiffRow> stage_rows(const Stage& a, const Stage& b) {
  Rows out(a.name);
  out.add("FLOPs", "FLOP", a.costs.flops, b.costs.flops);
  out.add("FLOPs per token", "FLOP", a.flops_per_token(), b.flops_per_token());
  out.add("bytes", "B", a.costs.bytes(), b.costs.bytes());
  out.add("bytes per token", "B", a.bytes_per_token(), b.bytes_per_token());
  out.add("intensity", "FLOP/B", a.intensity, b.intensity);
  out.add("floor", "ns", a.floor.ns, b.floor.ns);
  return std::move(out.rows);
}

}  // namespace

std::vector<DiffRow> diff(const Design& a, const Design& b) {
  // What people ask first: how much faster, then whether it fits, then why.
  Rows out("speed");
  out.add("tokens/s per sequence", "tokens/s", a.speeds.tokens_per_s_per_sequence, b.speeds.tokens_per_s_per_sequence);
  out.add("tokens/s in total", "tokens/s", a.speeds.tokens_per_s, b.speeds.tokens_per_s);
  if (a.training && b.training) {
    out.add("training tokens/s", "tokens/s", a.training->tokens_per_s, b.training->tokens_per_s);
  }
  std::vector<DiffRow> rows = std::move(out.rows);
  const auto append = [&](std::vector<DiffRow> more) { rows.insert(rows.end(), more.begin(), more.end()); };
  append(memory_rows(a, b));
  for (const Stage& stage : a.stages) {
    if (const Stage* other = b.stage(stage.name)) append(stage_rows(stage, *other));
  }
  append(model_rows(a, b));
  return rows;
}

}  // namespace llmprof::analyze::design
