// Everything with hardware counters under the roofs of its device: FLOPs, bytes at each level of memory, rates,
// arithmetic intensity, which roof bounds it and how near it comes. A line per execution of a kernel that was counted,
// per stage, and per class of kernels told apart in samples.
#include <fmt/format.h>

#include "exporters/output_file.h"
#include "exporters/roofline_rows.h"
#include "exporters/selection.h"
#include "hw/catalog.h"

namespace llmprof::exporters {
namespace roofline_csv {
namespace {

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
                            ".csv", roofline_csv::write, true};

}  // namespace llmprof::exporters
