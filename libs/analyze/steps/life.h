#pragma once
// The life of the program from exec to exit, as phases that add up to it: what its steps were, and what it did before,
// between and after them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trace/run.h"

namespace llmprof::analyze {

struct LifePhase {
  std::string name;      // "imports", "compile", a stage, …
  std::string source;    // what tells it: "steps", "samples", "copies", "calls", "readings", "process", "none"
  std::string evidence;  // in words: functions, packages, compilers, with their shares
  std::int64_t time_ns = 0;
  std::int64_t count = 0;  // steps, samples, copies or calls behind it
  std::int64_t bytes = 0;  // of copies
  std::string label;       // the name in words; stages keep theirs
  double share = 0;        // of the life
};

struct Companion {  // processes of a program that ran at the same time; not in the bar
  std::string name;
  std::int64_t processes = 0, life_ns = 0, cpu_ns = 0;  // added up
};

struct Life {
  std::int64_t process_id = 0, pid = 0;  // 0: not known, as of imported runs
  std::string executable, arguments;
  std::int64_t begin_ns = 0, end_ns = 0;
  bool ended = false;                       // else it was still running, and end_ns is what was seen last
  std::optional<std::int64_t> exit_status;  // 128 + the signal that ended it; unknown if its end was not seen
  bool root = true;                         // the program that was recorded itself; else one that it started
  bool sampled = false;                     // stacks were sampled
  std::vector<LifePhase> phases;            // in the order in which they first come; their times add up to the life
  std::vector<std::size_t> strip;           // the life in equal parts: the phase that takes most of each
  std::vector<Companion> concurrent;

  std::int64_t time_ns() const { return end_ns - begin_ns; }
};

// Time from `begin_ns` to `end_ns` that something tells a phase of.
struct LifePiece {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::size_t phase = 0;
};

// A life that is painted phase by phase: time that has one keeps it.
class LifePainter {
 public:
  LifePainter(std::int64_t begin_ns, std::int64_t end_ns);

  // By begin; what overlaps an earlier one gives way. Returns what each of them got, in ns.
  std::vector<std::int64_t> paint(const std::vector<LifePiece>& pieces);
  // Time that has no phase yet, by begin.
  const std::vector<LifePiece>& free() const { return free_; }

  static constexpr std::size_t kParts = 64;
  struct Painted {
    std::int64_t time_ns = 0, first_ns = 0;
    std::int64_t parts[kParts] = {};
  };
  const std::vector<Painted>& phases() const { return phases_; }

 private:
  void add(const LifePiece& piece);

  std::int64_t begin_ns_, end_ns_;
  std::vector<LifePiece> free_;
  std::vector<Painted> phases_;
};

// Empty for imported runs.
Result<Life> life_of(const trace::Run& run);

}  // namespace llmprof::analyze
