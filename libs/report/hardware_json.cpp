// Everything that hardware counters say, as JSON: docs/format/json.md, hardware_counters.
#include "base/json.h"
#include "report/hardware.h"
#include "report/tables.h"

namespace llmprof::report {
namespace {

using analyze::CounterValue;
using base::Json;
using base::maybe;
using base::text_or_null;

Json values_json(const std::vector<CounterValue>& values) {
  Json out = Json::array();
  for (const CounterValue& v : values) {
    out.push_back({{"counter", v.counter},
                   {"value", v.value},
                   {"unit", v.unit},
                   {"denominator", text_or_null(v.denominator)},
                   {"spread", maybe(v.spread)},
                   {"error", maybe(v.error)},
                   {"occurrences", v.occurrences},
                   {"method", v.method}});
  }
  return out;
}

Json work_json(const analyze::CountedWork& w) {
  return {{"time_ns", maybe(w.time_ns)},
          {"flops", maybe(w.flops)},
          {"tensor_flops", maybe(w.tensor_flops)},
          {"dram_bytes", maybe(w.dram_bytes)},
          {"l2_bytes", maybe(w.l2_bytes)},
          {"l1_bytes", maybe(w.l1_bytes)},
          {"dram_intensity", maybe(w.dram_intensity)},
          {"l2_intensity", maybe(w.l2_intensity)},
          {"l1_intensity", maybe(w.l1_intensity)},
          {"flops_per_s", maybe(w.flops_per_s)},
          {"dram_bytes_per_s", maybe(w.dram_bytes_per_s)},
          {"type", text_or_null(w.type)},
          {"bound", text_or_null(w.bound)},
          {"of_roof", maybe(w.of_roof)}};
}

Json stages_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::CountedStage& s : page.summary.counters.stages) {
    if (!shown(page, s.stage)) continue;
    out.push_back({{"stage", s.stage},
                   {"steps", s.steps},
                   {"measured", s.measured},
                   {"method", s.method},
                   {"work", work_json(s.work)},
                   {"hfu", maybe(s.hfu)},
                   {"hfu_type", text_or_null(s.hfu_type)},
                   {"redundancy", maybe(s.redundancy)},
                   {"values", values_json(s.values)}});
  }
  return out;
}

Json modules_json(const analyze::Counters& c) {
  Json out = Json::array();
  for (const analyze::CountedModule& m : c.modules)
    out.push_back({{"name", m.name}, {"measured", m.measured}, {"values", values_json(m.values)}});
  return out;
}

Json unmixed_json(const analyze::Counters& c) {
  Json out = Json::array();
  for (const analyze::UnmixedClass& u : c.unmixed)
    out.push_back({{"name", u.name}, {"time_ns", u.time_ns}, {"values", values_json(u.values)}});
  return out;
}

Json evidence_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::QuantityEvidence& e : page.summary.counters.evidence) {
    if (!shown(page, e.stage)) continue;
    out.push_back({{"stage", e.stage},
                   {"quantity", e.quantity},
                   {"unit", e.unit},
                   {"analytic", maybe(e.analytic)},
                   {"shapes", maybe(e.shapes)},
                   {"counted", maybe(e.counted)},
                   {"explanation", text_or_null(e.explanation)}});
  }
  return out;
}

Json occupancy_json(const analyze::Counters& c) {
  Json out = Json::array();
  for (const analyze::KernelOccupancy& o : c.occupancy)
    out.push_back({{"kernel", o.kernel},
                   {"achieved", maybe(o.achieved)},
                   {"theoretical", maybe(o.theoretical)},
                   {"limiter", text_or_null(o.limiter)}});
  return out;
}

Json stalls_json(const analyze::Counters& c) {
  Json out = Json::array();
  for (const analyze::KernelStalls& k : c.stalls) {
    Json reasons = Json::array(), places = Json::array();
    for (const auto& [reason, share] : k.reasons) reasons.push_back({{"reason", reason}, {"share", share}});
    for (const analyze::StallPlace& p : k.places)
      places.push_back({{"file", text_or_null(p.file)},
                        {"line", maybe(p.line)},
                        {"pc_offset", p.pc_offset},
                        {"reason", p.reason},
                        {"samples", p.samples},
                        {"share", p.share}});
    out.push_back({{"kernel", k.kernel},
                   {"samples", k.samples},
                   {"share", k.share},
                   {"reasons", std::move(reasons)},
                   {"places", std::move(places)}});
  }
  return out;
}

}  // namespace

Json hardware_json(const Page& page) {
  if (!has_hardware(page)) return nullptr;
  const analyze::Counters& c = page.summary.counters;
  return {{"method", text_or_null(c.method)},
          {"set", text_or_null(asked_set(page))},
          {"chip", text_or_null(c.chip)},
          {"notes", c.notes},
          {"windows", c.windows},
          {"samples", c.samples},
          {"period_ns", maybe(c.period_ns)},
          {"cost_ns", c.cost_ns},
          {"clock_shift_ns", maybe(c.clock_shift_ns)},
          {"clock_fit", maybe(c.clock_fit)},
          {"stages", stages_json(page)},
          {"ranges", modules_json(c)},
          {"evidence", evidence_json(page)},
          {"unmixed", unmixed_json(c)},
          {"unmixed_why", text_or_null(c.unmixed_why)},
          {"occupancy", occupancy_json(c)},
          {"stall_samples", c.stall_samples},
          {"stall_unknown", c.stall_unknown},
          {"stalls", stalls_json(c)}};
}

}  // namespace llmprof::report
