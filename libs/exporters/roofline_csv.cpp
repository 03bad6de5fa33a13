// Every kernel with hardware counters under the roofs of its device: FLOPs, bytes, rates, arithmetic intensity, which
// roof bounds it and how near it comes. A line per execution.
#include <fmt/format.h>

#include "analyze/kernel_roofline.h"
#include "base/csv.h"
#include "exporters/output_file.h"
#include "exporters/selection.h"
#include "hw/catalog.h"

namespace llmprof::exporters {
namespace {

constexpr const char* kHeader =
    "kernel_id,name,device,time_ns,flops,tensor_flops,dram_bytes,flops_per_s,bytes_per_s,flops_per_byte,type,"
    "peak_flops_per_s,peak_flops_source,peak_bytes_per_s,peak_bytes_source,ridge_flops_per_byte,bound,share_of_roof,"
    "missing\n";

std::string number(const std::optional<double>& value) { return value ? fmt::format("{:.10g}", *value) : ""; }

struct Kernel {
  std::int64_t id = 0;
  std::string name, device;
  std::vector<hw::Peak> peaks;
  analyze::KernelCounters counters;
};

std::string line_of(const Kernel& kernel) {
  const analyze::KernelRoofline point = analyze::kernel_roofline(kernel.counters, kernel.peaks);
  std::optional<double> ridge;
  if (point.peak_flops_per_s && point.peak_bytes_per_s) ridge = *point.peak_flops_per_s / *point.peak_bytes_per_s;
  return fmt::format("{},{},{},{:.0f},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", kernel.id,
                     base::csv_text(kernel.name), base::csv_text(kernel.device), kernel.counters.time_ns,
                     number(point.flops), number(point.tensor_flops), number(point.dram_bytes),
                     number(point.flops_per_s), number(point.bytes_per_s), number(point.flops_per_byte), point.type,
                     number(point.peak_flops_per_s), point.peak_flops_source, number(point.peak_bytes_per_s),
                     point.peak_bytes_source, number(ridge), point.bound, number(point.share_of_roof),
                     base::csv_text(fmt::format("{}", fmt::join(point.missing, "; "))));
}

std::string counters_sql(const Selection& selection) {
  std::string wanted;
  for (const std::string& pattern : analyze::roofline_metrics()) {
    std::string escaped;
    for (const char c : pattern) escaped += c == '_' ? std::string("\\_") : std::string(1, c);
    wanted += fmt::format("{}c.metric LIKE '{}' ESCAPE '\\'", wanted.empty() ? "" : " OR ", escaped);
  }
  return fmt::format(
      "SELECT k.id, k.name, d.name, k.end_ns - k.begin_ns, c.metric, c.value, d.id FROM counter c "
      "JOIN ({}) k ON k.id = c.scope_id JOIN device d ON d.id = k.device_id "
      "WHERE c.scope = 'kernel' AND ({}) ORDER BY k.begin_ns, k.id",
      selected_kernels(selection), wanted);
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

Result<Written> write(const Request& request) {
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  file.write(kHeader);
  Written written{{request.output}, 0, {}};
  Kernel kernel;
  std::int64_t device = 0;
  Result<void> failure;
  const auto finish = [&] {
    if (kernel.id == 0) return;
    file.write(line_of(kernel));
    ++written.records;
  };
  LLMPROF_TRY(request.run.user_query_each(
      counters_sql(request.selection), [](const std::vector<std::string>&) {},
      [&](const std::vector<trace::Value>& row) {
        if (row[0].integer != kernel.id) {
          finish();
          kernel = {row[0].integer, row[1].text, row[2].text, std::move(kernel.peaks), {row[3].as_double(), {}}};
          if (row[6].integer != device) {
            device = row[6].integer;
            Result<std::vector<hw::Peak>> peaks = peaks_of(request.run, device, kernel.device);
            if (!peaks) failure = peaks.error();
            kernel.peaks = peaks ? std::move(*peaks) : std::vector<hw::Peak>{};
          }
        }
        kernel.counters.values.emplace(row[4].text, row[5].as_double());
        return failure.has_value() && !file.failed();
      }));
  LLMPROF_TRY(failure);
  finish();
  if (written.records == 0) {
    return Error{ErrorCode::kNotFound, "the run has no hardware counters of kernels",
                 "llmprof advise ncu tells how to collect them; import the CSV, then export it again"};
  }
  LLMPROF_TRY(file.finish());
  return written;
}

}  // namespace

extern const Exporter kRooflineCsv;
const Exporter kRooflineCsv{"roofline-csv", "kernels with hardware counters under the device's roofs, CSV", ".csv",
                            write};

}  // namespace llmprof::exporters
