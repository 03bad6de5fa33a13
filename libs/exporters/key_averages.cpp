// The table that PyTorch's profiler prints, key_averages().table(): the same columns, units and totals.
#include <fmt/format.h>

#include "exporters/op_totals.h"
#include "exporters/output_file.h"

namespace llmprof::exporters {
namespace key_averages {
namespace {

constexpr std::size_t kNameWidth = 55, kWidth = 12;
constexpr std::size_t kMostRows = 10'000;
constexpr const char* kTitles[] = {"Self CPU %", "Self CPU",    "CPU total %", "CPU total",     "CPU time avg",
                                   "Self CUDA",  "Self CUDA %", "CUDA total",  "CUDA time avg", "# of Calls"};

std::string time_text(double ns) {
  if (ns >= 1e9) return fmt::format("{:.3f}s", ns / 1e9);
  if (ns >= 1e6) return fmt::format("{:.3f}ms", ns / 1e6);
  return fmt::format("{:.3f}us", ns / 1e3);
}

std::string percent(double part, double whole) { return fmt::format("{:.2f}%", whole > 0 ? 100 * part / whole : 0); }

std::string fitted(std::string name) {
  for (char& c : name) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return name.size() <= kNameWidth ? name : name.substr(0, kNameWidth - 3) + "...";
}

std::string rule() {
  std::string line(kNameWidth, '-');
  for (std::size_t i = 0; i < std::size(kTitles); ++i)
    line += "  " + std::string(std::max(kWidth, std::string_view(kTitles[i]).size()), '-');
  return line + "  \n";
}

std::string line_of(const std::string& name, const std::vector<std::string>& cells) {
  std::string line = fmt::format("{:>{}}", name, kNameWidth);
  for (std::size_t i = 0; i < cells.size(); ++i)
    line += fmt::format("  {:>{}}", cells[i], std::max(kWidth, std::string_view(kTitles[i]).size()));
  return line + "  \n";
}

// The table has no word for what is not known: it stands as 0, as PyTorch writes it.
std::string row_text(const OpTotal& row, const OpTotals& all) {
  const double self_cpu_ns = row.self_cpu_ns.value_or(0), cpu_ns = row.cpu_ns.value_or(0);
  const double self_device_ns = row.self_device_ns.value_or(0), device_ns = row.device_ns.value_or(0);
  const auto calls = static_cast<double>(std::max<std::int64_t>(row.calls, 1));
  return line_of(fitted(row.name), {percent(self_cpu_ns, all.self_cpu_ns), time_text(self_cpu_ns),
                                    percent(cpu_ns, all.self_cpu_ns), time_text(cpu_ns), time_text(cpu_ns / calls),
                                    time_text(self_device_ns), percent(self_device_ns, all.self_device_ns),
                                    time_text(device_ns), time_text(device_ns / calls), fmt::format("{}", row.calls)});
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(const OpTotals totals, op_totals(request, false));
  LLMPROF_LET(OutputFile file, OutputFile::create(request.output));
  file.write(rule() + line_of("Name", {std::begin(kTitles), std::end(kTitles)}) + rule());
  Written written{{request.output}, 0, {}};
  for (const OpTotal& row : totals.rows) {
    if (static_cast<std::size_t>(written.records) == kMostRows) break;
    file.write(row_text(row, totals));
    ++written.records;
  }
  file.write(rule());
  file.write(fmt::format("Self CPU time total: {}\nSelf CUDA time total: {}\n", time_text(totals.self_cpu_ns),
                         time_text(totals.self_device_ns)));
  LLMPROF_TRY(file.finish());
  if (totals.rows.size() > kMostRows)
    written.notes.push_back(fmt::format("the first {} of {} rows", kMostRows, totals.rows.size()));
  if (std::string note = note_on(totals); !note.empty()) written.notes.push_back(std::move(note));
  return written;
}

}  // namespace
}  // namespace key_averages

extern const Exporter kKeyAverages;
const Exporter kKeyAverages{"key-averages", "the table that PyTorch's profiler prints", ".txt", key_averages::write};

}  // namespace llmprof::exporters
