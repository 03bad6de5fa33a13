// The JSON of a report: the numbers of the summary by the names of their fields, held to their descriptions
// (analyze/tables/, docs/format/json.md). Code is here only where the JSON says something in another shape.

#include "base/json.h"

#include <algorithm>
#include <tuple>

#include "report/diagnosis.h"
#include "report/explain.h"
#include "report/page.h"
#include "report/sections.h"
#include "report/table.h"
#include "report/waterfall.h"

namespace llmprof::report {
namespace {

using base::fields_json;
using base::Json;
using base::maybe;
using base::text_or_null;

// Rows of all stages, or of the one that is shown.
template <class Row>
Json rows_of(const Page& page, std::string_view path, const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    if constexpr (requires { row.stage; }) {
      if (!shown(page, row.stage)) continue;
    }
    all.push_back(fields_json(row));
  }
  return described(path, all);
}

// As rows_of, where the stage is what a row is about.
template <class Row>
Json rows_by_name(const Page& page, std::string_view path, const std::vector<Row>& rows) {
  Json all = Json::array();
  for (const Row& row : rows) {
    if (shown(page, row.name)) all.push_back(fields_json(row));
  }
  return described(path, all);
}

Json cost_json(const Page& page) {
  const analyze::CollectorCost& cost = page.summary.cost;
  Json out = described_fields("recording_cost", cost);
  if (!cost.known) {
    for (auto& [key, value] : out.items()) {
      if (value.is_number_integer()) value = nullptr;
    }
  }
  out["stages"] = rows_by_name(page, "recording_cost.stages[]", cost.stages);
  return out;
}

Json job_json(const Page& page) {
  Json all = fields_json(page.summary.job);
  all["sentence"] = text_or_null(job_words(page.summary, is_predicted(page)));
  return described("job", all);
}

Json model_json(const analyze::Summary& s) {
  Json config = nullptr;
  if (Result<Json> parsed = base::parse_json(s.model, "model"); parsed) config = *parsed;
  return {{"config", config},
          {"source", text_or_null(s.model_source)},
          {"origin", text_or_null(s.model_origin)},
          {"note", text_or_null(s.model_note)},
          {"family", text_or_null(s.model_family)},
          {"parameters", maybe(s.parameters)},
          {"weights_read_bytes", maybe(s.weights_read_bytes)},
          {"weights_fit_cache", s.weights_fit_cache},
          {"why", text_or_null(s.model_why)}};
}

Json telemetry_json(const Page& page) {
  const analyze::Telemetry& telemetry = page.summary.telemetry;
  if (telemetry.devices.empty()) return nullptr;
  Json all = fields_json(telemetry);
  all["slow_clock_below"] = analyze::kSlowClock;
  Json out = described("telemetry", all);
  out["stages"] = rows_of(page, "telemetry.stages[]", telemetry.stages);
  return out;
}

Json points_json(const std::vector<analyze::MemoryPoint>& points) {
  Json out = Json::array();
  for (const analyze::MemoryPoint& point : points) out.push_back({{"ts_ns", point.ts_ns}, {"bytes", point.rss_bytes}});
  return out;
}

Json device_memory_json(const analyze::DeviceMemories& memories) {
  Json devices = Json::array();
  for (const analyze::DeviceMemory& device : memories.devices) {
    Json all = fields_json(device);
    Json allocations = all;
    allocations["over_time"] = points_json(device.over_time);
    all["allocations"] = device.allocations > 0 ? allocations : Json(nullptr);
    if (device.driver_peak_bytes) {
      all["driver"] = {{"first_bytes", maybe(device.driver_first_bytes)},
                       {"peak_bytes", maybe(device.driver_peak_bytes)},
                       {"peak_ns", maybe(device.driver_peak_ns)},
                       {"open_ranges", fields_json(device.driver_open_ranges)},
                       {"over_time", points_json(device.driver_over_time)}};
    } else {
      all["driver"] = nullptr;
    }
    devices.push_back(std::move(all));
  }
  return described("device_memory", {{"devices", devices}, {"allocations_are_segments", memories.caching_allocator}});
}

Json allocators_json(const analyze::Allocators& allocators) {
  Json all = fields_json(allocators);
  for (std::size_t i = 0; i < allocators.devices.size(); ++i) {
    const analyze::DeviceAllocator& device = allocators.devices[i];
    Json& out = all["devices"][i];
    out["held_over_time"] = points_json(device.held_over_time);
    out["events"] = device.allocations > 0 ? Json(out) : Json(nullptr);
  }
  return described("allocators", all);
}

Json metrics_json(const analyze::Metrics& metrics) {
  Json out = described_fields("metrics", metrics);
  for (std::size_t i = 0; i < metrics.gauges.size(); ++i)
    out["gauges"][i]["unit"] = metrics.gauges[i].share ? "share" : "";
  return out;
}

Json host_json(const Page& page) {
  const analyze::Host& host = page.summary.host;
  Json peak = nullptr;
  if (host.peak) {
    peak = fields_json(host.peak->highest);
    peak["nearly"] = fields_json(host.peak->nearly);
  }
  Json out = described("host", {{"readings_per_s", maybe(host.readings_per_s)},
                                {"processes", fields_json(host.processes)},
                                {"memory", fields_json(host.memory)},
                                {"peak", std::move(peak)}});
  out["gains"] = rows_of(page, "host.gains[]", host.gains);
  out["thread_states"] = described_fields("host.thread_states[]", host.waits);
  out["threads"] = described_fields("host.threads[]", host.threads);
  out["cpu_limit"] = host.cpu_limit.periods > 0 ? described_fields("host.cpu_limit", host.cpu_limit) : Json(nullptr);
  out["why"] = host.processes.empty() ? Json(kNoReadings) : Json(nullptr);
  return out;
}

Json life_json(const analyze::Life& life) {
  Json all = fields_json(life);
  all["time_ns"] = life.time_ns();
  return described("life", all);
}

Json blocks_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::Block& block : page.summary.blocks)
    out.push_back({{"name", block.name}, {"stages", rows_of(page, "blocks[].stages[]", block.stages)}});
  return out;
}

Json training_json(const std::vector<analyze::StepSeries>& training) {
  Json out = described_fields("training[]", training);
  for (Json& series : out) {
    for (Json& step : series["steps"]) {
      if (step["tokens"] == 0) step["tokens"] = nullptr;
    }
  }
  return out;
}

// Of very many requests the terminal draws a few: those that waited longest for their first token.
Json drawn_requests_json(const Page& page) {
  analyze::Requests drawn = page.summary.requests;
  std::erase_if(drawn.all, [](const analyze::RequestFigures& each) { return each.warm_up || !each.ttft_ns; });
  const auto end = drawn.all.begin() + static_cast<std::ptrdiff_t>(std::min(page.top, drawn.all.size()));
  std::partial_sort(drawn.all.begin(), end, drawn.all.end(), [](const auto& a, const auto& b) {
    return std::tuple(-*a.ttft_ns, a.id) < std::tuple(-*b.ttft_ns, b.id);
  });
  drawn.all.erase(end, drawn.all.end());
  return described_fields("requests", drawn);
}

Json counters_json(const std::vector<analyze::CountedKernel>& kernels) {
  Json all = fields_json(kernels);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    Json& out = all[i];
    if (kernels[i].time_ns <= 0) out["time_ns"] = nullptr;
    out["stalled_warps"] = Json::object();
    for (const auto& stall : kernels[i].stalls) out["stalled_warps"][stall.reason] = stall.warps;
  }
  return described("counters[]", all);
}

}  // namespace

Json run_facts(const std::string& run, const trace::RunInfo& info) {
  Json all = {{"path", run}, {"window", text_or_null(info.window)}, {"recorded_by", info.llmprof_version}};
  all["created"] = info.created, all["command"] = info.command, all["source"] = info.source;
  all["prediction"] = text_or_null(info.prediction);
  all["clock"] = info.clock, all["format_version"] = info.format_version;
  return all;
}

// The rows that the terminal draws: all that it needs, and made often.
Json tables_json(const Page& page) {
  const analyze::Summary& s = page.summary;
  Json out;
  out["coverage"] = described_fields("coverage", s.coverage);
  out["stages"] = rows_by_name(page, "stages[]", s.stages);
  out["modules"] = rows_of(page, "modules[]", s.modules);
  out["operators"] = rows_of(page, "operators[]", s.ops);
  out["unmatched"] = rows_of(page, "unmatched[]", s.unmatched);
  out["gemms"] = rows_of(page, "gemms[]", s.gemms);
  out["kernels"] = rows_of(page, "kernels[]", s.gpu.kernels);
  out["gpu_by_source"] = {{"by", text_or_null(s.gpu.by)},
                          {"rows", rows_of(page, "gpu_by_source.rows[]", s.gpu.sources)}};
  out["peaks_together"] = {
      {"devices", s.busy_devices}, {"flops", maybe(s.peak_flops)}, {"bandwidth", maybe(s.peak_bandwidth)}};
  out["telemetry"] = telemetry_json(page);
  out["device_memory"] = device_memory_json(s.device_memory);
  if (!s.allocators.devices.empty()) out["allocators"] = allocators_json(s.allocators);
  if (s.metrics.values > 0) out["metrics"] = metrics_json(s.metrics);
  if (!s.requests.all.empty()) out["requests"] = drawn_requests_json(page);
  out["host"] = host_json(page);
  if (s.life.process_id != 0) out["life"] = life_json(s.life);
  out["functions"] = rows_of(page, "functions[]", s.host.functions);
  out["top_functions"] = described_fields("top_functions[]", s.host.top_functions);
  out["python_functions"] = described_fields("python_functions[]", s.host.python_functions);
  if (!s.host.sampled_stages.empty()) out["sampled_stages"] = rows_of(page, "sampled_stages[]", s.host.sampled_stages);
  out["framework_operators"] = described_fields("framework_operators[]", s.imported.framework_ops);
  out["attention"] = rows_of(page, "attention[]", s.imported.attentions);
  out["counters"] = counters_json(s.imported.counted);
  out["totals"] = described_fields("totals[]", s.imported.totals);
  if (!s.imported.reported.empty()) out["reported"] = described_fields("reported[]", s.imported.reported);
  return out;
}

void to_json(const Page& page, base::Json& out) {
  const analyze::Summary& s = page.summary;
  Json all = tables_json(page);
  if (!s.requests.all.empty()) all["requests"] = described_fields("requests", s.requests);
  all["run"] = described("run", run_facts(page.run, page.info));
  all["losses"] = described_fields("losses[]", s.losses);
  all["recording_cost"] = cost_json(page);
  Result<Json> environment = base::parse_json(page.info.environment, "environment");
  all["environment"] = environment ? *environment : Json(nullptr);
  all["devices"] = described_fields("devices[]", s.devices);
  all["model"] = model_json(s);
  all["measures"] = measures_json(s, page.stage);
  all["diagnosis"] = diagnosis_json(s.diagnosis, page.stage);
  all["waterfalls"] = waterfall_json(page);
  all["idle"] = rows_of(page, "idle[]", s.idle);
  all["ridge"] = maybe(s.ridge);
  all["gaps"] = described_fields("gaps[]", s.gpu.gaps);
  all["notes"] = described_fields("notes[]", s.gpu.notes);
  all["job"] = job_json(page);
  all["stacks"] = described_fields("stacks", s.host.stacks);
  all["blocks"] = blocks_json(page);
  all["ranges"] = described_fields("ranges[]", s.range_tree);
  all["training"] = training_json(s.training);
  all["sources"] = described_fields("sources[]", s.imported.sources);
  all["merged"] = described_fields("merged[]", s.imported.merged);
  all["hardware_counters"] = hardware_json(page);
  all["flags"] = flags_of(page);
  out.update(described("llmprof.report", all));
}

base::Json report_json(const Page& page) {
  base::Json out;
  to_json(page, out);
  return out;
}

}  // namespace llmprof::report
