#pragma once
// What the host did while a device had nothing to do: the module or range that was open, and the stack samples of that
// time.

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/passes/busy.h"
#include "analyze/passes/classify.h"
#include "analyze/passes/operator_names.h"
#include "analyze/passes/sums.h"
#include "analyze/passes/timeline.h"
#include "trace/rows.h"

namespace llmprof::analyze {

struct IdleStretch {
  Window window;
  std::int64_t thread_id = 0, process_id = 0;  // of the step
  std::int32_t step = kNone;
  bool after = false;   // between the step and the next one
  bool of_gpu = false;  // else the device is a CPU, which then works for the program: only samples are looked at
};

class IdleTime {
 public:
  // The references must outlive it; `warm_up` has one for each step.
  IdleTime(const Ranges& ranges, const Classified& classified, const std::vector<bool>& warm_up,
           trace::Strings& strings);

  void add_sample(std::int64_t process_id, std::int64_t at_ns, std::int64_t id);  // all of them, before the stretches
  void add(const IdleStretch& stretch, Timelines& timelines);

  std::vector<trace::IdlePlaceRow> finish();
  trace::OptionalId step_of(std::int64_t sample_id) const;  // in whose idle time it was taken

 private:
  struct Samples {                                           // of a process
    std::vector<std::pair<std::int64_t, std::int64_t>> all;  // time and id, by time once sorted
    bool sorted = false;
    std::size_t next = 0;  // those before it are before the last stretch
  };
  void mark(const IdleStretch& stretch);
  trace::Name place_of(std::int32_t range);

  const Ranges& ranges_;
  const Classified& classified_;
  const std::vector<bool>& warm_up_;
  trace::Strings& strings_;
  OperatorNames operators_;
  trace::Name gap_, between_;
  std::vector<trace::Name> shapes_;  // by code of the range's name
  std::unordered_map<std::int64_t, Samples> samples_;
  std::unordered_map<std::int64_t, std::int32_t> step_of_;                            // by id of the sample
  std::unordered_map<std::array<std::uint64_t, 2>, std::size_t, HashOfKind> places_;  // into rows_
  std::vector<trace::IdlePlaceRow> rows_;
};

}  // namespace llmprof::analyze
