#pragma once
// Losses of a run, added up by kind, process and detail until the tables are finished.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trace/loss.h"
#include "trace/rows.h"

namespace llmprof::trace {

class RunWriter;
}

namespace llmprof::record {

struct LossTotal {
  trace::Loss loss = trace::Loss::kNone;
  std::int64_t count = 0;
  std::string detail;
};

// How much a run holds.
struct RunCounts {
  std::int64_t records = 0;  // in the logs
  std::int64_t processes = 0, threads = 0;
  std::int64_t kernels = 0, gemms = 0;
  std::int64_t graph_launches = 0;  // of CUDA
  std::int64_t ranges = 0;
};

class Ledger {
 public:
  // A count of 0 adds nothing.
  void add(trace::Loss loss, std::int64_t count, trace::OptionalId process_id = {}, const std::string& detail = "");

  // One row per kind, process and detail. Returns the losses of all processes together, in the order of trace::Loss.
  std::vector<LossTotal> write(trace::RunWriter& writer, trace::Id& next_id) const;

 private:
  using Key = std::tuple<trace::Loss, std::int64_t, std::string>;  // process -1: the run
  std::map<Key, std::int64_t> counts_;
};

// What collectors say about losses of GPU capture, in words.

// The detail of wire::LossKind::kCuptiError: "cuptiActivityEnable failed with error 15 (not initialised)".
std::string cupti_error_text(std::uint64_t detail);

// The same of wire::LossKind::kCountersFailed: a call of CUPTI's profilers.
std::string profiler_error_text(std::uint64_t detail);

}  // namespace llmprof::record
