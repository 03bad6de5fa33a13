#include "base/json.h"

#include "report/allocator.h"
#include "report/cost.h"
#include "report/device_memory.h"
#include "report/diagnosis_json.h"
#include "report/environment_line.h"
#include "report/functions.h"
#include "report/gpu.h"
#include "report/hardware.h"
#include "report/host.h"
#include "report/idle.h"
#include "report/imported.h"
#include "report/life.h"
#include "report/measures_json.h"
#include "report/metrics.h"
#include "report/page.h"
#include "report/ranges.h"
#include "report/steps.h"
#include "report/tables.h"
#include "report/telemetry.h"
#include "report/waterfall.h"

namespace llmprof::report {
namespace {

using analyze::Efficiency;
using base::Json;
using base::maybe;
using base::text_or_null;

Json run_json(const Page& page) {
  return {{"path", page.run},
          {"created", page.info.created},
          {"command", page.info.command},
          {"source", page.info.source},
          {"clock", page.info.clock},
          {"window", text_or_null(page.info.window)},
          {"format_version", page.info.format_version},
          {"recorded_by", page.info.llmprof_version}};
}

Json coverage_json(const analyze::Coverage& c) {
  return {{"processes", c.processes},
          {"injected", c.injected},
          {"threads", c.threads},
          {"kernels", c.kernels},
          {"ranges", c.ranges},
          {"gemms", c.gemms},
          {"wall_ns", c.wall_ns},
          {"in_stages_ns", c.in_stages_ns},
          {"kernel_ns", c.kernel_ns},
          {"attributed_kernel_ns", c.attributed_kernel_ns},
          {"data_losses", c.data_losses},
          {"gpu_ns", c.gpu_ns},
          {"gpu_stage_ns", c.gpu_stage_ns},
          {"gpu_node_ns", c.gpu_node_ns},
          {"gpu_placed_ns", c.gpu_placed_ns},
          {"gpu_module_ns", c.gpu_module_ns},
          {"estimated_ns", c.estimated_ns},
          {"estimated_placed_ns", c.estimated_placed_ns},
          {"estimated_kernels", c.estimated_kernels},
          {"graphs", c.graphs},
          {"graph_launches", c.graph_launches},
          {"graph_launches_by_node", c.graph_launches_by_node},
          {"kernels_without_launch", c.kernels_without_launch}};
}

Json losses_json(const std::vector<analyze::Loss>& losses) {
  Json out = Json::array();
  for (const analyze::Loss& loss : losses) {
    out.push_back({{"name", loss.name},
                   {"severity", loss.severity},
                   {"count", loss.count},
                   {"unit", loss.unit},
                   {"meaning", loss.meaning},
                   {"remedy", text_or_null(loss.remedy)},
                   {"detail", text_or_null(loss.detail)}});
  }
  return out;
}

Json job_json(const analyze::Summary& summary) {
  const analyze::Job& job = summary.job;
  Json ranks = Json::array();
  for (const analyze::JobRank& rank : job.ranks) {
    ranks.push_back({{"rank", maybe(rank.number)},
                     {"pid", rank.pid},
                     {"devices", rank.devices},
                     {"kernel_ns", rank.kernel_ns},
                     {"data", rank.place.data},
                     {"tensor", rank.place.tensor},
                     {"pipeline", rank.place.pipeline},
                     {"expert", rank.place.expert},
                     {"counts_tokens", rank.leads}});
  }
  return {{"known", job.known},
          {"world", job.world},
          {"data", job.groups.data},
          {"tensor", job.groups.tensor},
          {"pipeline", job.groups.pipeline},
          {"expert", job.groups.expert},
          {"origin", text_or_null(job.origin)},
          {"note", text_or_null(job.note)},
          {"why", text_or_null(job.why)},
          {"sentence", text_or_null(job_words(summary))},
          {"ranks", std::move(ranks)}};
}

Json devices_json(const std::vector<analyze::DeviceCard>& devices) {
  Json out = Json::array();
  for (const analyze::DeviceCard& d : devices) {
    out.push_back({{"kind", d.kind},
                   {"name", d.name},
                   {"chip", text_or_null(d.chip)},
                   {"driver", text_or_null(d.driver)},
                   {"uuid", text_or_null(d.uuid)},
                   {"kernel_ns", d.kernel_ns},
                   {"idle", d.idle},
                   {"units", d.units},
                   {"memory_bytes", d.memory_bytes},
                   {"cache_bytes", d.cache_bytes},
                   {"type", d.type},
                   {"peak_flops", maybe(d.peak_flops)},
                   {"peak_flops_source", text_or_null(d.peak_flops_source)},
                   {"peak_flops_method", text_or_null(d.peak_flops_method)},
                   {"peak_bandwidth", maybe(d.peak_bandwidth)},
                   {"peak_bandwidth_name", text_or_null(d.peak_bandwidth_name)},
                   {"peak_bandwidth_source", text_or_null(d.peak_bandwidth_source)},
                   {"peak_bandwidth_method", text_or_null(d.peak_bandwidth_method)}});
  }
  return out;
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

void add_efficiency(Json& out, const Efficiency& e) {
  out["flops"] = maybe(e.flops);
  out["flops_shapes"] = maybe(e.flops_shapes);
  out["bytes"] = maybe(e.bytes);
  out["flops_per_s"] = maybe(e.flops_per_s);
  out["flops_shapes_per_s"] = maybe(e.flops_shapes_per_s);
  out["bytes_per_s"] = maybe(e.bytes_per_s);
  out["mfu"] = maybe(e.mfu);
  out["mbu"] = maybe(e.mbu);
  out["intensity"] = maybe(e.intensity);
  out["above_ridge"] = maybe(e.above_ridge);
  out["floor_ns"] = maybe(e.floor_ns);
  out["of_floor"] = maybe(e.of_floor);
  out["bound"] = e.bound;
  out["why"] = text_or_null(e.why);
}

Json stage_json(const analyze::Stage& s) {
  Json out = {{"name", s.name},
              {"source", s.source},
              {"confidence", s.confidence},
              {"steps", s.steps},
              {"kernels", s.kernels},
              {"time_ns", s.time_ns},
              {"steps_ns", s.steps_ns},
              {"share", s.share},
              {"device_busy_ns", s.device_busy_ns},
              {"kernel_ns", s.kernel_ns},
              {"estimated_ns", s.estimated_ns},
              {"graph_launches", s.graph_launches},
              {"graph_launches_by_node", s.graph_launches_by_node},
              {"gap_ns", s.gap_ns},
              {"idle_ns", s.idle_ns},
              {"tokens", s.tokens},
              {"tokens_per_s", maybe(s.tokens_per_s)},
              {"step_p50_ns", maybe(s.step_p50_ns)},
              {"step_p90_ns", maybe(s.step_p90_ns)},
              {"step_p99_ns", maybe(s.step_p99_ns)}};
  out["warm_up_steps"] = s.warm_up_steps;
  out["warm_up_ns"] = s.warm_up_ns;
  out["ranks_at_once"] = s.at_once;
  if (s.name == "prefill") {
    out["ttft_ns"] = maybe(s.ttft_ns);
    out["ttft_p90_ns"] = maybe(s.ttft_p90_ns);
    out["ttft_p99_ns"] = maybe(s.ttft_p99_ns);
    out["cold_ttft_ns"] = maybe(s.cold_ttft_ns);
  }
  if (s.name == "verify") {
    out["checked"] = s.checked;
    out["least_taken"] = s.least_taken;
  }
  if (s.name == "decode") {
    out["tpot_p50_ns"] = maybe(s.tpot_p50_ns);
    out["tpot_p90_ns"] = maybe(s.tpot_p90_ns);
    out["tpot_p99_ns"] = maybe(s.tpot_p99_ns);
  }
  add_efficiency(out, s.efficiency);
  out["at_least"] = s.efficiency.at_least;
  out["flops_most"] = maybe(s.efficiency.flops_most);
  out["recomputed_flops"] = maybe(s.efficiency.recomputed_flops);
  out["hfu"] = maybe(s.efficiency.hfu);
  out["bytes_most"] = maybe(s.efficiency.bytes_most);
  out["floor_most_ns"] = maybe(s.efficiency.floor_most_ns);
  return out;
}

Json products_json(const std::vector<analyze::Product>& products) {
  Json out = Json::array();
  for (const analyze::Product& p : products) {
    out.push_back({{"m", p.m},
                   {"n", p.n},
                   {"k", p.k},
                   {"batch", p.batch},
                   {"shape", shape_text(p)},
                   {"calls", p.calls},
                   {"time_ns", p.time_ns},
                   {"flops_per_s", maybe(p.flops_per_s)}});
  }
  return out;
}

Json parts_json(const Page& page, const std::vector<analyze::Part>& parts, bool operators) {
  Json out = Json::array();
  for (const analyze::Part& p : parts) {
    if (!shown(page, p.stage)) continue;
    Json row = {
        {"name", p.name},       {"stage", text_or_null(p.stage)}, {"calls", p.calls},     {"total_ns", p.total_ns},
        {"self_ns", p.self_ns}, {"kernel_ns", p.kernel_ns},       {"time_ns", p.time_ns}, {"share", p.share},
        {"source", p.source},   {"estimated_ns", p.estimated_ns}};
    add_efficiency(row, p.efficiency);
    if (operators) row["products"] = products_json(p.products);
    out.push_back(std::move(row));
  }
  return out;
}

Json unmatched_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::Unmatched& rest : page.summary.unmatched) {
    if (!shown(page, rest.stage)) continue;
    out.push_back({{"stage", rest.stage},
                   {"time_ns", rest.time_ns},
                   {"share", rest.share},
                   {"kernels", rest.kernels},
                   {"kernel_ns", rest.kernel_ns},
                   {"flops_shapes", maybe(rest.flops_shapes)}});
  }
  return out;
}

Json gemms_json(const Page& page) {
  Json out = Json::array();
  for (const analyze::GemmShape& g : page.summary.gemms) {
    if (!shown(page, g.stage)) continue;
    out.push_back(
        {{"library", text_or_null(g.library)},
         {"function", g.function},
         {"type", text_or_null(g.type)},
         {"compute_type", text_or_null(g.compute_type)},
         {"epilogue", text_or_null(g.epilogue)},
         {"algorithms", text_or_null(g.algorithms)},
         {"stage", text_or_null(g.stage)},
         {"m", g.m},
         {"n", g.n},
         {"k", g.k},
         {"batch", g.batch},
         {"calls", g.calls},
         {"time_ns", g.time_ns},
         {"estimated_ns", g.estimated_ns},
         {"shared_ns", g.shared_ns},
         {"peak_type", text_or_null(g.peak_type)},
         {"ops", text_or_null(g.ops)},
         {"flops_per_s", maybe(g.flops_per_s)},
         {"bytes_per_s", maybe(g.bytes_per_s)},
         {"of_peak", maybe(g.of_peak)},
         {"why", g.of_peak ? Json(nullptr) : Json("no time, or no peak FLOP/s is known for this device and type")}});
  }
  return out;
}

}  // namespace

void to_json(const Page& page, base::Json& out) {
  const analyze::Summary& s = page.summary;
  out["run"] = run_json(page);
  out["coverage"] = coverage_json(s.coverage);
  out["losses"] = losses_json(s.losses);
  out["recording_cost"] = cost_json(page);
  Result<Json> environment = base::parse_json(page.info.environment, "environment");
  out["environment"] = environment ? *environment : Json(nullptr);
  out["devices"] = devices_json(s.devices);
  out["model"] = model_json(s);
  out["stages"] = Json::array();
  for (const analyze::Stage& stage : s.stages) {
    if (shown(page, stage.name)) out["stages"].push_back(stage_json(stage));
  }
  out["measures"] = measures_json(s, page.stage);
  out["diagnosis"] = diagnosis_json(s.diagnosis, page.stage);
  out["waterfalls"] = waterfall_json(page);
  out["idle"] = idle_json(page);
  out["modules"] = parts_json(page, s.modules, false);
  out["operators"] = parts_json(page, s.ops, true);
  out["unmatched"] = unmatched_json(page);
  out["ridge"] = maybe(s.ridge);
  out["gemms"] = gemms_json(page);
  out["kernels"] = kernels_json(page);
  out["gpu_by_source"] = sources_json(page);
  out["gaps"] = gaps_json(page);
  out["notes"] = notes_json(page);
  out["peaks_together"] = {
      {"devices", s.busy_devices}, {"flops", maybe(s.peak_flops)}, {"bandwidth", maybe(s.peak_bandwidth)}};
  out["job"] = job_json(s);
  out["telemetry"] = telemetry_json(page);
  out["device_memory"] = device_memory_json(page);
  if (auto allocators = allocator_json(page); !allocators.is_null()) out["allocators"] = std::move(allocators);
  if (auto metrics = metrics_json(page); !metrics.is_null()) out["metrics"] = std::move(metrics);
  out["host"] = host_json(page);
  if (auto life = life_json(page); !life.is_null()) out["life"] = std::move(life);
  out["functions"] = functions_json(page);
  if (!s.host.sampled_stages.empty()) out["sampled_stages"] = sampled_json(page);
  out["stacks"] = stack_coverage_json(page);
  out["blocks"] = blocks_json(page);
  out["ranges"] = range_tree_json(page.summary.range_tree);
  out["training"] = training_json(page);
  out["sources"] = sources_of_json(page);
  out["framework_operators"] = framework_json(page);
  out["attention"] = attention_json(page);
  out["counters"] = counters_json(page);
  out["hardware_counters"] = hardware_json(page);
  out["totals"] = totals_json(page);
}

}  // namespace llmprof::report
