// llmprof export: a run, or a part of it, as files that other tools open.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "analyze/context.h"
#include "analyze/derive.h"
#include "analyze/summary.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "exporters/exporter.h"
#include "given_names.h"
#include "record/control/window_options.h"
#include "record/open_run.h"
#include "run_head.h"
#include "verb.h"

namespace llmprof::app {
namespace export_verb {
namespace {

using exporters::Exporter;

constexpr Option kOptions[] = {
    {"--type", "-t", "", "FORMAT", "",
     "the format: one of those that `--formats` lists; where only one has the ending of FILE, it may be left out"},
    {"--output", "-o", "", "FILE", "",
     "where to, with an ending of the format (.gz compresses); default: the name of the run with the format's ending; "
     "- "
     "is standard output"},
    {"--force", "-f", "", "", "", "overwrite what is there"},
    {"--window", "", "", "A:B", "",
     "only what overlaps this time, counted from the begin of the run: 1.5s:2s, 250us:, :3s"},
    {"--stage", "", "", "NAME", "", "only this stage"},
    {"--table", "", "", "NAMES", "", "csv, json, parquet, sqlite: only these tables, with commas between them"},
    {"--formats", "", "", "", "", "list the formats"},
    {"--json", "", "", "", "", "say what was written as JSON"},
};
constexpr Positional kPositionals[] = {{"RUN", false}};

Result<void> list_formats(bool json) {
  base::TextTable table({{"format", base::Align::kLeft}, {"writes", base::Align::kLeft, true}});
  base::Json head = json_head("llmprof.export_formats");
  for (const Exporter* exporter : exporters::exporters()) {
    const std::string ending = exporter->extension.empty() ? "/" : std::string(exporter->extension);
    table.add({std::string(exporter->name), fmt::format("{} ({})", exporter->title, ending)});
    head["formats"].push_back(
        {{"name", std::string(exporter->name)}, {"title", std::string(exporter->title)}, {"ending", ending}});
  }
  print(json ? base::to_text(head) : table.render(100, 0));
  return {};
}

std::vector<const Exporter*> all_exporters() { return {exporters::exporters().begin(), exporters::exporters().end()}; }

// The endings that a file of this format may have; none: it is a folder.
std::vector<std::string_view> endings_of(const Exporter& exporter) {
  if (exporter.extension.empty()) return {};
  std::vector<std::string_view> endings{exporter.extension};
  for (const std::string_view other : base::split(exporter.other_endings, ' ')) {
    if (!other.empty()) endings.push_back(other);
  }
  return endings;
}

// The formats whose files end like this.
std::vector<const Exporter*> exporters_of_file(const std::string& file) {
  std::vector<const Exporter*> found;
  for (const Exporter* exporter : exporters::exporters()) {
    const auto ends = [&](std::string_view ending) { return file.ends_with(ending); };
    if (std::ranges::any_of(endings_of(*exporter), ends)) found.push_back(exporter);
  }
  return found;
}

Result<const Exporter*> exporter_of(const Arguments& arguments) {
  const std::string type = arguments.get("--type");
  if (const Exporter* found = exporters::find_exporter(type)) return found;
  const std::vector<const Exporter*> by_file = exporters_of_file(arguments.get("--output"));
  if (type.empty() && by_file.size() == 1) return by_file.front();
  std::vector<std::string_view> known;
  for (const Exporter* exporter : type.empty() && !by_file.empty() ? by_file : all_exporters())
    known.push_back(exporter->name);
  return Error{
      ErrorCode::kUsage,
      type.empty() ? "export needs a format: -t FORMAT" : fmt::format("there is no format {}", base::printable(type)),
      fmt::format("{}formats: {}", base::did_you_mean(type, known), fmt::join(known, ", "))};
}

// The first and last moment of anything in the run.
constexpr const char* kBegin =
    "SELECT min(t) FROM (SELECT min(begin_ns) AS t FROM kernel UNION ALL SELECT min(begin_ns) FROM graph_launch UNION "
    "ALL "
    "SELECT min(begin_ns) FROM \"range\" UNION ALL SELECT min(begin_ns) FROM op UNION ALL SELECT min(begin_ns) FROM "
    "api "
    "UNION ALL SELECT min(ts_ns) FROM sample UNION ALL SELECT min(ts_ns) FROM telemetry)";

Result<std::optional<std::int64_t>> window_end(const trace::Run& run, const std::string& text) {
  if (text.empty()) return std::optional<std::int64_t>{};
  auto parsed = record::parse_moment(text);
  if (!parsed) return Error{ErrorCode::kUsage, "--window: " + parsed.error().message, "--window 1.5s:2s"};
  LLMPROF_LET(const trace::ResultTable begin, run.query(kBegin));
  return std::optional<std::int64_t>{begin.rows[0][0].as_int() + *parsed};
}

Result<exporters::Selection> selection_of(const Arguments& arguments, const trace::Run& run) {
  exporters::Selection selection;
  selection.stage = arguments.get("--stage");
  if (const std::string window = arguments.get("--window"); !window.empty()) {
    const std::size_t colon = window.find(':');
    if (colon == std::string::npos)
      return Error{ErrorCode::kUsage, fmt::format("--window wants two times, not '{}'", base::printable(window)),
                   "--window 1.5s:2s"};
    LLMPROF_LET(selection.begin_ns, window_end(run, window.substr(0, colon)));
    LLMPROF_LET(selection.end_ns, window_end(run, window.substr(colon + 1)));
  }
  if (selection.stage.empty()) return selection;
  LLMPROF_LET(const trace::ResultTable stages, run.query("SELECT DISTINCT stage FROM step ORDER BY 1"));
  std::vector<std::string> names;
  for (const auto& row : stages.rows) names.push_back(row[0].text);
  LLMPROF_TRY(check_stage(selection.stage, names));
  return selection;
}

Result<std::string> output_of(const Arguments& arguments, const Exporter& exporter, const trace::Run& run) {
  std::string output = arguments.get("--output");
  if (output.empty()) {
    output = std::filesystem::path(run.folder()).stem().string() +
             (exporter.extension.empty() ? "." + std::string(exporter.name) : std::string(exporter.extension));
  }
  if (!exporter.extension.empty()) LLMPROF_TRY(check_ending("-o", output, endings_of(exporter)));
  std::error_code none;
  if (std::filesystem::is_other(output, none)) {  // a finished file takes its name: a device or pipe would be gone
    return Error{ErrorCode::kUsage, fmt::format("{} is not a regular file", base::printable(output)),
                 "-o - writes to standard output"};
  }
  const bool there = base::is_file(output) || base::is_directory(output);
  if (there && !arguments.on("--force")) {
    return Error{ErrorCode::kUsage, fmt::format("{} is there already", base::printable(output)),
                 "choose another name with -o, or overwrite with -f"};
  }
  return output;
}

std::vector<std::string> tables_in(const Arguments& arguments) {
  const std::string text = arguments.get("--table");
  std::vector<std::string> names;
  for (const std::string_view name : base::split(text, ',')) {
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

// Viewers hold the whole file in memory: what is too large for most of them is said before it is written.
Result<void> warn_of_size(const Exporter& exporter, const exporters::Request& request) {
  constexpr double kLargeBytes = 50e6;
  if (exporter.estimate == nullptr) return {};
  LLMPROF_LET(const double bytes, exporter.estimate(request));
  if (bytes < kLargeBytes) return {};
  const bool part = !request.selection.stage.empty() || request.selection.begin_ns || request.selection.end_ns;
  fmt::print(stderr, "About {}{}. {} a part.\n", base::human_bytes(bytes),
             request.output.ends_with(".gz") ? " before compression" : "",
             part ? "A shorter --window exports" : "--stage NAME or --window A:B exports");
  return {};
}

// A file that was written under a temporary name, to standard output. Its name is gone before the first byte: a reader
// that closes the pipe ends us here.
Result<void> move_to_stdout(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return base::errno_error(ErrorCode::kIo, path, errno);
  std::filesystem::remove(path);
  std::string buffer(1 << 20, '\0');
  for (std::size_t n = 1; n > 0;) {
    n = std::fread(buffer.data(), 1, buffer.size(), file);
    print(std::string_view(buffer).substr(0, n));
  }
  std::fclose(file);
  return {};
}

void tell(const exporters::Written& written) {
  double bytes = 0;
  for (const std::string& file : written.files) bytes += static_cast<double>(base::file_bytes(file));
  for (const std::string& note : written.notes) fmt::print(stderr, "note: {}\n", note);
  const std::string where =
      written.files.size() == 1
          ? written.files[0]
          : fmt::format("{} files in {}", written.files.size(),
                        written.files.empty() ? "" : std::filesystem::path(written.files[0]).parent_path().string());
  fmt::print(stderr, "{} records, {}: {}\n", written.records, base::human_bytes(bytes), base::printable(where));
}

Result<void> tell_json(const trace::Run& run, const Exporter& exporter, const exporters::Written& written) {
  LLMPROF_LET(base::Json head, run_head("llmprof.export", run));
  head["format"] = std::string(exporter.name);
  head["records"] = written.records;
  head["files"] = base::Json::array();
  for (const std::string& file : written.files)
    head["files"].push_back({{"path", file}, {"bytes", base::file_bytes(file)}});
  head["notes"] = written.notes;
  print(base::to_text(head));
  return {};
}

Result<void> export_run(const Arguments& arguments) {
  if (arguments.on("--formats")) return list_formats(arguments.on("--json"));
  LLMPROF_LET(const Exporter* const exporter, exporter_of(arguments));
  LLMPROF_LET(const RunArgument given, run_argument(arguments));
  const base::Progress progress = progress_line();
  LLMPROF_LET(trace::Run run, record::open_run(given.run, progress));
  LLMPROF_LET(const analyze::AnalysisContext analysis, analyze::find_context(run, {}));
  LLMPROF_TRY(analyze::ensure_derived(run, analysis, progress));
  LLMPROF_LET(const exporters::Selection selection, selection_of(arguments, run));
  const bool to_stdout = arguments.get("--output") == "-" || arguments.get("--output") == "/dev/stdout";
  if (to_stdout && exporter->extension.empty()) {
    return Error{ErrorCode::kUsage, fmt::format("{} writes several files: it needs a folder", exporter->name),
                 "-o FOLDER"};
  }
  LLMPROF_LET(const std::string output,
              to_stdout ? Result<std::string>(fmt::format("{}/.export.{}", run.folder(), ::getpid()))
                        : output_of(arguments, *exporter, run));
  exporters::Request request{run, selection, output, tables_in(arguments), progress};
  LLMPROF_TRY(warn_of_size(*exporter, request));
  if (exporter->counters) {
    LLMPROF_LET(analyze::Summary summary,
                analyze::summarise(run, {.sections = {analyze::Section::kCounters}}, progress));
    request.counters = std::move(summary.counters);
  }
  LLMPROF_LET(const exporters::Written written, exporter->write(request));
  if (!to_stdout) {
    if (arguments.on("--json")) return tell_json(run, *exporter, written);
    tell(written);
    return {};
  }
  return move_to_stdout(output);
}

Result<int> run(const Arguments& arguments) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error with a message, as a full disk is
  LLMPROF_TRY(export_run(arguments));
  return 0;
}

}  // namespace
}  // namespace export_verb

extern const Verb kExport;
const Verb kExport{
    "export", "write a run for other tools", export_verb::kOptions, export_verb::kPositionals, false, export_verb::run};

}  // namespace llmprof::app
