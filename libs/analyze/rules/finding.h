#pragma once
// What a diagnosis says: findings with their evidence, what they cost, and what to do. Filled by the rules, laid out by
// report.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

// A number that a finding rests on.
struct Evidence {
  std::string name;             // "decode.mbu": a measure (analyze/measures/measures.h), else a name of the rule's own
  std::string what;             // in words: "bytes that must move per second, of the peak"
  std::optional<double> value;  // in base units (s, B, FLOP/s, J); fractions for shares
  std::string unit;             // "s", "B", "B/s", "FLOP/s", "1" for fractions, "" for numbers of things
  std::string source;           // "measured", "counted", "analytic", "inferred", "predicted"
  std::string of;               // of a fraction: its denominator in words, "4.80 TB/s, spec"; else ""
  std::string rows;             // a SELECT over the run that lists the rows behind it (llmprof query); "" none
  std::string why;              // why the value is unknown
};

struct Gain {
  double ns = 0;            // of the stage's time in this run that the change would save
  double of_ns = 0;         // the whole that this is of: the stage's time, the wall time where the finding has no stage
  bool upper_bound = true;  // at most so much; false: expected
  std::string how;       // the arithmetic with its numbers: "4.94 GB at float32, 2.47 GB at bfloat16: 1.03 of 2.06 ms"
  std::string of;        // that whole in words; "" the stage, or the run's wall time where the finding has none
  bool latency = false;  // of what requests wait, not of the run's time: its severity and place are by ns of of_ns
  std::optional<double> run_share;  // `ns` of Diagnosis::whole_ns; set by the engine, unknown where that is
  std::optional<double> rank_ns;    // by which it is ranked, set by the engine: of a latency, the same share of the run
};

enum class Verdict : std::uint8_t {
  kFound,         // the evidence is there and says so
  kInconclusive,  // something points there, but evidence is missing, thin or contradicts itself: `next` would settle it
};

// Set by the engine, by the gain: kHigh from 20 % of the whole run on, kMedium from 5 %, kLow from 0.1 %. kNote: less,
// or no gain at all, but to be known (a confounder, a stage that is already at its floor).
enum class Severity : std::uint8_t { kHigh, kMedium, kLow, kNote };

inline const char* json_name(Verdict verdict) { return verdict == Verdict::kFound ? "found" : "inconclusive"; }
inline const char* json_name(Severity severity) {
  constexpr const char* kNames[] = {"high", "medium", "low", "note"};
  return kNames[static_cast<std::size_t>(severity)];
}

// A stage with less confidence is a guess: what is said of it is not said as a fact.
inline constexpr double kCertainStage = 0.6;

struct Finding {
  std::string rule;   // "wide_weights"
  std::string stage;  // "decode"; "" the whole run
  std::string part;   // module, operator, kernel or shape that it is about; "" the whole stage
  Verdict verdict = Verdict::kFound;
  Severity severity = Severity::kNote;
  double confidence = 1;  // that its stage is what it is called; set by the engine
  std::string title;      // a statement with its number: "Decode moves 4.94 GB of float32 weights per token"
  std::string lever;      // what would help, as the subject of the headline: "a CUDA graph"; "" the title serves
  std::string text;       // why that holds the model back, in two sentences at most
  std::optional<Gain> gain;
  std::vector<Evidence> evidence;   // the most telling first
  std::vector<std::string> advice;  // what to change in the model or the runtime, the most promising first
  std::string next;                 // the command that would settle it, or measure the change; "" none

  // Of `of_ns`, the stage's time.
  void set_gain(double ns, double of_ns, std::string how, bool upper_bound = true);
  // Evidence; a name without a dot is that of a number of the stage. `unknown`: why, where there is no value.
  void add_number(std::string name, std::string what, std::optional<double> value, std::string unit, std::string source,
                  std::string rows = "", std::string unknown = "");
  // A fraction and its denominator.
  void add_fraction(std::string name, std::string what, std::optional<double> value, std::string of, std::string source,
                    std::string rows = "", std::string unknown = "");
  void add_time(std::string name, std::string what, double ns, std::string source, std::string rows = "");
};

// What became of each rule: a reader sees what was looked for.
struct RuleOutcome {
  std::string rule;
  std::string outcome;  // "found", "inconclusive", "not found", "not applicable"
  std::string why;      // of the last two: "tokens were fetched in 0 of 128 steps"; else the first title; never empty
};

struct Diagnosis {
  std::string headline;            // one sentence: what holds the model back, and how much that costs
  std::vector<Finding> findings;   // as rank() in rule.h; their gains overlap: never add them up
  std::vector<RuleOutcome> rules;  // all, in the order of the registry
  std::int64_t whole_ns = 0;       // what shares of the run refer to: its wall time, or that of the recorded stages
  std::string whole;               // that in words: "the run", "the recorded stages"
};

}  // namespace llmprof::analyze
