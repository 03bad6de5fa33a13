#pragma once
// A format that a run can be written as. One file (or a few) per format defines one Exporter; registry.cpp lists them.
// Exporters read a run through SQL in bounded memory and write what an independent reader of the format accepts.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/sections/counters_summary.h"
#include "base/progress.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::exporters {

// The part of a run that is wanted. What overlaps the window is kept whole.
struct Selection {
  std::optional<std::int64_t> begin_ns, end_ns;  // on the clock of the run
  std::string stage;                             // "": all
};

struct Request {
  const trace::Run& run;  // derived tables are in use
  Selection selection;
  std::string output;               // a file, or a folder for exporters that write several
  std::vector<std::string> tables;  // of exporters that write tables: which; empty: all that have rows
  base::Progress progress = base::no_progress;
  analyze::Counters counters = {};  // of exporters that say so: hardware counters of stages, analysed
};

struct Written {
  std::vector<std::string> files;
  std::int64_t records = 0;        // rows, events or samples
  std::vector<std::string> notes;  // what the format cannot hold, in words
};

struct Exporter {
  std::string_view name;       // what -t takes: "perfetto"
  std::string_view title;      // "Perfetto trace, protobuf: ui.perfetto.dev, trace_processor"
  std::string_view extension;  // ".pftrace"; "": a folder
  Result<Written> (*write)(const Request& request) = nullptr;
  bool counters = false;                                         // wants Request::counters
  std::string_view other_endings = {};                           // that a file may have, too: ".json .trace"
  Result<double> (*estimate)(const Request& request) = nullptr;  // bytes, before compression; nullptr: not known
};

std::span<const Exporter* const> exporters();
const Exporter* find_exporter(std::string_view name);

}  // namespace llmprof::exporters
