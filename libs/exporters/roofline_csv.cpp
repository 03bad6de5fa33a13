// Everything with hardware counters under the roofs of its device: FLOPs, bytes at each level of memory, rates,
// arithmetic intensity, which roof bounds it and how near it comes. A line per execution of a kernel that was counted,
// per stage, and per class of kernels told apart in samples.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyze/model/kernel_roofline.h"
#include "analyze/sections/counters_summary.h"
#include "base/strings.h"
#include "exporters/output_file.h"
#include "exporters/selection.h"
#include "hw/catalog.h"
#include "hw/peaks.h"

namespace llmprof::exporters {

namespace roofline_csv {
namespace {

// A line of the file (docs/format/import-ncu.md, Roofline): a kernel, a stage, or a class of kernels told apart in
// samples, under the roofs of its device.
struct RooflineRow {
  std::optional<std::int64_t> kernel_id;
  std::string name, device;  // name: of the kernel; "" of a stage
  double time_ns = 0;
  analyze::KernelRoofline point;
  std::string stage, scope, method;  // scope: "kernel", "stage", "unmixed"
  std::optional<double> l2_bytes, l1_bytes;
  std::optional<std::int64_t> measured;  // steps that the values of a stage are the mean of
  std::optional<double> error;           // of values that were told apart, relative
};

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

// The columns of the file, in their order.
struct Column {
  const char* name;
  std::string (*cell)(const RooflineRow&);
};
using Row = const RooflineRow&;
constexpr Column kColumns[] = {
    {"kernel_id", [](Row r) -> std::string { return whole(r.kernel_id); }},
    {"name", [](Row r) -> std::string { return text(r.name); }},
    {"device", [](Row r) -> std::string { return text(r.device); }},
    {"time_ns", [](Row r) -> std::string { return r.time_ns > 0 ? fmt::format("{:.0f}", r.time_ns) : ""; }},
    {"flops", [](Row r) -> std::string { return number(r.point.flops); }},
    {"tensor_flops", [](Row r) -> std::string { return number(r.point.tensor_flops); }},
    {"dram_bytes", [](Row r) -> std::string { return number(r.point.dram_bytes); }},
    {"flops_per_s", [](Row r) -> std::string { return number(r.point.flops_per_s); }},
    {"bytes_per_s", [](Row r) -> std::string { return number(r.point.bytes_per_s); }},
    {"flops_per_byte", [](Row r) -> std::string { return number(r.point.flops_per_byte); }},
    {"type", [](Row r) -> std::string { return r.point.type; }},
    {"peak_flops_per_s", [](Row r) -> std::string { return number(r.point.peak_flops_per_s); }},
    {"peak_flops_source", [](Row r) -> std::string { return r.point.peak_flops_source; }},
    {"peak_bytes_per_s", [](Row r) -> std::string { return number(r.point.peak_bytes_per_s); }},
    {"peak_bytes_source", [](Row r) -> std::string { return r.point.peak_bytes_source; }},
    {"ridge_flops_per_byte",
     [](Row r) -> std::string { return number(per(r.point.peak_flops_per_s, r.point.peak_bytes_per_s)); }},
    {"bound", [](Row r) -> std::string { return r.point.bound; }},
    {"share_of_roof", [](Row r) -> std::string { return number(r.point.share_of_roof); }},
    {"missing",
     [](Row r) -> std::string { return base::csv_text(fmt::format("{}", fmt::join(r.point.missing, "; "))); }},
    {"stage", [](Row r) -> std::string { return text(r.stage); }},
    {"scope", [](Row r) -> std::string { return r.scope; }},
    {"method", [](Row r) -> std::string { return text(r.method); }},
    {"l2_bytes", [](Row r) -> std::string { return number(r.l2_bytes); }},
    {"l1_bytes", [](Row r) -> std::string { return number(r.l1_bytes); }},
    {"flops_per_l2_byte", [](Row r) -> std::string { return number(per(r.point.flops, r.l2_bytes)); }},
    {"flops_per_l1_byte", [](Row r) -> std::string { return number(per(r.point.flops, r.l1_bytes)); }},
    {"roof_flops_per_s", [](Row r) -> std::string { return number(roof(r.point)); }},
    {"measured", [](Row r) -> std::string { return whole(r.measured); }},
    {"error", [](Row r) -> std::string { return number(r.error); }},
};

std::string roofline_header() {
  std::string line;
  for (const Column& column : kColumns) line += (line.empty() ? "" : ",") + std::string(column.name);
  return line + "\n";
}

std::string roofline_line(const RooflineRow& row) {
  std::string line;
  for (const Column& column : kColumns) line += (&column == kColumns ? "" : ",") + column.cell(row);
  return line + "\n";
}

// Counters that a row of a kernel needs, as SQL LIKE patterns over metric names.
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

// Bytes of memory, and their rate: samples know no operations. nullopt where its error is not known, or not below 1.
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

std::string counters_sql(const Selection& selection) {
  std::string wanted;
  for (const std::string& pattern : roofline_row_metrics()) {
    std::string escaped;
    for (const char c : pattern) escaped += c == '_' ? std::string("\\_") : std::string(1, c);
    wanted += fmt::format("{}c.metric LIKE '{}' ESCAPE '\\'", wanted.empty() ? "" : " OR ", escaped);
  }
  return fmt::format(
      "SELECT k.id, k.name, d.name, coalesce(k.time_ns, 0), c.metric, c.value, d.id, coalesce(k.stage, ''), "
      "coalesce(c.method, ''), k.kernel_id IS NOT NULL FROM counter c "
      "JOIN ({}) k ON k.id = c.scope_id JOIN device d ON d.id = k.device_id "
      "WHERE c.scope = 'kernel' AND ({}) ORDER BY k.begin_ns, k.id",
      selected_counted_kernels(selection), wanted);
}

// What the run knows of the device; else the catalogue, by its name.
Result<std::vector<hw::Peak>> peaks_of(const trace::Run& run, std::int64_t device, const std::string& name) {
  LLMPROF_LET(const trace::ResultTable table,
              run.query(fmt::format("SELECT quantity, type, value, unit, source, method FROM peak WHERE device_id = {}",
                                    device)));
  std::vector<hw::Peak> peaks;
  for (const auto& row : table.rows)
    peaks.push_back({row[0].text, row[1].text, row[2].as_double(), row[3].text, row[4].text, row[5].text});
  if (!peaks.empty()) return peaks;
  const hw::DeviceSpec* spec = hw::find_device(name);
  return spec == nullptr ? std::vector<hw::Peak>{} : hw::spec_peaks(*spec);
}

// Lines as they come; kernels are read one after the other.
class Lines {
 public:
  Lines(const Request& request, OutputFile& file) : request_(request), file_(file) {}

  bool add(const std::vector<trace::Value>& row) {
    if (row[0].integer != id_) {
      finish_kernel();
      id_ = row[0].integer;
      row_ = {.name = row[1].text, .device = row[2].text, .stage = row[7].text, .method = row[8].text};
      if (row[9].as_int() != 0) row_.kernel_id = id_;
      counters_ = {row[3].as_double(), {}};
      if (row[6].integer != device_) take_device(row[6].integer, row[2].text);
    }
    counters_.values.emplace(row[4].text, row[5].as_double());
    return failure_.has_value() && !file_.failed();
  }
  void finish_kernel() {
    if (id_ == 0) return;
    fill_kernel(row_, counters_, peaks_);
    write(row_);
    row_ = {};
    id_ = 0;
  }
  void take_device(std::int64_t id, const std::string& name) {
    device_ = id;
    Result<std::vector<hw::Peak>> peaks = peaks_of(request_.run, id, name);
    if (!peaks) failure_ = peaks.error();
    peaks_ = peaks ? std::move(*peaks) : std::vector<hw::Peak>{};
  }
  void write(const RooflineRow& row) {
    file_.write(roofline_line(row));
    ++written_;
  }
  const std::vector<hw::Peak>& peaks() const { return peaks_; }
  const Result<void>& failure() const { return failure_; }
  std::int64_t written() const { return written_; }

 private:
  const Request& request_;
  OutputFile& file_;
  RooflineRow row_;
  analyze::KernelCounters counters_;
  std::vector<hw::Peak> peaks_;
  std::int64_t id_ = 0;  // of the kernel that is being read
  std::int64_t device_ = 0, written_ = 0;
  Result<void> failure_;
};

// Means over the whole run: they cannot be cut to a window of time.
Result<void> write_summaries(const Request& request, Lines& lines, std::vector<std::string>& notes) {
  const analyze::Counters& counters = request.counters;
  if (counters.stages.empty() && counters.unmixed.empty()) return {};
  if (request.selection.begin_ns || request.selection.end_ns) {
    notes.emplace_back("stages and kernels told apart in samples are of the whole run: --window leaves them out");
    return {};
  }
  LLMPROF_LET(const trace::ResultTable device,
              request.run.query("SELECT d.id, d.name FROM counter_window AS w JOIN device AS d ON d.id = w.device_id "
                                "GROUP BY ALL ORDER BY count(*) DESC, d.id LIMIT 1"));
  const std::string name = device.rows.empty() ? "" : device.rows[0][1].text;
  if (!device.rows.empty()) lines.take_device(device.rows[0][0].as_int(), name);
  for (const analyze::CountedStage& stage : counters.stages) {
    if (!request.selection.stage.empty() && stage.stage != request.selection.stage) continue;
    RooflineRow row = stage_row(stage, lines.peaks());
    row.device = name;
    lines.write(row);
  }
  if (!request.selection.stage.empty()) return {};
  for (const analyze::UnmixedClass& kernels : counters.unmixed) {
    std::optional<RooflineRow> row = unmixed_row(kernels, lines.peaks());
    if (!row) continue;
    row->device = name;
    lines.write(*row);
  }
  return {};
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  file.write(roofline_header());
  Written written{{request.output}, 0, {}};
  Lines lines(request, file);
  LLMPROF_TRY(request.run.user_query_each(
      counters_sql(request.selection), [](const std::vector<std::string>&) {},
      [&](const std::vector<trace::Value>& row) { return lines.add(row); }));
  lines.finish_kernel();
  LLMPROF_TRY(write_summaries(request, lines, written.notes));
  LLMPROF_TRY(lines.failure());
  written.records = lines.written();
  if (written.records == 0) {
    return Error{ErrorCode::kNotFound, "the run has no hardware counters of kernels or stages",
                 "llmprof record --counters roofline collects them; or import a CSV of Nsight Compute: llmprof advise "
                 "ncu tells how"};
  }
  LLMPROF_TRY(file.finish());
  return written;
}

}  // namespace
}  // namespace roofline_csv

extern const Exporter kRooflineCsv;
const Exporter kRooflineCsv{"roofline-csv", "kernels and stages with hardware counters under the device's roofs, CSV",
                            ".csv",         roofline_csv::write,
                            true,           ".csv.gz"};

}  // namespace llmprof::exporters
