#pragma once
// Measures problems on one device. CPU and GPU differ in how they compute and time; what a result is does not.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  bool graph = true;           // on a GPU: also the time per call inside a replayed graph
  std::int64_t threads = 0;    // of a CPU; 0: all it may use
  std::uint64_t seed = 1;
  bool measure_peaks = true;  // of a CPU, where none are stored: takes seconds
};

enum class Status : std::uint8_t {
  kMeasured,
  kSkipped,  // cannot be measured here: the type, the memory, an implementation that is missing
  kFailed,   // measured or tried, and not to be believed: wrong result, faster than possible, a device error
};
std::string_view status_name(Status status);  // "measured", "skipped", "failed"

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

}  // namespace llmprof::bench
