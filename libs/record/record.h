#pragma once
// Records a program: finds it, prepares the run folder, measures peaks if none are known, launches with our libraries
// injected, waits, ingests.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "record/control/window_options.h"
#include "record/launch/injection.h"
#include "record/run/ingest.h"
#include "record/watch/counter_plan.h"
#include "record/watch/host_watch.h"
#include "record/watch/scrape.h"

namespace llmprof::record {

// Where the program's stdout goes. A verb whose own stdout is a report or JSON keeps it apart.
enum class ProgramOutput : std::uint8_t { kUntouched, kToStderr };

// Rests in which the cost of recording shows: of what watches and reads from outside, or of everything.
struct RestOption {
  enum class Of : std::uint8_t { kNone, kWatching, kEverything } of = Of::kWatching;
  std::uint64_t lasts_ns = 0;  // 0: as long as fits the kind
};

struct RecordOptions {
  std::vector<std::string> command;  // argv
  std::int64_t pid = 0;              // a running process to attach to, instead of the command; 0: none
  std::string output;                // "x" or "x.llmprof"; "": a name from the command and the time
  bool force = false;                // replace an existing run
  std::uint64_t max_bytes = 10ull << 30;
  bool peaks = true;  // measure them if none are cached
  bool blas = true;
  bool nvtx = true;
  bool modules = false;  // of PyTorch models, as ranges
  bool requests = false;  // of engines that are known: members of steps
  CollectorSettings collector;
  CounterOptions counters;
  std::string model;              // name or path of the model, for the reports; "": it is detected, if it can be
  std::string parallel;           // how ranks divide it, "tp=2"; "": as the program or its command line says
  trace::NotedRules range_rules;  // the user's rules for names of ranges
  HostOptions host;
  TelemetryOptions telemetry;
  ScrapeOptions scrape;
  WindowOptions window;
  RestOption rests;
  bool keep_capture = false;
  bool ingest = true;
  ProgramOutput program_output = ProgramOutput::kUntouched;
  std::function<void(std::string_view)> announce = [](std::string_view) {};  // what is about to take a moment
};

struct Outcome {
  std::string folder;
  int exit_status = 0;          // the program's own, 128+N after a signal, 126 or 127 if it did not start
  std::int64_t elapsed_ns = 0;  // of the program
  std::uint64_t log_bytes = 0;
  std::optional<std::string> not_injectable;  // why nothing was recorded
  std::optional<IngestTally> tally;           // none: not ingested
  std::optional<Error> problem;  // the program did not start, or the run is not complete (its capture is kept)
};

// An error means that nothing was launched (exit status 125, or 130 if interrupted).
Result<Outcome> record(const RecordOptions& options, const base::Progress& progress);

// "python3-20261115-101500" for this command at this wall time (local time zone).
std::string default_name(const std::string& command, std::int64_t wall_ns);

// "500MB", "10GiB", "1.5g", "4096" -> bytes. MB = 10^6, MiB = 2^20; a bare k, m, g, t is binary.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace llmprof::record
