#pragma once
// What a report says of runs that other tools' files made, beyond what it says of every run.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::analyze {

struct SourceFile {
  std::string file, format, tool, clock;
  std::int64_t bytes = 0;
};

struct FrameworkOp {  // an operator of the framework, all calls
  std::string name;
  std::int64_t calls = 0;
  std::int64_t host_ns = 0, self_host_ns = 0;      // from begin to end; without the operators inside
  std::int64_t device_ns = 0, self_device_ns = 0;  // of kernels and copies launched in it; not in an operator inside
  std::int64_t launches = 0;                       // of these, launched by itself
  std::optional<double> self_device_share, self_host_share;  // of all operators'
};

struct AttentionShape {
  std::string stage, function, type;
  std::int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_size = 0, value_size = 0;
  std::optional<bool> causal;
  std::int64_t calls = 0, time_ns = 0;
  double flops = 0;  // of all calls: causal unless the operator says that it is not
  std::optional<double> flops_per_s, of_peak;
  std::string label, shape;  // "scaled_dot_product, causal"; "1 x 32/8 x 128"
  std::string why;           // why of_peak is unknown
};

struct Total {  // of an operator, kernel or layer, from a file without single executions
  std::string kind, name, shapes;
  std::optional<std::int64_t> calls;
  std::optional<double> self_host_ns, host_ns, self_device_ns, device_ns, host_bytes, device_bytes, flops, moved_bytes;
};

struct ReportedFigure {  // of one experiment, as a benchmark tool computed it, or its samples
  std::string tool, experiment, metric, key, unit, definition;
  bool from_samples = false;  // the statistics are computed here, over the samples in the file
  std::optional<std::int64_t> count;
  std::optional<double> value, p50, p90, p99, least, most;  // value: the mean where there are several
};

struct CountedKernel {  // launches of one kernel with hardware counters
  struct Stall {
    std::string reason;
    double warps = 0;  // that waited for it, at each issue of an instruction, or of resident ones: stalls_of_resident
  };
  std::string name, type, bound;           // the arithmetic and the roof that most of its time belongs to
  std::int64_t launches = 0, time_ns = 0;  // time 0: not known of all launches
  std::optional<double> flops, tensor_flops, dram_bytes, l2_bytes, l1_bytes;  // of all launches
  std::optional<double> flops_per_s, bytes_per_s, intensity;
  std::optional<double> occupancy, l2_hits, tensor_busy, of_roof;  // fractions, means weighted by time
  // How its loads and stores use the memory (docs/format/counters.md); means weighted by time, fractions.
  std::optional<double> sectors_per_load, sectors_per_store, bytes_per_load_sector;
  std::optional<double> shared_busy, bank_conflicts;  // of all cycles; of the wavefronts of shared memory
  std::optional<double> local_bytes, local_share;     // of all launches; of the sectors asked of L1
  std::vector<Stall> stalls;                          // most first
  bool stalls_of_resident = false;  // Stall::warps is a share of the resident warps: issues were not counted
};

struct MergedFile {  // a run that was merged into this one
  std::string file, clock;
  std::int64_t shift_ns = 0;
  std::optional<std::int64_t> clock_error_ns;
};

struct Imported {
  std::vector<SourceFile> sources;         // empty: the run was recorded
  std::vector<MergedFile> merged;          // empty: it is one run
  std::vector<FrameworkOp> framework_ops;  // most device time first, then most host time
  std::int64_t framework_host_ns = 0;      // self times of all, added up
  std::int64_t framework_device_ns = 0;
  std::vector<AttentionShape> attentions;  // most time first
  std::vector<CountedKernel> counted;      // most time first
  std::vector<Total> totals;               // most device time first
  std::vector<ReportedFigure> reported;    // by experiment; those that other tools have too come first
};

}  // namespace llmprof::analyze
