#pragma once
// run.json: what a run is, apart from its tables. docs/format/run.md describes it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "wire/clock.h"

namespace llmprof::trace {

inline constexpr int kRunFormatVersion = 1;

struct TableFile {
  std::string table;
  std::string file;  // relative to the run folder: "tables/kernel.parquet", "tables/kernel.1.parquet"
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

// A model that the recorder learned of. The analysis chooses among them (docs/format/analysis.md).
struct NotedModel {
  std::string source;  // "given" by --model, or "opened" by the program
  std::string origin;  // in words: "--model gpt2", "/models/x/config.json, opened by process 123"
  std::string text;    // its config, JSON
  // How the checkpoint holds the weights, where that is not as the config says: module path -> type, bytes per value.
  std::map<std::string, std::pair<std::string, double>> stored;
  // Types that were asked for in place of the config's, as model::Types: "" what the config says.
  std::string weights_type = {}, kv_type = {}, activations_type = {}, arithmetic_type = {};
};

// The user's rules for names of ranges that were in force at the recording, so that a report elsewhere reads the run as
// it was meant. A reader's own rules win over them.
struct NotedRules {
  struct Rule {
    std::string name, is, stage;  // as in [ranges] of llmprof.toml (docs/manual/ranges.md)
  };
  std::string origin;  // the file they were in
  std::vector<Rule> rules;
};

// Hardware counters that the recorder was asked for.
struct AskedCounters {
  std::string set;                        // "light", names with commas; "": none, stalls alone
  std::string method;                     // "range", "kernel", "sampled"; "" without a set
  std::optional<std::int64_t> period_ns;  // of samples
  std::optional<double> budget;           // of the program's time, for windows; 0: no limit
  bool replay = false;                    // kernels were executed again
  std::string stalls;                     // "with" kernel records, "only": without; "": none
};

// Rests of the recorder: nothing was watched or read from outside, and with `everything` nothing of the GPU recorded.
struct NotedRests {
  wire::Rests when;
  bool everything = false;
};

struct RunInfo {
  int format_version = kRunFormatVersion;
  std::string llmprof_version;
  std::string created;               // wall time, ISO 8601 UTC
  std::vector<std::string> command;  // secrets redacted
  std::string environment;           // the environment card as JSON text (libs/hw/environment.h)
  std::string clock = "CLOCK_MONOTONIC_RAW";
  std::string source = "record";                // or "bench", "predict", the importer's name, "synthetic"
  std::string prediction;                       // what a predicted run stands on, in words; "": it was observed
  std::string window;                           // the part of the run that was recorded, in words; "": all of it
  std::optional<std::int64_t> recorder_cpu_ns;  // CPU time of llmprof itself while the program ran
  std::optional<NotedRests> rests;              // none: it had none
  std::optional<AskedCounters> counters;        // none: nothing was to be counted
  std::vector<NotedModel> models;               // the last opened last
  std::string parallel;                         // record --parallel; "": not said
  NotedRules range_rules;                       // empty: none were in force
  std::vector<TableFile> files;
};

// The member "rests" of run.json and capture/record.json; null for none.
base::Json rests_to_json(const std::optional<NotedRests>& rests);
std::optional<NotedRests> rests_from_json(const base::Json& json);

// The list of models as run.json and capture/record.json hold it. Entries of the wrong form read as absent.
base::Json models_to_json(const std::vector<NotedModel>& models);
std::vector<NotedModel> models_from_json(const base::Json& json);

// The member "range_rules" of both files; null for none.
base::Json rules_to_json(const NotedRules& rules);
NotedRules rules_from_json(const base::Json& json);

// The member "counters" of both files; null for none.
base::Json counters_to_json(const std::optional<AskedCounters>& counters);
std::optional<AskedCounters> counters_from_json(const base::Json& json);

Result<RunInfo> parse_run_info(std::string_view text, std::string_view where);
std::string format_run_info(const RunInfo& info);

}  // namespace llmprof::trace
