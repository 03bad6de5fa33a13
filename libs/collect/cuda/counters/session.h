#pragma once
// One range profiler of CUPTI on one context: set up once, then windows, pass after pass. What was found on a GPU
// (H200, CUDA 13.0) and shapes this:
//
// - It works beside activity records, graphs included. A user range costs about 1.1 ms (both ends wait for the device);
//   between ranges a started profiler costs nothing.
// - The set-up takes 0.3 to 0.9 s, more with more ranges.
// - Metrics are fixed at the first SetConfig: another list needs Disable and Enable. Sets of several passes therefore
//   are one configuration; each Start to Stop is the next pass, over work of the same shape.
// - Any call while a stream is being captured breaks the capture.
// - Automatic ranges (one a kernel) give values like Nsight Compute's; around a graph launch they fail.
// - Instrumented metrics (smsp__sass_*) read 0 in graphs.

#include <cstddef>
#include <cstdint>

#include "collect/cuda/counters/plan.h"

namespace llmprof::collect::counters {

enum class Ranges : std::uint8_t { kUser, kAutomatic };

struct SessionOptions {
  void* context;  // CUcontext; current on the calling thread
  std::uint32_t device;
  Ranges ranges;
  bool replay;                               // kAutomatic: kernels are executed again for every pass
  std::uint32_t most_ranges;                 // of one pass
  std::uint32_t most_ranges_of_several = 0;  // the same if the metrics need several passes; 0: as above
};

class Session {
 public:
  // Chip, metrics, configuration, profiler: everything up to the first start(). False: it cannot be; counted and said.
  bool open(const Plan& plan, const SessionOptions& options);
  bool is_open() const { return open_; }
  void close();    // also after an error; safe at any time
  void abandon();  // the same without a call of CUPTI: the context or the process is ending

  std::uint32_t passes() const { return passes_; }
  std::size_t metrics() const { return metrics_.count; }
  const char* metric(std::size_t index) const { return metrics_.words[index]; }

  // All of these: false after a failure, which was counted and said; the session is of no use from there on.
  // A pass begins: the first after open() or after renew(), or the next one.
  bool start();
  bool push(const char* name);  // kUser
  bool pop();
  // The pass ends. `all`: every pass was made, read() gives the values.
  bool stop(bool* all);
  // Values of range `index` in the order of metric(); `found`: how many ranges there are. NaN where the device gave
  // none.
  bool read(std::uint32_t* found);
  bool values(std::uint32_t index, double* values);
  // The name of range `index`, as a number: that of push(), or of automatic ranges, which count on from open().
  static constexpr std::uint32_t kNoNumber = ~std::uint32_t{0};
  bool number_of(std::uint32_t index, std::uint32_t* number);
  // Makes ready for the next measurement, whether or not all passes of the last were made.
  bool renew();

 private:
  struct Image {
    std::uint8_t* bytes = nullptr;
    std::size_t size = 0;
  };
  static bool map(std::size_t size, Image* image);
  static void unmap(Image* image);
  // Everything that the host's side knows without the device, then the device's.
  bool configure(const char* chip);
  bool add_known(const char* chip);
  bool enable();

  bool open_ = false;
  std::uint32_t passes_ = 0;
  List metrics_{};
  SessionOptions options_{};
  void* host_ = nullptr;
  void* profiler_ = nullptr;
  Image config_, data_;
};

}  // namespace llmprof::collect::counters
