// The table that torch.profiler prints: totals per operator and kernel, a run of its own.
#include "importers/importer.h"

#include <fmt/format.h>

#include <unordered_set>

#include "importers/input.h"
#include "importers/key_averages/table.h"
#include "importers/sink.h"

namespace llmprof::importers {
namespace key_averages {
namespace {

int sniff(std::string_view head) {
  return head.find("# of Calls") != std::string_view::npos && head.find("Self CPU") != std::string_view::npos ? 85 : 0;
}

bool has_cpu_time(const MeasuredRow& row) { return row.cpu_ns.value_or(0) > 0 || row.self_cpu_ns.value_or(0) > 0; }

// A row with time of the device only is a kernel or a copy; a second row of a name that the host spent time in is what
// the device did under an annotation of that name, and counts the kernels again.
std::string_view kind_of(const MeasuredRow& row, const std::unordered_set<std::string_view>& of_host) {
  if (has_cpu_time(row)) return "operator";
  if (row.self_device_ns.value_or(0) <= 0) return "operator";
  return of_host.contains(row.name) ? "range" : "kernel";
}

void add_rows(const MeasuredTable& table, Sink& sink) {
  std::unordered_set<std::string_view> of_host;
  for (const MeasuredRow& row : table.rows) {
    if (has_cpu_time(row)) of_host.insert(row.name);
  }
  for (const MeasuredRow& row : table.rows) {
    trace::SummaryRow out{.id = sink.new_id(), .name = sink.name(row.name), .kind = sink.name(kind_of(row, of_host))};
    out.calls = row.calls;
    out.self_cpu_ns = row.self_cpu_ns, out.cpu_ns = row.cpu_ns;
    out.self_device_ns = row.self_device_ns, out.device_ns = row.device_ns;
    out.cpu_bytes = row.cpu_bytes, out.device_bytes = row.device_bytes;
    out.flops = row.flops;
    if (!row.shapes.empty()) out.shapes = sink.name(row.shapes);
    sink.add(out);
  }
  if (!table.cpu_total_ns && !table.device_total_ns) return;
  sink.add(trace::SummaryRow{.id = sink.new_id(),
                             .name = sink.name("all rows, also those that were not printed"),
                             .kind = sink.name("total"),
                             .self_cpu_ns = table.cpu_total_ns,
                             .self_device_ns = table.device_total_ns});
}

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string text, input.read_all(kMaxMeasuredBytes));
  const BadLine bad_line = [&](std::size_t line, const std::string&) {
    sink.lose(trace::Loss::kInputDamaged, 1, "rows of the table that could not be read", fmt::format("line {}", line));
  };
  LLMPROF_LET(const MeasuredTable table, parse_key_averages(text, "", bad_line));
  sink.lose(trace::Loss::kInputIgnored, table.further_tables, "further tables behind the first");
  sink.set_facts({.tool = "torch.profiler, printed table"});
  add_rows(table, sink);
  sink.add(trace::NoteRow{
      .ts_ns = 0,
      .subject = sink.name("key_averages"),
      .text = sink.name("A printed table: totals only, times rounded to four or five digits, long names shortened, and "
                        "only as many rows as were printed.")});
  return {};
}

}  // namespace
}  // namespace key_averages

extern const Importer kKeyAverages;
const Importer kKeyAverages{"key-averages", "PyTorch profiler, printed table", Role::kSummary, key_averages::sniff,
                            key_averages::parse};

}  // namespace llmprof::importers
