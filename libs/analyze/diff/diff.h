#pragma once
// Two runs, or two groups of repeated runs, held against each other: by stage, module, operator and shape, never by the
// name of a kernel. What changed, how sure that is, and what it came from.

#include <optional>
#include <string>
#include <vector>

#include "analyze/diff/digest.h"

namespace llmprof::analyze {

struct Side {
  std::string name;  // "before.llmprof", "3 runs (base_1, base_2, base_3)", "baseline main"
  std::vector<Digest> runs;
};

struct Reason {
  std::string kind;  // "kernels", "algorithm", "clock", "work", "idle", "same kernels", "host"
  std::string text;  // "24 more kernels a step (4 -> 28)"
  double ns = 0;     // of the change of a step
};

struct DiffRow {
  std::string kind;                     // "measure", "stage", "module", "operator", "shape"
  std::string name, stage, unit;        // stage: "" of the run; unit: "s" of everything but measures
  std::optional<double> before, after;  // per step, of a stage the median; nullopt: not there, or unknown
  std::optional<double> mean_change;    // of a stage: of the mean of a step, in `unit`; reasons add up to it
  Change change;
  std::optional<double> adjusted_p;  // by Benjamini and Hochberg, over all rows that have a p
  bool significant = false;
  std::string better = "neither";  // "better", "worse"; "neither" where nothing significant changed
  std::string note;                // "only before", "estimated: no interval", why a value is unknown
  std::vector<Reason> why;         // most of the change first
};

struct Diff {
  std::string before, after, headline;
  std::vector<std::string> warnings;  // what limits the comparison
  std::vector<DiffRow> rows;          // measures, stages, then parts by how much their time changed
  // Rows (index) of the modules, or where there are none the operators, that the change of their stage comes from: the
  // innermost that explain it.
  std::vector<std::size_t> causes;
  double least = 0.01;
  bool repeated = false;  // both sides have several runs
};

struct DiffOptions {
  double least = 0.01;  // changes below this fraction do not count, however sure
};

Diff compare(const Side& before, const Side& after, const DiffOptions& options = {});

const DiffRow* find_row(const Diff& diff, std::string_view kind, std::string_view stage, std::string_view name);

}  // namespace llmprof::analyze
