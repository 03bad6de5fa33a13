#pragma once
// Measures problems on one device. CPU and GPU differ in how they compute and time; what a result is does not.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/measure.h"
#include "bench/operator.h"
#include "hw/device.h"
#include "hw/peaks.h"

namespace llmprof::bench {

enum class Cache : std::uint8_t {
  kCold,  // the last-level cache holds none of the operator's data when it begins
  kHot,   // it holds what the call before left there
};

struct BenchOptions {
  MeasureSettings measure;
  Cache cache = Cache::kCold;
  std::string implementation;  // "": the first of the operator's that can
  bool check = true;           // against the reference, before it is timed
  bool small_checks = false;   // only the small problem of each kind: for hundreds of points in minutes
  bool graph = true;           // on a GPU: also the time per call inside a replayed graph
  double graph_seconds = 0.1;  // at most, to find that
  std::int64_t threads = 0;    // of a CPU; 0: all it may use
  std::uint64_t seed = 1;
  bool measure_peaks = true;  // of a CPU, where none are stored: takes seconds
};

enum class Status : std::uint8_t {
  kMeasured,
  kSkipped,  // cannot be measured here: the type, the memory, an implementation that is missing
  kFailed,   // measured or tried, and not to be believed: wrong result, faster than possible, a device error
};
inline constexpr std::string_view kStatusNames[] = {"measured", "skipped", "failed"};
constexpr std::string_view status_name(Status status) { return kStatusNames[static_cast<std::size_t>(status)]; }

// What limits a call at best, and how near it came.
struct Roof {
  double floor_seconds = 0;  // max of FLOPs over peak and bytes over bandwidth; 0: no peak known
  std::string bound;         // "compute", "memory", "latency" (the launch takes longer than the work); "" unknown
  std::string denominator;   // "830 TFLOP/s bfloat16 (measured)"
};

struct PointResult {
  Problem problem;
  Status status = Status::kSkipped;
  std::string reason;          // of a skipped or failed one, or what is to be known of a measured one
  std::string implementation;  // "cublaslt"
  std::string method;          // CudaCall::method
  std::string kernels;         // on a GPU: what one call launched, by name, in order
  std::string timer;           // "CUPTI", "CUDA events", "clock"
  Measurement measured;        // of one call
  model::KernelWork work;
  Roof roof;
  std::int64_t tensor_bytes = 0;  // of one set of buffers
  std::int64_t workspace_bytes = 0;
  std::int64_t buffer_sets = 1;  // rotated through
  std::optional<double> error;   // relative, the worst of all checks; none where a value was not finite: failed, then
  std::optional<double> event_seconds;  // median by CUDA events, launch gaps included: the cross-check
  std::optional<double> graph_seconds;  // per call inside a replayed graph
};

class Bench {
 public:
  virtual ~Bench() = default;
  virtual const hw::Device& device() const = 0;
  virtual const std::vector<hw::Peak>& peaks() const = 0;  // the denominators: measured, else of the catalogue
  // What was found on opening that a reader of the results must know: "another program uses this GPU (pid 123, 40 %)".
  virtual const std::vector<std::string>& notes() const = 0;
  // Always an answer: what cannot be measured says why. Asks `go_on` now and then.
  virtual PointResult run(const Problem& problem, const std::function<bool()>& go_on) = 0;
};

// What the benches of a CPU and of a GPU share.
class DeviceBench : public Bench {
 public:
  const hw::Device& device() const override { return device_; }
  const std::vector<hw::Peak>& peaks() const override { return peaks_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  PointResult run(const Problem& problem, const std::function<bool()>& go_on) override;

 protected:
  explicit DeviceBench(const BenchOptions& options) : options_(options) {}
  // Fills in the result of an operator that knows the problem; an error says why there is none.
  virtual Result<void> check_and_measure(const Operator& op, PointResult& result,
                                         const std::function<bool()>& go_on) = 0;
  // Notes the error of a check in the result; an error if it is too large.
  static Result<void> judge_error(const Operator& op, const Problem& checked, double error, PointResult& result);
  std::string why_too_fast(const PointResult& result) const;  // "" if it is not

  BenchOptions options_;
  hw::Device device_;
  std::vector<hw::Peak> peaks_;
  std::vector<std::string> notes_;
  double start_seconds_ = 0;              // of an empty kernel, or of waking a CPU's threads; 0: unknown
  std::map<std::string, double> errors_;  // of problems that were checked
};

// `device`: "cpu", "cuda", "cuda:1", or "" for the first GPU, else the CPU.
Result<std::unique_ptr<Bench>> open_bench(const std::string& device, const BenchOptions& options);

// The roof of a problem, from peaks that were measured, else from the catalogue: FLOPs over the peak of the type, bytes
// read over the bandwidth of reading, all bytes over that of the fastest stream. Unknown when a peak it needs is.
Roof roof_of(const Problem& problem, const model::KernelWork& work, const std::vector<hw::Peak>& peaks);
// The bound is "latency" where starting takes longer than working: `start_seconds` (an empty kernel; waking a CPU's
// threads) is more than half of the roof's time and more than a quarter of the call's, which took more than twice the
// roof's time.
Roof with_latency(Roof roof, double seconds, double start_seconds);

// Why this time is impossible; "" if it is not, or nothing is known to judge by. The limit is the vendor's peak (FLOP/s
// at the highest clock the device reports), else 1.05 of the measured one. Compute counts always. Memory: cold, all
// that is read and what is written beyond the last-level cache; hot, what exceeds that cache.
std::string why_impossible(const Problem& problem, const model::KernelWork& work, double seconds, Cache cache,
                           const hw::Device& device, const std::vector<hw::Peak>& peaks);

// Measures operators on this machine's CPU.

// Peaks that are not in the cache are measured now (3 s) and stored there.
Result<std::unique_ptr<Bench>> open_cpu_bench(const BenchOptions& options);
// With peaks from elsewhere: tests do not measure any.
std::unique_ptr<Bench> make_cpu_bench(const BenchOptions& options, std::vector<hw::Peak> peaks);

// Measures operators on an NVIDIA GPU.

Result<std::unique_ptr<Bench>> open_cuda_bench(int index, const BenchOptions& options);

// What a bench decides before and after it touches a device. Pure functions.

// Why the sizes of its tensors cannot even be computed; "" if they can. Every tensor is a product of some of the axes
// (and of small factors), so no product overflows when that of all axes does not.
std::string why_too_large(const Problem& problem);

// An operator and a problem that it takes, or why there is none: an unknown operator, axes it refuses, sizes beyond any
// memory.
struct Admission {
  const Operator* op = nullptr;
  Problem problem;  // with all axes
  std::string why_not;
};
Admission admit(const Problem& problem);
// "gemm has no int8 on a CPU: it has float32, float64"; "" if the type is among them.
std::string why_type_unknown(const Operator& op, Type type, std::span<const Type> known, std::string_view where);

// Those of the operator's GPU implementations to ask, in order: all, or the one with this name. kUnsupported: none.
Result<std::vector<const CudaImplementation*>> wanted_implementations(const Operator& op, const std::string& name);

// All tensors of one set, each aligned. As a double: it cannot overflow.
double set_bytes(std::span<const TensorSpec> specs, std::int64_t alignment);

// How many sets of buffers a problem is timed with.
struct BufferNeeds {
  Cache cache = Cache::kCold;
  double set_bytes = 0;
  double touched_bytes = 0;  // of a set, by one call: an embedding reads a few rows of its table
  double cache_bytes = 0;    // of the last level; 0: unknown, taken for 64 MiB
  double budget_bytes = 0;   // that may be allocated
  std::int64_t most_sets = 64;
};
struct BufferPlan {
  std::int64_t sets = 1;  // 0: not even one fits
  bool enough = false;    // a round through all of them replaces what the cache holds
};
// Hot: one set. Cold: until what a round touches is more than twice the cache.
BufferPlan plan_buffers(const BufferNeeds& needs);
// Of the memory that may be used: one set whatever it takes, several up to 1 GiB. More of them would cost others their
// memory, and getting the pages would take longer than measuring; caches are flushed, too.
double buffer_budget(double one_set_bytes, double usable_bytes);
// "needs 12.0 GB, of which 8.00 GB are free"
std::string why_not_fit(double bytes, double free_bytes, double margin_bytes);

// Whether the whole reference takes well under a second.
bool cheap_reference(const model::KernelWork& work, std::span<const TensorSpec> specs);
double allowed_error(const Operator& op, const Problem& problem);
// "" when the error is allowed. Names the problem that was computed.
std::string why_wrong(const Operator& op, const Problem& checked, double error);

// Why a GPU of this compute capability (90) has no arithmetic of this type; "" if it has.
std::string why_type_missing(Type type, std::int64_t capability);

// CUDA events see what is between the kernels and around them, too. "" when that explains the difference to the
// kernels' own times: `gap_seconds` for each kernel, some for the events, and a tenth.
std::string why_timers_disagree(double kernel_seconds, double event_seconds, std::size_t kernels, double gap_seconds);

// "a, 3 x b, a": equal ones that follow each other together; after the tenth only how many more.
std::string kernel_list(const std::vector<std::string>& kernels);

// What else a reader of a measured point must know: throttling, a slow clock. "" nothing.
std::string remarks(const Measurement& measured, double full_clock_mhz);
// Joins two remarks.
void add_remark(std::string& text, const std::string& more);

}  // namespace llmprof::bench
