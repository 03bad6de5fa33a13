#include <fmt/format.h>

#include <algorithm>

#include "hw/peaks.h"
#include "hw/resolve.h"
#include "pictures/roofline.h"

namespace llmprof::pictures {
namespace {

constexpr std::size_t kMostPoints = 300;
constexpr std::size_t kMostOfKind = 100;

using Rate = std::optional<double>;

// What has FLOPs and bytes stands somewhere; what has only one of them does not.
void add(std::vector<RooflinePoint>& points, RooflinePoint point, const Rate& intensity, const Rate& flops_per_s) {
  if (intensity.value_or(0) <= 0 || flops_per_s.value_or(0) <= 0) return;
  point.intensity = *intensity;
  point.flops_per_s = *flops_per_s;
  points.push_back(std::move(point));
}

void add_parts(std::vector<RooflinePoint>& points, const char* kind, const std::vector<analyze::Part>& parts) {
  for (const analyze::Part& part : parts)
    add(points,
        {.kind = kind,
         .name = part.name,
         .stage = part.stage,
         .time_ns = static_cast<double>(part.time_ns),
         .source = "analytic"},
        part.efficiency.intensity, part.efficiency.flops_per_s);
}

void add_products(std::vector<RooflinePoint>& points, const std::vector<analyze::GemmShape>& gemms) {
  for (const analyze::GemmShape& gemm : gemms) {
    const std::string batch = gemm.batch > 1 ? fmt::format(" x {}", gemm.batch) : "";
    const bool known = gemm.flops_per_s && gemm.bytes_per_s.value_or(0) > 0;
    add(points,
        {.kind = "kernel",
         .name = fmt::format("[{}, {}] x [{}, {}]{} {}{}{}", gemm.m, gemm.k, gemm.k, gemm.n, batch, gemm.type,
                             gemm.ops.empty() ? "" : ": ", gemm.ops),
         .stage = gemm.stage,
         .time_ns = static_cast<double>(gemm.time_ns),
         .source = "shapes"},
        known ? Rate(*gemm.flops_per_s / *gemm.bytes_per_s) : std::nullopt, gemm.flops_per_s);
  }
}

void add_counted(std::vector<RooflinePoint>& points, const std::vector<analyze::CountedKernel>& kernels) {
  for (const analyze::CountedKernel& kernel : kernels)
    add(points,
        {.kind = "kernel",
         .name = kernel.name,
         .stage = "",
         .time_ns = static_cast<double>(kernel.time_ns),
         .source = "counters",
         .level = "dram"},
        kernel.intensity, kernel.flops_per_s);
}

// A point for each level of memory whose bytes were counted: all at the same height.
void add_counted_stages(std::vector<RooflinePoint>& points, const std::vector<analyze::CountedStage>& stages) {
  for (const analyze::CountedStage& stage : stages) {
    const analyze::CountedWork& work = stage.work;
    const std::pair<const char*, Rate> levels[] = {
        {"dram", work.dram_intensity}, {"l2", work.l2_intensity}, {"l1", work.l1_intensity}};
    for (const auto& [level, intensity] : levels)
      add(points,
          {.kind = "stage",
           .name = stage.stage,
           .stage = stage.stage,
           .time_ns = work.time_ns.value_or(0) * static_cast<double>(stage.steps),
           .source = "counters",
           .level = level},
          intensity, work.flops_per_s);
  }
}

// The points with most time of each kind: modules are many, and would crowd out the rest.
std::vector<RooflinePoint> heaviest(std::vector<RooflinePoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const RooflinePoint& a, const RooflinePoint& b) { return a.time_ns > b.time_ns; });
  std::vector<std::pair<std::string, std::size_t>> taken;
  std::erase_if(points, [&](const RooflinePoint& point) {
    auto of_kind =
        std::find_if(taken.begin(), taken.end(), [&](const auto& entry) { return entry.first == point.kind; });
    if (of_kind == taken.end()) of_kind = taken.insert(taken.end(), {point.kind, 0});
    return ++of_kind->second > kMostOfKind;
  });
  if (points.size() > kMostPoints) points.resize(kMostPoints);
  return points;
}

// Of the device that executed most.
Result<std::vector<Roof>> roofs_of(const trace::Run& run, const analyze::DeviceCard& device) {
  LLMPROF_LET(
      const trace::ResultTable rows,
      run.query("SELECT p.quantity, p.type, p.value, p.unit, p.source, p.method, d.name, d.kind FROM peak AS p JOIN "
                "device AS d ON d.id = p.device_id ORDER BY d.id"));
  std::vector<hw::Peak> peaks;
  for (const auto& row : rows.rows) {
    if (row[6].text != device.name || row[7].text != device.kind) continue;
    const hw::Peak peak{row[0].text, row[1].text, row[2].as_double(), row[3].text, row[4].text, row[5].text};
    if (hw::find_peak(peaks, peak.quantity, peak.type) == nullptr) peaks.push_back(peak);
  }
  if (peaks.empty()) peaks = hw::with_spec_peaks({.kind = device.kind, .name = device.name}, {});
  std::vector<Roof> roofs;
  const hw::Peak* memory = hw::find_peak(peaks, "bandwidth", hw::kMemoryStream);
  for (const hw::Peak& peak : peaks) {
    const bool is_flops = peak.quantity == "flops", is_cache = peak.quantity == "bandwidth" && peak.type == "read, L2";
    const bool shown = is_flops ? hw::principal(peak) : is_cache || &peak == memory;
    if (!shown || !(peak.value > 0)) continue;
    Roof roof{.name = is_flops   ? peak.type
                      : is_cache ? "L2 bandwidth"
                                 : "memory bandwidth",
              .flops_per_s = {},
              .bytes_per_s = {},
              .source = peak.source};
    (is_flops ? roof.flops_per_s : roof.bytes_per_s) = peak.value;
    roofs.push_back(std::move(roof));
  }
  return roofs;
}

}  // namespace

Result<Roofline> roofline(const trace::Run& run, const analyze::Summary& summary) {
  Roofline out;
  if (!summary.devices.empty()) {
    const analyze::DeviceCard& device = summary.devices.front();
    out.device =
        summary.busy_devices > 1 ? fmt::format("{}, one of {}", device.name, summary.busy_devices) : device.name;
    LLMPROF_LET(out.roofs, roofs_of(run, device));
  }
  // Kernels execute on one device, stages on all of the job: what each of these reaches.
  const auto devices = static_cast<double>(std::max<std::int64_t>(1, summary.busy_devices));
  for (const analyze::Stage& stage : summary.stages) {
    const Rate& flops = stage.efficiency.flops_per_s;
    add(out.points,
        {.kind = "stage",
         .name = stage.name,
         .stage = stage.name,
         .time_ns = static_cast<double>(stage.time_ns),
         .source = "analytic"},
        stage.efficiency.intensity, flops ? Rate(*flops / devices) : std::nullopt);
  }
  add_parts(out.points, "operator", summary.ops);
  add_parts(out.points, "module", summary.modules);
  add_products(out.points, summary.gemms);
  add_counted(out.points, summary.imported.counted);
  add_counted_stages(out.points, summary.counters.stages);
  out.points = heaviest(std::move(out.points));
  if (out.points.empty())
    out.why = summary.model.empty()
                  ? "no FLOPs and bytes are known: " +
                        (summary.model_why.empty() ? std::string("no model and no matrix products") : summary.model_why)
                  : "no FLOPs and bytes are known of what ran";
  else if (out.roofs.empty())
    out.why = "no peaks of this device are known: llmprof roofline measures them";
  return out;
}

}  // namespace llmprof::pictures
