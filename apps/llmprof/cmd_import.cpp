// llmprof import: files of other tools as a run.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "analyze/job/job.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "given_names.h"
#include "importers/import.h"
#include "importers/importer.h"
#include "record/record.h"
#include "record/run/capture.h"
#include "record/run/model_notes.h"
#include "run_head.h"
#include "verb.h"

namespace llmprof::app {
namespace import_verb {
namespace {

namespace fs = std::filesystem;
using importers::Imported;
using importers::ImportedFile;
using importers::ImportLoss;

constexpr Option kOptions[] = {
    {"--output", "-o", "", "NAME", "", "Where the run goes. Without it: the name of the first file, here."},
    {"--force", "-f", "", "", "", "Replace an existing run of that name."},
    {"--as", "", "", "FORMAT", "", "The format of all files. Without it: by their content."},
    {"--model", "", "", "NAME|PATH", "",
     "The model that the program ran, for the reports: a built-in name, a folder, a config.json or a .gguf file."},
    {"--parallel", "", "", "GROUPS", "",
     "How ranks divide the model: tp=2,pp=4,dp=2,ep=8 (tensor, pipeline, data, expert), in the order in which ranks "
     "are "
     "counted, for the reports."},
    {"--max-plain", "", "", "SIZE", "",
     "Refuse compressed files that expand to more. Without it: 64 GiB, or 200 times the file if that is more."},
    {"--no-sandbox", "", "", "", "",
     "Read the files in this process. Only for files that you trust, where the system has no seccomp filters."},
    {"--formats", "", "", "", "", "List the formats, and end."},
    {"--quiet", "-q", "", "", "", "No tally."},
    {"--json", "", "", "", "", "Print the tally as JSON."},
};
constexpr Positional kPositionals[] = {{"FILE", false, true}};

constexpr int kLossy = 3;

std::string_view name_of(importers::Role role) {
  switch (role) {
    case importers::Role::kTrace:
      return "trace";
    case importers::Role::kLog:
      return "log";
    case importers::Role::kReadings:
      return "readings";
    default:
      return "summary";
  }
}

int list_formats(bool json) {
  if (json) {
    base::Json out = json_head("llmprof.import");
    out["formats"] = base::Json::array();
    for (const importers::Importer* importer : importers::importers())
      out["formats"].push_back(
          {{"name", importer->name}, {"title", importer->title}, {"kind", name_of(importer->role)}});
    print(base::to_text(out));
    return 0;
  }
  std::string text;
  for (const importers::Importer* importer : importers::importers())
    text += fmt::format("{:<16} {:<9} {}\n", importer->name, name_of(importer->role), importer->title);
  print(text);
  return 0;
}

// "trace.pt.trace.json.gz" is the run "trace".
std::string default_name(const std::string& file) {
  constexpr std::array<std::string_view, 16> kEndings{".gz",   ".zst",     ".json",    ".trace",   ".pt",     ".sqlite",
                                                      ".db",   ".csv",     ".log",     ".txt",     ".pickle", ".pkl",
                                                      ".prom", ".metrics", ".hatchet", ".nsys-rep"};
  std::string name = fs::path(file).filename().string();
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view ending : kEndings) {
      if (name.size() <= ending.size() || !name.ends_with(ending)) continue;
      name.resize(name.size() - ending.size());
      cut = true;
    }
  }
  return name + ".llmprof";
}

std::string run_folder_of(const Arguments& arguments) {
  std::string name = arguments.get("--output");
  if (name.empty()) return default_name(arguments.positionals.front());
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name.ends_with(".llmprof") ? name : name + ".llmprof";
}

// The run is made under a temporary name: an existing one is there until the new one is whole.
Result<Imported> import_beside(const std::vector<std::string>& files, const std::string& folder,
                               const importers::ImportOptions& options) {
  const fs::path place(folder);
  const std::string temporary =
      (place.parent_path() / fmt::format(".{}.{}.tmp", place.filename().string(), ::getpid())).string();
  LLMPROF_LET(Imported imported, importers::import_files(files, temporary, options, progress_line()));
  record::remove_run_folder(folder);
  if (::rename(temporary.c_str(), folder.c_str()) != 0) {
    const int error = errno;
    record::remove_run_folder(temporary);
    return base::errno_error(ErrorCode::kIo, folder, error);
  }
  imported.folder = folder;
  return imported;
}

std::string detail_of(const ImportLoss& lost) {
  const std::string name = fs::path(lost.file).filename().string();
  return lost.detail.empty() ? name : name + ": " + lost.detail;
}

void tell_text(const Imported& imported, double seconds) {
  std::string text;
  double bytes = 0;
  for (const ImportedFile& file : imported.files) {
    bytes += static_cast<double>(file.bytes);
    text += fmt::format("{}: {}{}, {} rows\n", file.name, file.title, file.tool.empty() ? "" : " (" + file.tool + ")",
                        file.rows);
  }
  const bool results = imported.requests + imported.figures > 0;
  if (!results || imported.kernels + imported.ranges + imported.ops + imported.gemms > 0) {
    text += fmt::format("{} kernels, {} ranges, {} operators, {} matrix products{}", imported.kernels, imported.ranges,
                        imported.ops, imported.gemms, results ? ", " : "");
  }
  if (results) text += fmt::format("{} requests, {} figures", imported.requests, imported.figures);
  if (imported.calls_joined > 0) text += fmt::format(", {} calls joined to kernels", imported.calls_joined);
  text += fmt::format("; {} in {}\n", base::human_bytes(bytes), base::human_ns(seconds * 1e9));
  for (const ImportLoss& lost : imported.losses)
    text += trace::describe(loss_entry(lost.loss, lost.count, detail_of(lost))) + "\n";
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {  // names are strangers' text
    const std::size_t end = text.find('\n', at);
    shown += base::printable(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  fmt::print(stderr, "{}{}\nllmprof report {}\n", shown, imported.folder, imported.folder);
}

void tell_json(const Imported& imported, double seconds, int exit_status) {
  base::Json json = json_head("llmprof.import");
  json["run"] = {{"path", imported.folder}};
  json["coverage"] = {{"kernels", imported.kernels},
                      {"ranges", imported.ranges},
                      {"ops", imported.ops},
                      {"gemms", imported.gemms},
                      {"calls_joined", imported.calls_joined},
                      {"requests", imported.requests},
                      {"figures", imported.figures}};
  json["losses"] = base::Json::array();
  for (const ImportLoss& lost : imported.losses) {
    json["losses"].push_back(base::fields_json(loss_entry(lost.loss, lost.count, lost.detail)));
    json["losses"].back()["file"] = lost.file;
  }
  json["files"] = base::Json::array();
  for (const ImportedFile& file : imported.files) {
    json["files"].push_back({{"name", file.name},
                             {"format", file.format},
                             {"tool", base::text_or_null(file.tool)},
                             {"bytes", file.bytes},
                             {"rows", file.rows}});
  }
  json["elapsed_ns"] = static_cast<std::int64_t>(seconds * 1e9);
  json["exit_status"] = exit_status;
  print(base::to_text(json));
}

Error unknown_format(const std::string& name) {
  std::vector<std::string_view> known;
  for (const importers::Importer* importer : importers::importers()) known.push_back(importer->name);
  return {ErrorCode::kUsage, "no format is called " + name,
          base::did_you_mean(name, known) + "llmprof import --formats lists them"};
}

Result<importers::ImportOptions> options_of(const Arguments& arguments) {
  importers::ImportOptions options;
  options.format = arguments.get("--as");
  options.sandbox = !arguments.on("--no-sandbox");
  if (!options.format.empty() && importers::find_importer(options.format) == nullptr)
    return unknown_format(options.format);
  if (const std::string size = arguments.get("--max-plain"); !size.empty()) {
    LLMPROF_LET(options.max_plain_bytes, record::parse_bytes(size));
  }
  if (const std::string model = arguments.get("--model"); !model.empty()) {
    LLMPROF_LET(trace::NotedModel given, record::given_model(model));
    options.model = std::move(given);
  }
  options.parallel = arguments.get("--parallel");
  if (!options.parallel.empty()) LLMPROF_TRY(analyze::parse_groups(options.parallel));
  return options;
}

Result<int> run(const Arguments& arguments) {
  if (arguments.on("--formats")) return list_formats(arguments.on("--json"));
  if (arguments.positionals.empty())
    return Error{ErrorCode::kUsage, "no file to import", "llmprof import FILE…; --formats lists what can be read"};
  LLMPROF_LET(const importers::ImportOptions options, options_of(arguments));
  LLMPROF_TRY(check_run_name(arguments.get("--output")));
  const std::string folder = run_folder_of(arguments);
  LLMPROF_TRY(check_place(folder, arguments.on("--force")));
  const auto begin = std::chrono::steady_clock::now();
  LLMPROF_LET(const Imported imported, import_beside(arguments.positionals, folder, options));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const bool lossy = std::ranges::any_of(imported.losses, [](const ImportLoss& lost) {
    return trace::info_of(lost.loss).severity != trace::Severity::kInfo;
  });
  const int exit_status = lossy ? kLossy : 0;
  if (arguments.on("--json")) {
    tell_json(imported, seconds, exit_status);
  } else if (!arguments.on("--quiet")) {
    tell_text(imported, seconds);
  }
  return exit_status;
}

}  // namespace
}  // namespace import_verb

extern const Verb kImport;
const Verb kImport{"import",
                   "make a run of files that other tools wrote",
                   import_verb::kOptions,
                   import_verb::kPositionals,
                   false,
                   import_verb::run};

}  // namespace llmprof::app
