#include "exporters/roofline_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/csv.h"

namespace llmprof::exporters {
namespace {

using analyze::CounterValue;
using analyze::KernelRoofline;

constexpr const char* kL2 = "lts__t_bytes";
constexpr const char* kL2Sectors = "lts__t_sectors";  // what ncu's sets have instead
constexpr double kSectorBytes = 32;
constexpr const char* kL1 = "l1tex__t_bytes";
// Copies of the tensor memory accelerator pass by the counter above.
constexpr const char* kTma = "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld";

std::string number(const std::optional<double>& value) { return value ? fmt::format("{:.10g}", *value) : ""; }
// Nothing, not an empty text, where there is none.
std::string text(const std::string& value) { return value.empty() ? "" : base::csv_text(value); }
std::string whole(const std::optional<std::int64_t>& value) { return value ? std::to_string(*value) : ""; }

std::optional<double> per(const std::optional<double>& flops, const std::optional<double>& bytes) {
  return flops && bytes.value_or(0) > 0 ? std::optional(*flops / *bytes) : std::nullopt;
}

// FLOP/s that the device allows at the intensity of the memory.
std::optional<double> roof(const KernelRoofline& point) {
  if (!point.peak_flops_per_s || !point.peak_bytes_per_s || !point.flops_per_byte) return std::nullopt;
  return std::min(*point.peak_flops_per_s, *point.flops_per_byte * *point.peak_bytes_per_s);
}

std::optional<double> total_of(const analyze::KernelCounters& counters, const std::string& counter) {
  if (const auto sum = counters.values.find(counter + ".sum"); sum != counters.values.end()) return sum->second;
  const auto rate = counters.values.find(counter + ".sum.per_second");
  return rate != counters.values.end() ? std::optional(rate->second * counters.time_ns / 1e9) : std::nullopt;
}

void take_memory_peak(KernelRoofline& point, const std::vector<hw::Peak>& peaks) {
  const hw::Peak* memory = hw::find_peak(peaks, "bandwidth", hw::kMemoryStream);
  if (memory == nullptr) return point.missing.emplace_back("peak of the device's memory"), void();
  point.peak_bytes_per_s = memory->value;
  point.peak_bytes_source = memory->source;
}

void take_flops_peak(KernelRoofline& point, const std::vector<hw::Peak>& peaks) {
  const hw::Peak* peak = analyze::peak_of_arithmetic(point.type, peaks);
  if (peak == nullptr) return;
  point.peak_flops_per_s = peak->value;
  point.peak_flops_source = peak->source;
}

const CounterValue* find(const analyze::UnmixedClass& kernels, std::string_view counter) {
  const auto found = std::find_if(kernels.values.begin(), kernels.values.end(),
                                  [&](const CounterValue& value) { return value.counter == counter; });
  const bool known = found != kernels.values.end() && found->error && *found->error < 1 && std::isfinite(found->value);
  return known ? &*found : nullptr;
}

}  // namespace

std::string roofline_header() {
  return "kernel_id,name,device,time_ns,flops,tensor_flops,dram_bytes,flops_per_s,bytes_per_s,flops_per_byte,type,"
         "peak_flops_per_s,peak_flops_source,peak_bytes_per_s,peak_bytes_source,ridge_flops_per_byte,bound,"
         "share_of_roof,missing,stage,scope,method,l2_bytes,l1_bytes,flops_per_l2_byte,flops_per_l1_byte,"
         "roof_flops_per_s,measured,error\n";
}

std::string roofline_line(const RooflineRow& row) {
  const KernelRoofline& point = row.point;
  std::optional<double> ridge;
  if (point.peak_flops_per_s && point.peak_bytes_per_s) ridge = *point.peak_flops_per_s / *point.peak_bytes_per_s;
  const std::vector<std::string> cells = {whole(row.kernel_id),
                                          text(row.name),
                                          text(row.device),
                                          row.time_ns > 0 ? fmt::format("{:.0f}", row.time_ns) : "",
                                          number(point.flops),
                                          number(point.tensor_flops),
                                          number(point.dram_bytes),
                                          number(point.flops_per_s),
                                          number(point.bytes_per_s),
                                          number(point.flops_per_byte),
                                          point.type,
                                          number(point.peak_flops_per_s),
                                          point.peak_flops_source,
                                          number(point.peak_bytes_per_s),
                                          point.peak_bytes_source,
                                          number(ridge),
                                          point.bound,
                                          number(point.share_of_roof),
                                          base::csv_text(fmt::format("{}", fmt::join(point.missing, "; "))),
                                          text(row.stage),
                                          row.scope,
                                          text(row.method),
                                          number(row.l2_bytes),
                                          number(row.l1_bytes),
                                          number(per(point.flops, row.l2_bytes)),
                                          number(per(point.flops, row.l1_bytes)),
                                          number(roof(point)),
                                          whole(row.measured),
                                          number(row.error)};
  return fmt::format("{}\n", fmt::join(cells, ","));
}

std::vector<std::string> roofline_row_metrics() {
  std::vector<std::string> metrics = analyze::roofline_metrics();
  for (const char* counter : {kL2, kL2Sectors, kL1, kTma}) metrics.push_back(std::string(counter) + ".sum%");
  return metrics;
}

void fill_kernel(RooflineRow& row, const analyze::KernelCounters& counters, const std::vector<hw::Peak>& peaks) {
  row.scope = "kernel";
  row.time_ns = counters.time_ns;
  row.point = analyze::kernel_roofline(counters, peaks);
  row.l2_bytes = total_of(counters, kL2);
  if (const auto sectors = total_of(counters, kL2Sectors); !row.l2_bytes && sectors)
    row.l2_bytes = *sectors * kSectorBytes;
  row.l1_bytes = total_of(counters, kL1);
  if (row.l1_bytes) *row.l1_bytes += total_of(counters, kTma).value_or(0);
}

RooflineRow stage_row(const analyze::CountedStage& stage, const std::vector<hw::Peak>& peaks) {
  const analyze::CountedWork& work = stage.work;
  RooflineRow row{.time_ns = work.time_ns.value_or(0), .stage = stage.stage, .scope = "stage", .method = stage.method};
  KernelRoofline& point = row.point;
  point.flops = work.flops;
  point.tensor_flops = work.tensor_flops;
  point.dram_bytes = work.dram_bytes;
  point.flops_per_s = work.flops_per_s;
  point.bytes_per_s = work.dram_bytes_per_s;
  point.flops_per_byte = work.dram_intensity;
  point.type = work.type;
  point.bound = work.bound;
  point.share_of_roof = work.of_roof;
  if (!point.flops) point.missing.emplace_back("operations");
  if (!point.dram_bytes) point.missing.emplace_back("bytes of the device's memory");
  if (!work.time_ns) point.missing.emplace_back("time");
  take_memory_peak(point, peaks);
  take_flops_peak(point, peaks);
  row.l2_bytes = work.l2_bytes;
  row.l1_bytes = work.l1_bytes;
  row.measured = stage.measured;
  return row;
}

std::optional<RooflineRow> unmixed_row(const analyze::UnmixedClass& kernels, const std::vector<hw::Peak>& peaks) {
  const CounterValue* read = find(kernels, "dram_read_bytes");
  const CounterValue* written = find(kernels, "dram_write_bytes");
  if (read == nullptr || written == nullptr) return std::nullopt;
  const double rate = read->value + written->value;
  if (!(rate > 0)) return std::nullopt;
  RooflineRow row{
      .name = kernels.name, .time_ns = static_cast<double>(kernels.time_ns), .scope = "unmixed", .method = "sampled"};
  row.point.bytes_per_s = rate;
  row.point.dram_bytes = rate * row.time_ns / 1e9;
  row.point.missing = {"operations"};
  take_memory_peak(row.point, peaks);
  // The errors may have the same cause: they are added.
  row.error = (read->value * *read->error + written->value * *written->error) / rate;
  return row;
}

}  // namespace llmprof::exporters
