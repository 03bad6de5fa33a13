#pragma once
// A format that llmprof can read. One folder per format defines one Importer; registry.cpp lists them.
// Importers read untrusted bytes: they run in a child process with limits (sandbox.h), check every length against what
// is left, never recurse into the input, and count what they leave out in the loss ledger instead of failing.

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace llmprof::importers {

class Input;
class Sink;

// What a file is in a run that is made of several: traces come first, so that the others find what they belong to.
enum class Role : std::uint8_t {
  kTrace,     // events with times
  kLog,       // calls without times, to be joined to a trace by their order
  kReadings,  // telemetry, metrics, memory: stand beside a trace
  kSummary,   // totals only
};

struct Importer {
  std::string_view name;   // what --as takes, and what stands in run.json and in range.source: "kineto"
  std::string_view title;  // "PyTorch profiler (Kineto) or Chrome trace, JSON"
  Role role = Role::kTrace;
  // How sure the beginning of the plain (decompressed) content is: 0 not this format … 100 certain. `head` is up to 64
  // KiB.
  int (*sniff)(std::string_view head) = nullptr;
  // Reads everything. What is damaged is counted by sink.lose(); an error means that nothing can be made of the file.
  // The message begins with the place ("byte 17: …"); the caller puts the name of the file in front.
  Result<void> (*parse)(Input& input, Sink& sink) = nullptr;
  bool has_timeline = true;  // false: totals, a log without times, kernels that were run one by one
};

std::span<const Importer* const> importers();
const Importer* find_importer(std::string_view name);
// The surest; nullptr if none knows the content.
const Importer* sniff(std::string_view head);

}  // namespace llmprof::importers
