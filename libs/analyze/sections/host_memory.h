#pragma once
// Arithmetic on readings of resident memory: all processes together, and what ranges gained.

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/sections/host_summary.h"

namespace llmprof::analyze {

struct MemoryReading {
  std::int64_t process_id = 0, ts_ns = 0, rss_bytes = 0;
  std::int64_t pid = 0;
};
using Periods = std::unordered_map<std::int64_t, std::int64_t>;  // process -> usual time between two readings, ns

// The sum over all processes at every reading. A process counts from its first reading until two periods after its
// last, or until another image was executed in its place. `readings` are in order of time.
std::vector<MemoryPoint> memory_of_all(const std::vector<MemoryReading>& readings, const Periods& periods);

// At most `most` points: of every slice of time the lowest and the highest.
std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& points, std::size_t most);

// A range, with its name and stage as codes of the caller.
struct MemoryRange {
  std::int64_t process_id = 0, thread_id = 0, begin_ns = 0, end_ns = 0;
  std::int64_t name = 0, stage = 0;
};
struct GainOfRange {
  std::size_t range = 0;  // index
  std::int64_t self_bytes = 0;
};
// What each range gained: memory at its end less memory at its begin, by the readings nearest to them, less what the
// ranges inside it gained. So the gains of the ranges of a thread add up to those of its outermost ranges. A range
// without a reading within one period of both its ends is left out; what it gained stays with the range around it.
// `ranges` are ordered by process, thread, begin, outer ones first.
std::vector<GainOfRange> gains_of(const std::vector<MemoryRange>& ranges, const std::vector<MemoryReading>& readings,
                                  const Periods& periods);

}  // namespace llmprof::analyze
