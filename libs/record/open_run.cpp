#include "record/open_run.h"

#include <fmt/format.h>

#include "base/file.h"
#include "record/run/capture.h"
#include "record/run/ingest.h"

namespace llmprof::record {
namespace {

// The journal of a benchmark that was killed (libs/bench/sweep/journal.h): nothing here makes a run of it.
bool is_unfinished_benchmark(const std::string& folder) {
  return !base::is_file(folder + "/run.json") && base::is_file(capture_folder(folder) + "/bench.jsonl");
}

bool needs_ingest(const std::string& folder) {
  return !base::is_file(folder + "/run.json") && base::is_directory(capture_folder(folder));
}

// The recorder died, the program did not: its log still grows, and ingesting would lose the rest of it.
Result<void> check_ended(const std::string& folder) {
  const auto info = read_capture_info(capture_folder(folder));
  if (!info || info->end || !is_alive(info->root_pid, info->root_start_ticks)) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: the recorded program (process {}) is still running", folder, info->root_pid),
               "wait until it has ended, then try again"};
}

Result<void> ingest_first(const std::string& folder, const base::Progress& progress) {
  LLMPROF_LET(const CaptureLock lock, CaptureLock::take(capture_folder(folder)));
  if (!needs_ingest(folder)) return {};  // another llmprof did it meanwhile
  LLMPROF_TRY(check_ended(folder));
  LLMPROF_TRY(ingest(folder, {}, progress));
  return {};
}

}  // namespace

Result<trace::Run> open_run(const std::string& path, const base::Progress& progress) {
  const std::string folder = trace::run_folder(path);
  if (is_unfinished_benchmark(folder)) {
    return Error{ErrorCode::kUnsupported, folder + " is a benchmark that was not finished",
                 "llmprof bench --resume goes on with it"};
  }
  if (needs_ingest(folder)) LLMPROF_TRY(ingest_first(folder, progress));
  return trace::Run::open(path);
}

}  // namespace llmprof::record
