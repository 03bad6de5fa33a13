#pragma once
// The hardware counters we know, by names of our own: what each means, its unit, and how it is computed from the
// metrics of a chip. Data (catalog.json), read once. Collectors gather metrics of the chip by the chip's own names; our
// names are computed from what was gathered, wherever it came from (docs/format/counters.md).

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hw/counters/formula.h"

namespace llmprof::hw::counters {

enum class Method { kRange, kKernel, kSampled };
std::string_view name_of(Method method);  // "range", "kernel", "sampled"

// One way to compute a counter: arithmetic (+ - * / and parentheses) over metrics of the chip and numbers.
struct Formula {
  std::string text;                  // "dram__bytes_read.sum + dram__bytes_write.sum"
  std::vector<std::string> chips;    // patterns, "GH*"; "!GA10B" takes one out again; empty: every chip
  std::vector<std::string> metrics;  // that it needs, from the text
  Expression expression;             // the text, read
  bool sampled = true;               // also offered by PM sampling
  bool ranges = true;                // also offered by the range profiler
};

// How values of several windows become one.
enum class Aggregation { kSum, kMean, kMeanByTime };

struct Counter {
  std::string name;  // "dram_read_bytes"
  std::string unit;  // "bytes", "%", "FLOP", "warps"…
  std::string meaning;
  std::string denominator;  // of a percentage, in words
  Aggregation together = Aggregation::kSum;
  bool apart = false;  // ranges cannot count it beside counters that are not `apart` (the GPU's time excepted)
  std::vector<Formula> formulas;  // the first that fits
};

struct Set {
  std::string name, meaning;
  std::vector<std::string> counters;
  std::vector<std::string> sampled;  // of these, what PM sampling keeps: any sets together fit into its one pass
};

// A chip as CUPTI calls it.
struct Chip {
  std::string name, generation;      // "GH100", "Hopper"
  std::string capability;            // "9.0"
  std::vector<std::string> devices;  // that have it, some of them: "H200"
  bool sampled = true;               // has PM sampling
};

std::span<const Counter> catalog();
std::span<const Set> sets();
const Counter* find_counter(std::string_view name);
const Set* find_set(std::string_view name);

// What somebody asked for: sets, counters and metrics of the chip, separated by commas.
struct Selection {
  std::string text;
  std::vector<const Counter*> counters;  // each once
  std::vector<std::string> raw;          // metrics by the chip's own name
  std::vector<const Counter*> sampled;   // what PM sampling keeps: all that was asked for by name, a set's share of it
};
Result<Selection> select(std::string_view text);

struct ChipMetrics {
  std::vector<std::string> metrics;  // each once, in a fixed order
  std::vector<std::string> missing;  // our names that this chip or method cannot give
};
// When sampled, what a set does not keep is `missing`; in ranges, counters that are `apart` are, beside others.
ChipMetrics metrics_of(const Selection& selection, std::string_view chip, Method method);
// The formula of a counter on a chip; nullptr: the chip does not have it, or not by this method.
const Formula* formula_of(const Counter& counter, std::string_view chip, Method method);

// The value of a counter from metrics of the chip; nullopt where one that its formulas need is not there.
std::optional<double> evaluate(const Counter& counter, const Lookup& lookup);

// Chips of CUPTI's list that the catalogue has formulas for; in the order of their generations.
std::span<const std::string_view> chips();
// By its name or a device that has it ("h200"); letter case and spaces do not matter.
const Chip* find_chip(std::string_view name);
// The first chip of a compute capability, "8.6" or "sm_86"; those of one capability have the same formulas.
const Chip* chip_of_capability(std::string_view capability);

// Reads the catalogue's file (catalog.json); apart from the embedded one for tests.

struct CatalogFile {
  std::vector<Chip> chips;
  std::vector<Counter> counters;
  std::vector<Set> sets;
};
Result<CatalogFile> parse_catalog(std::string_view text, std::string_view where);

}  // namespace llmprof::hw::counters
