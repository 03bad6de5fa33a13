#pragma once
// What to count, as `llmprof record` wrote it into the capture folder (file "counters.plan", docs/format/counters.md):
//
//   llmprof counters 1
//   method range            range | kernel | none
//   budget_ppm 15000        time that measuring may take of the program's, one-time set-up apart; 0: no limit
//   stalls off              off | with (beside kernel records) | only (instead of them)
//   replay 0                1: kernels may be executed again, for sets of several passes
//   range PATTERN           names of ranges to measure, `*` and `?`; one a line, any number
//   named NAME              what the user calls the kernels of the lines that follow: they are spellings of one name
//   kernel PATTERN          kernels to measure, by their mangled names; one a line, any number
//   metric CHIP NAME        one a line; only those of this process's chip are used
//
// Unknown words are skipped. Plain memory, no allocation after reading.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect::counters {

enum class Method : std::uint8_t { kNone, kRange, kKernel };
enum class Stalls : std::uint8_t { kOff, kWith, kOnly };

struct List {  // of words, one after the other in the plan's memory
  static constexpr std::size_t kMost = 256;
  const char* words[kMost];
  const char* names[kMost];  // the user's word for each; null: that is the word itself
  std::size_t count;
};

struct Plan {
  Method method;
  Stalls stalls;
  bool replay;
  std::uint64_t budget_ppm;
  List ranges, kernels;
  const char* named;  // while it is read: of the kernels that follow
  const char* text;   // of the whole file, cut into lines that end in a zero
  std::size_t text_bytes;
};

// Reads the plan of this capture. False: there is none, or it cannot be read; `why` says.
bool read_plan(const char* folder, Plan* plan, char (&why)[160]);
// The metrics of a chip, from the plan's text.
void metrics_for(const Plan& plan, const char* chip, List* metrics);
bool matches(const char* pattern, const char* text);
bool matches(const List& patterns, const char* name);

}  // namespace llmprof::collect::counters
