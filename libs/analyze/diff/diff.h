#pragma once
// Two runs, or two groups of repeated runs, held against each other: first what they did (work.h), then by stage,
// module, operator and shape, never by the name of a kernel. What changed, how sure that is, and what it came from.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/diff/work.h"

namespace llmprof::analyze {

struct Reason {
  std::string kind;  // "kernels", "algorithm", "clock", "work", "idle", "same kernels", "host"
  std::string text;  // "24 more kernels a step (4 -> 28)"
  double ns = 0;     // of the change of a step
};

struct DiffRow {
  std::string kind;                     // "pace", "measure", "stage", "module", "operator", "shape"
  std::string name, stage, unit;        // stage: "" of the run; unit: "s" of everything but measures
  std::string per;                      // of times of stages and parts: "step", "token", "TFLOP", "GB"
  bool comparable = true;               // false: not the same work, and nothing to divide it by; `caveat` says what
  std::string caveat;                   // "batch 8 instead of 1"
  std::optional<double> before, after;  // per `per`, of a stage the median; nullopt: not there, or unknown
  std::optional<double> mean_change;    // of a stage: of the mean of a step, in `unit`; reasons add up to it
  double moved = 0;                     // of a part: seconds of a step that the change makes
  std::optional<double> step_share;     // the same, of its stage's step
  Change change;
  std::optional<double> adjusted_p;  // by Benjamini and Hochberg, over all rows that have a p
  bool significant = false;
  std::string better = "neither";  // "better", "worse"; "neither" where nothing significant changed
  std::string note;                // "new", "gone", "estimated: no interval", why a value is unknown
  std::vector<Reason> why;         // most of the change first
};

struct Diff {
  std::string before, after, headline;
  WorkDiff work;                      // what differs in what the two did
  std::vector<std::string> warnings;  // what limits the comparison
  std::vector<DiffRow> rows;          // throughput and latency, measures, stages, then parts by how much they changed
  // Rows (index) of the modules, or where there are none the operators, that the change of their stage comes from: the
  // innermost that explain it.
  std::vector<std::size_t> causes;
  double least = 0.01;
  bool repeated = false;  // both sides have several runs
};

struct DiffOptions {
  double least = 0.01;  // changes below this fraction do not count, however sure
};

std::vector<Reason> reasons_of(const PartDigest& before, const PartDigest& after, const StageDigest* stage_before,
                               const StageDigest* stage_after);
std::vector<Reason> reasons_of(const StageDigest& before, const StageDigest& after, const Digest& run_before,
                               const Digest& run_after, bool same_work);

// Throughput and latency of what took most of the time and what explains most of their change, a line for each stage.
std::string headline(const Diff& diff);

Diff compare(const Side& before, const Side& after, const DiffOptions& options = {});

const DiffRow* find_row(const Diff& diff, std::string_view kind, std::string_view stage, std::string_view name);

// Limits that a comparison has to keep: "decode.tpot_p50 < +3%" (against before), "decode.mbu > 0.70" (of after).

struct Gate {
  std::string text;     // as given, spaces tidied
  std::string measure;  // "decode.tpot_p50"
  std::string_view op;  // "<", "<=", ">", ">="; a literal
  double limit = 0;     // fraction of before, or in the measure's base unit
  bool relative = false;
};

// One or more expressions, separated by ';'. Unknown measures and units are usage errors that name near ones.
Result<std::vector<Gate>> parse_gates(std::string_view text);
std::span<const std::string_view> gate_scopes();  // "run", and the stages that measures are of

struct GateResult {
  Gate gate;
  bool passed = false;
  std::string unit;
  std::optional<double> before, after;
  Change change;             // of relative gates
  bool significant = false;  // the change
  std::string why;           // why it could not be checked
  std::string warning;       // why a kept limit says little: other work, and which measure would be comparable
};

// `before` may have no runs where no gate is relative.
std::vector<GateResult> check_gates(const std::vector<Gate>& gates, const Side& before, const Side& after,
                                    const Diff& diff);

// Named baselines: digests of runs in the user's data folder, which outlive the runs.

// $XDG_DATA_HOME/llmprof/baselines, else ~/.local/share/llmprof/baselines.
Result<std::string> baseline_folder();

Result<std::string> save_baseline(const std::string& name, const std::vector<Digest>& runs);  // the file it wrote
Result<Side> load_baseline(const std::string& name);

struct BaselineEntry {
  std::string name, created;  // created: of its first run
  std::string model, device;
  std::vector<std::string> folders;
};
Result<std::vector<BaselineEntry>> list_baselines();

}  // namespace llmprof::analyze
