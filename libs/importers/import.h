#pragma once
// Files of other tools into one run. Every file is parsed in a child process of its own (sandbox.h), which can do
// nothing but send rows; here they are checked, put on one clock, joined and written.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "trace/loss.h"
#include "trace/run_info.h"

namespace llmprof::importers {

struct ImportOptions {
  std::string format;                      // name of an importer, for all files; "": by content
  std::optional<trace::NotedModel> model;  // none: what the files tell
  std::string parallel;                    // how ranks divide it, "tp=2"; "": not said
  std::uint64_t max_plain_bytes = 0;       // 0: Input::kMaxPlainBytes
  bool sandbox = true;                     // false: in this process (tests, sanitizers)
};

struct ImportedFile {
  std::string name, format, title, tool;
  std::uint64_t bytes = 0;  // as stored
  std::int64_t rows = 0;
};

struct ImportLoss {
  trace::Loss loss = trace::Loss::kNone;
  std::int64_t count = 0;
  std::string file, detail;
};

struct Imported {
  std::string folder;
  std::vector<ImportedFile> files;
  std::vector<ImportLoss> losses;
  std::int64_t kernels = 0, ranges = 0, ops = 0, gemms = 0, calls_joined = 0, requests = 0, figures = 0;
};

// `folder` must not hold a run yet. All files or none: what was written is removed when one is refused. This process
// must not have threads yet.
Result<Imported> import_files(const std::vector<std::string>& files, const std::string& folder,
                              const ImportOptions& options, const base::Progress& progress);

}  // namespace llmprof::importers
