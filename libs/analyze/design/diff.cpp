#include "analyze/design/diff.h"

namespace llmprof::analyze::design {
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
  std::vector<DiffRow> rows = model_rows(a, b);
  const auto append = [&](std::vector<DiffRow> more) { rows.insert(rows.end(), more.begin(), more.end()); };
  append(memory_rows(a, b));
  for (const Stage& stage : a.stages) {
    if (const Stage* other = b.stage(stage.name)) append(stage_rows(stage, *other));
  }
  Rows out("speed");
  out.add("tokens/s per sequence", "tokens/s", a.speeds.tokens_per_s_per_sequence, b.speeds.tokens_per_s_per_sequence);
  out.add("tokens/s in total", "tokens/s", a.speeds.tokens_per_s, b.speeds.tokens_per_s);
  if (a.training && b.training) {
    out.add("training tokens/s", "tokens/s", a.training->tokens_per_s, b.training->tokens_per_s);
  }
  append(std::move(out.rows));
  return rows;
}

}  // namespace llmprof::analyze::design
