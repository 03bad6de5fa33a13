#pragma once
// The rows of `llmprof bench` (trace/rows.h has those of all other tables).

#include "trace/row_types.h"

namespace llmprof::trace {

// A point of a benchmark: one operator of one size, measured or not.
struct BenchRow {
  Id id = 0;
  Id device_id = 0;
  Name op;
  Name type;
  Name name;
  Name implementation;
  Name method;
  Name kernels;
  Name timer;
  Name cache;
  Name status;
  Name reason;
  std::int64_t samples = 0;
  OptionalDouble mean_ns, median_ns, min_ns, max_ns, stddev_ns;
  OptionalDouble p5_ns, p95_ns, p99_ns;
  OptionalDouble low_ns, high_ns;
  bool noisy = false;
  Name stopped_by;
  std::int64_t throttled = 0;
  OptionalDouble clock_mhz;
  double flops = 0;
  double read_bytes = 0;
  double write_bytes = 0;
  OptionalDouble floor_ns;
  Name bound;
  Name denominator;
  std::int64_t tensor_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t buffer_sets = 0;
  OptionalDouble error;
  OptionalDouble event_ns;
  OptionalDouble graph_ns;
  OptionalInt used_calls;
  OptionalInt used_ns;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

struct BenchAxisRow {
  Id bench_id = 0;
  std::int32_t place = 0;
  Name axis;
  std::int64_t value = 0;
};

struct BenchSampleRow {
  Id bench_id = 0;
  std::int64_t number = 0;
  double time_ns = 0;
};

template <>
const Table& table_of<BenchRow>();
template <>
const Table& table_of<BenchAxisRow>();
template <>
const Table& table_of<BenchSampleRow>();

}  // namespace llmprof::trace
