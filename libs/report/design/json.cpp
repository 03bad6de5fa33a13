#include "base/json.h"

#include "report/design/page.h"
#include "report/design/parts.h"

namespace llmprof::report {
namespace {

using analyze::design::Design;
using analyze::design::Floor;
using analyze::design::Memory;
using analyze::design::Reached;
using analyze::design::Row;
using analyze::design::Stage;
using analyze::design::UsedPeak;
using base::Json;

template <class T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

template <class NumberType>
Json number_json(const NumberType& number) {
  return {{"type", number.type}, {"bytes", number.bytes}};
}

void add_floor(const Floor& floor, Json& out) {
  out["bound"] = floor.bound();
  out["compute_ns"] = known(floor.compute_ns);
  out["memory_ns"] = known(floor.memory_ns);
  out["floor_ns"] = known(floor.ns);
}

template <class CostsType>
void add_costs(const CostsType& costs, Json& out) {
  out["flops"] = costs.flops;
  out["weight_bytes"] = costs.weight_bytes;
  out["kv_bytes"] = costs.kv_bytes;
  out["activation_bytes"] = costs.activation_bytes;
  out["bytes"] = costs.bytes();
}

Json model_json(const Design& d) {
  const auto& c = d.config;
  Json out{{"name", text_or_null(c.name)},
           {"origin", text_or_null(d.origin)},
           {"family", c.family},
           {"layers", c.layers()},
           {"hidden", c.hidden},
           {"vocabulary", c.vocab},
           {"positions", c.positions},
           {"tied_embeddings", c.tied_embeddings},
           {"architecture", d.architecture}};
  out["weight"] = number_json(c.weight);
  out["kv"] = number_json(c.kv);
  out["activation"] = number_json(c.activation);
  out["arithmetic"] = c.arithmetic;
  out["quantization"] = nullptr;
  if (c.quantization) {
    out["quantization"] = {{"method", c.quantization->method},
                           {"weight", number_json(c.quantization->weight)},
                           {"arithmetic", text_or_null(c.quantization->arithmetic)}};
  }
  out["weights_source"] = d.weights_source;
  out["checkpoint"] = nullptr;
  if (d.checkpoint) {
    out["checkpoint"] = {{"format", d.checkpoint->format},
                         {"files", d.checkpoint->files},
                         {"tensors", d.checkpoint->tensors},
                         {"parameters", d.checkpoint->parameters},
                         {"bytes", d.checkpoint->bytes}};
  }
  return out;
}

Json options_json(const Design& d) {
  const auto& o = d.options;
  Json mixed = Json::array();
  for (const auto& s : o.mixed) mixed.push_back({{"count", s.count}, {"tokens", s.tokens}, {"context", s.context}});
  return {{"batch", o.batch},
          {"prompt", o.prompt},
          {"context", o.context},
          {"mixed", std::move(mixed)},
          {"train", o.train},
          {"tensor_parallel", o.parallel.tensor},
          {"pipeline_parallel", o.parallel.pipeline},
          {"expert_parallel", o.parallel.expert}};
}

Json peak_json(const UsedPeak& peak) {
  return {{"type", text_or_null(peak.type)}, {"peak_type", peak.peak_type}, {"per_second", peak.per_second},
          {"source", peak.source},           {"method", peak.method},       {"note", text_or_null(peak.note)}};
}

Json device_json(const Design& d) {
  if (!d.roof.known()) return {{"name", nullptr}, {"why", d.roof.why}};
  Json peaks = Json::array();
  for (const UsedPeak& peak : d.peaks) peaks.push_back(peak_json(peak));
  return {{"name", d.roof.device},
          {"source", d.roof.source},
          {"devices", d.devices},
          {"memory_bytes", d.roof.memory_bytes},
          {"on_chip_bytes", d.roof.on_chip_bytes},
          {"flops_peaks", std::move(peaks)},
          {"bandwidth_peak", d.bandwidth ? peak_json(*d.bandwidth) : Json(nullptr)},
          {"why", nullptr}};
}

Json parameters_json(const Design& d) {
  Json parts = Json::array();
  for (const auto& p : d.parts) parts.push_back({{"part", p.part}, {"parameters", p.parameters}, {"bytes", p.bytes}});
  return {{"total", d.parameters}, {"active", d.active_parameters}, {"parts", std::move(parts)}};
}

Json memory_json(const Memory& m) {
  return {{"weights_bytes", m.weights},
          {"kv_bytes_per_token", m.kv_per_token},
          {"kv_bytes", m.kv},
          {"activation_bytes", m.activations},
          {"needed_bytes", m.needed()},
          {"device_bytes", known(m.device)},
          {"left_for_kv_bytes", known(m.left_for_kv)},
          {"fits", known(m.fits)},
          {"longest_context", known(m.longest_context)},
          {"largest_batch", known(m.largest_batch)}};
}

Json row_json(const Row& row) {
  Json out{{"name", row.name}, {"layers", row.layers}};
  if (row.parameters > 0) out["parameters"] = row.parameters;
  out["arithmetic"] = text_or_null(row.arithmetic);
  add_costs(row, out);
  out["flops_per_byte"] = known(row.intensity);
  add_floor(row.floor, out);
  out["share"] = known(row.share);
  return out;
}

Json rows_json(const std::vector<Row>& rows) {
  Json out = Json::array();
  for (const Row& row : rows) out.push_back(row_json(row));
  return out;
}

Json stage_json(const Stage& s) {
  Json out{{"name", s.name}, {"pass", s.what}, {"tokens", s.tokens}};
  add_costs(s.costs, out);
  out["flops_per_token"] = known(s.flops_per_token());
  out["bytes_per_token"] = known(s.bytes_per_token());
  out["flops_by_type"] = Json::object();
  for (const auto& [type, flops] : s.costs.flops_by_type) out["flops_by_type"][type] = flops;
  out["communication_bytes"] = s.communication_bytes;
  out["flops_per_byte"] = known(s.intensity);
  out["ridge_flops_per_byte"] = known(s.ridge);
  add_floor(s.floor, out);
  out["operators"] = rows_json(s.operators);
  out["layers"] = rows_json(s.layers);
  return out;
}

Json training_json(const analyze::design::Training& t) {
  return {{"weights_bytes", t.memory.weights},
          {"gradients_bytes", t.memory.gradients},
          {"moments_bytes", t.memory.moments},
          {"activation_bytes", t.memory.activations},
          {"needed_bytes", t.memory.total()},
          {"fits", known(t.fits)},
          {"flops", t.flops},
          {"recomputed_flops", t.recomputed_flops},
          {"step_floor_ns", known(t.step_ns)},
          {"tokens_per_s", known(t.tokens_per_s)}};
}

Json reached_json(const Reached& r) {
  return {{"stage", r.stage},
          {"from", r.from},
          {"time_ns", r.time_ns},
          {"flops_per_s", r.flops_per_s},
          {"bytes_per_s", r.bytes_per_s},
          {"mfu", known(r.mfu)},
          {"hfu", known(r.hfu)},
          {"mbu", known(r.mbu)},
          {"floor_ns", known(r.floor_ns)},
          {"floor_share", known(r.floor_share)},
          {"why", text_or_null(r.why)}};
}

void add_head(const Design& d, Json& out) {
  out["model"] = model_json(d);
  out["options"] = options_json(d);
  out["device"] = device_json(d);
  out["caveats"] = d.caveats;
  out["notes"] = d.notes;
}

Json point_json(const analyze::design::SweepPoint& p, bool train) {
  Json out{{"batch", p.load.batch}, {"prompt", p.load.prompt}};
  if (!train) out["context"] = p.load.context;
  out["memory_bytes"] = p.memory_bytes;
  out["fits"] = known(p.fits);
  const auto pass = [&](const char* name, const analyze::design::SweepPoint::Pass& part) {
    Json one{{"flops", part.flops}, {"bytes", part.bytes}, {"flops_per_byte", known(part.intensity())}};
    add_floor(part.floor, one);
    out[name] = std::move(one);
  };
  pass(train ? "step" : "prefill", p.first);
  if (!train) pass("decode", p.decode);
  out["tokens_per_s"] = known(p.tokens_per_s);
  if (!train) out["tokens_per_s_per_sequence"] = known(p.tokens_per_s_per_sequence);
  return out;
}

}  // namespace

void to_json(const DesignPage& page, Json& out) {
  const Design& d = page.design;
  add_head(d, out);
  out["parameters"] = parameters_json(d);
  out["memory"] = memory_json(d.memory);
  out["stages"] = Json::array();
  for (const Stage& stage : d.stages) out["stages"].push_back(stage_json(stage));
  out["speeds"] = {{"ttft_ns", known(d.speeds.ttft_ns)},
                   {"tpot_ns", known(d.speeds.tpot_ns)},
                   {"tokens_per_s", known(d.speeds.tokens_per_s)},
                   {"tokens_per_s_per_sequence", known(d.speeds.tokens_per_s_per_sequence)}};
  out["training"] = d.training ? training_json(*d.training) : Json(nullptr);
  out["measured"] = Json::array();
  for (const Reached& row : page.reached) out["measured"].push_back(reached_json(row));
}

void to_json(const SweepPage& page, Json& out) {
  add_head(page.design, out);
  Json axes = Json::array();
  for (const base::Axis& axis : page.sweep.axes) axes.push_back({{"name", axis.name}, {"values", axis.values}});
  out["axes"] = std::move(axes);
  out["points"] = Json::array();
  for (const auto& point : page.sweep.points) out["points"].push_back(point_json(point, page.sweep.train));
}

void to_json(const DesignDiffPage& page, Json& out) {
  for (const auto& [key, design] : {std::pair{"a", &page.a}, std::pair{"b", &page.b}}) {
    Json one;
    add_head(*design, one);
    out[key] = std::move(one);
  }
  out["rows"] = Json::array();
  for (const auto& row : page.rows) {
    out["rows"].push_back({{"part", row.part},
                           {"name", row.name},
                           {"unit", row.unit.empty() ? Json(nullptr) : Json(row.unit)},
                           {"a", known(row.a)},
                           {"b", known(row.b)},
                           {"ratio", known(row.ratio())}});
  }
}

}  // namespace llmprof::report
