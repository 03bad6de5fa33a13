#include "record/ingest.h"

#include "base/file.h"
#include "base/version.h"
#include "record/capture_folder.h"
#include "record/capture_info.h"
#include "record/run_ingest.h"
#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

std::int64_t table_bytes(const std::string& run_folder) {
  std::int64_t bytes = 0;
  const std::string folder = run_folder + "/tables";
  for (const std::string& name : base::list_directory(folder)) {
    bytes += static_cast<std::int64_t>(base::file_bytes(folder + "/" + name));
  }
  return bytes;
}

Result<IngestTally> write_tables(const std::string& run_folder, const IngestOptions& options,
                                 const base::Progress& progress) {
  const std::string folder = capture_folder(run_folder);
  auto info = read_capture_info(folder);
  if (!info && info.error().code == ErrorCode::kIo) return info.error();
  const CaptureInfo known = info ? *info : CaptureInfo{};
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(run_folder));
  RunIngest ingest(writer, known, folder);
  if (!info) ingest.ledger().add(trace::Loss::kLogUnreadable, 1, {}, info.error().message);
  LLMPROF_LET(IngestTally tally, ingest.finish(known, options, progress));
  LLMPROF_TRY(writer.finish(run_info(known, tally), progress));
  return tally;
}

}  // namespace

trace::RunInfo run_info(const CaptureInfo& info, const IngestTally& tally) {
  trace::RunInfo run;
  run.llmprof_version = base::version();
  run.created = iso_time(info.begin.wall_ns);
  run.command = info.command;
  run.environment = info.environment.empty() ? "{}" : info.environment;
  run.window = info.window;
  run.counters = info.counters;
  run.rests = info.rests;
  run.models = tally.models;
  run.parallel = info.parallel;
  run.range_rules = info.range_rules;
  run.recorder_cpu_ns = info.recorder_cpu_ns;
  return run;
}

Result<IngestTally> complete_ingest(const std::string& run_folder, const IngestOptions& options,
                                    Result<IngestTally> tally) {
  if (!tally) {
    if (!base::is_file(run_folder + "/run.json")) remove_tables(run_folder);
    return tally;
  }
  tally->run_bytes = table_bytes(run_folder);
  if (!options.keep_capture) remove_capture_folder(run_folder);
  return tally;
}

Result<IngestTally> ingest(const std::string& run_folder, const IngestOptions& options,
                           const base::Progress& progress) {
  remove_tables(run_folder);  // of an ingest that was interrupted
  return complete_ingest(run_folder, options, write_tables(run_folder, options, progress));
}

}  // namespace llmprof::record
