// Digests as JSON: what a baseline file holds.

#include "analyze/diff/digest.h"
#include "base/json.h"

namespace llmprof::analyze {
namespace {

using base::Json;

Json to_json(const Estimate& estimate) {
  return {{"value", estimate.value},
          {"error", base::maybe(estimate.error)},
          {"freedom", estimate.freedom},
          {"samples", estimate.samples}};
}

Json to_json(const MeasureDigest& measure) {
  return {{"name", measure.name},     {"unit", measure.unit},
          {"better", measure.better}, {"of", measure.of},
          {"why", measure.why},       {"value", measure.value ? to_json(*measure.value) : Json(nullptr)}};
}

Json to_json(const PartDigest& part) {
  Json kernels = Json::array();
  for (const KernelUse& kernel : part.kernels) {
    kernels.push_back({{"name", kernel.name}, {"executions", kernel.executions}, {"ns", kernel.ns}});
  }
  return {{"kind", part.kind},
          {"name", part.name},
          {"stage", part.stage},
          {"ns", to_json(part.ns)},
          {"calls", part.calls},
          {"estimated", part.estimated},
          {"flops", base::maybe(part.flops)},
          {"bytes", base::maybe(part.bytes)},
          {"kernels", std::move(kernels)}};
}

Json to_json(const StageDigest& stage) {
  Json terms = Json::array();
  for (const auto& [name, ns] : stage.terms) terms.push_back({{"name", name}, {"ns", ns}});
  return {{"name", stage.name},
          {"quantity", stage.quantity},
          {"steps", stage.steps},
          {"ns", to_json(stage.ns)},
          {"mean_ns", stage.mean_ns},
          {"ranges", stage.ranges ? 1 : 0},
          {"kernels", stage.kernels},
          {"kernel_ns", stage.kernel_ns},
          {"estimated", stage.estimated},
          {"batch", base::maybe(stage.batch)},
          {"context", base::maybe(stage.context)},
          {"tokens", base::maybe(stage.tokens)},
          {"flops", base::maybe(stage.flops)},
          {"bytes", base::maybe(stage.bytes)},
          {"floor_ns", base::maybe(stage.floor_ns)},
          {"sm_clock_hz", base::maybe(stage.sm_clock_hz)},
          {"terms", std::move(terms)}};
}

template <class T>
Json list(const std::vector<T>& rows) {
  Json out = Json::array();
  for (const T& row : rows) out.push_back(to_json(row));
  return out;
}

// Reading: what is missing or of another type is left as it is; files of other versions stay readable.
template <class T>
void read(const Json& from, const char* key, T& into) {
  const auto found = from.is_object() ? from.find(key) : from.end();
  if (!from.is_object() || found == from.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) into = found->get<std::string>();
  } else {
    if (found->is_number()) into = found->get<T>();
  }
}

void read(const Json& from, const char* key, std::optional<double>& into) {
  if (from.is_object() && from.contains(key) && from[key].is_number()) into = from[key].get<double>();
}

Estimate read_estimate(const Json& from) {
  Estimate estimate;
  read(from, "value", estimate.value);
  read(from, "error", estimate.error);
  read(from, "freedom", estimate.freedom);
  read(from, "samples", estimate.samples);
  return estimate;
}

const Json& member(const Json& from, const char* key) {
  static const Json nothing;
  return from.is_object() && from.contains(key) ? from[key] : nothing;
}

MeasureDigest read_measure(const Json& from) {
  MeasureDigest measure;
  read(from, "name", measure.name);
  read(from, "unit", measure.unit);
  read(from, "better", measure.better);
  read(from, "of", measure.of);
  read(from, "why", measure.why);
  if (member(from, "value").is_object()) measure.value = read_estimate(member(from, "value"));
  return measure;
}

StageDigest read_stage(const Json& from) {
  StageDigest stage;
  read(from, "name", stage.name);
  read(from, "quantity", stage.quantity);
  read(from, "steps", stage.steps);
  stage.ns = read_estimate(member(from, "ns"));
  read(from, "mean_ns", stage.mean_ns);
  int ranges = 0;
  read(from, "ranges", ranges);
  stage.ranges = ranges != 0;
  read(from, "kernels", stage.kernels);
  read(from, "kernel_ns", stage.kernel_ns);
  read(from, "estimated", stage.estimated);
  read(from, "batch", stage.batch);
  read(from, "context", stage.context);
  read(from, "tokens", stage.tokens);
  read(from, "flops", stage.flops);
  read(from, "bytes", stage.bytes);
  read(from, "floor_ns", stage.floor_ns);
  read(from, "sm_clock_hz", stage.sm_clock_hz);
  for (const Json& term : member(from, "terms")) {
    auto& [name, ns] = stage.terms.emplace_back();
    read(term, "name", name);
    read(term, "ns", ns);
  }
  return stage;
}

PartDigest read_part(const Json& from) {
  PartDigest part;
  read(from, "kind", part.kind);
  read(from, "name", part.name);
  read(from, "stage", part.stage);
  part.ns = read_estimate(member(from, "ns"));
  read(from, "calls", part.calls);
  read(from, "estimated", part.estimated);
  read(from, "flops", part.flops);
  read(from, "bytes", part.bytes);
  for (const Json& use : member(from, "kernels")) {
    KernelUse& kernel = part.kernels.emplace_back();
    read(use, "name", kernel.name);
    read(use, "executions", kernel.executions);
    read(use, "ns", kernel.ns);
  }
  return part;
}

}  // namespace

Json to_json(const Digest& digest) {
  return {{"name", digest.name},           {"folder", digest.folder},
          {"created", digest.created},     {"command", digest.command},
          {"model", digest.model},         {"device", digest.device},
          {"notes", digest.notes},         {"steps", digest.steps},
          {"kernels", digest.kernels},     {"measures", list(digest.measures)},
          {"stages", list(digest.stages)}, {"parts", list(digest.parts)}};
}

Result<Digest> digest_from_json(const Json& json, std::string_view where) {
  if (!json.is_object() || !json.contains("measures")) {
    return Error{ErrorCode::kCorruptInput, std::string(where) + " holds no run", "save it again"};
  }
  Digest digest;
  read(json, "name", digest.name);
  read(json, "folder", digest.folder);
  read(json, "created", digest.created);
  read(json, "command", digest.command);
  read(json, "model", digest.model);
  read(json, "device", digest.device);
  read(json, "steps", digest.steps);
  read(json, "kernels", digest.kernels);
  for (const Json& note : member(json, "notes")) {
    if (note.is_string()) digest.notes.push_back(note.get<std::string>());
  }
  for (const Json& row : member(json, "measures")) digest.measures.push_back(read_measure(row));
  for (const Json& row : member(json, "stages")) digest.stages.push_back(read_stage(row));
  for (const Json& row : member(json, "parts")) digest.parts.push_back(read_part(row));
  return digest;
}

}  // namespace llmprof::analyze
