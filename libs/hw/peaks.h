#pragma once
// What a device can do at most: measured once per machine, cached, copied into each run.

#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "hw/device.h"

namespace llmprof::hw {

struct Peak {
  std::string quantity;  // "flops", "bandwidth", "latency"
  // flops: the arithmetic of products, "float32", "bfloat16", "float8", or of a GPU's plain cores, "float32_vector";
  // bandwidth: "read", "copy", "read, L2"; latency: "kernel launch". What stands behind a comma makes it another thing:
  // "float32, one core" is no peak of float32.
  std::string type;
  double value = 0;    // FLOP/s, bytes/s or seconds
  std::string unit;    // "FLOP/s" ("OP/s" for integers), "B/s", "s"
  std::string source;  // "measured", "spec" (a vendor's figure, from the catalogue)
  std::string method;  // "FMA loop, AVX-512, 2 threads, best of 5"
};

// Streams through memory: "read", "write", "copy", "triad", also "read, one core"; not "read, L2".
bool is_memory_stream(std::string_view type);
// Asked for as the type of a bandwidth: the fastest stream through memory, a measured one before a data sheet's. It is
// what MBU is of. Programs read and write: where a mix of both is faster than reading alone, shares of the bandwidth of
// reads would exceed 100 %.
inline constexpr std::string_view kMemoryStream = "memory";
// Whether `a` is what kMemoryStream means rather than `b`. Rows have a `source` and a `value`.
template <class Row>
bool better_memory_peak(const Row& a, const Row& b) {
  const bool measured = a.source == "measured";
  return measured == (b.source == "measured") ? a.value > b.value : measured;
}
// The first of its kind; nullptr if there is none. `type` as above, or kMemoryStream; "" the first of the quantity.
const Peak* find_peak(const std::vector<Peak>& peaks, std::string_view quantity, std::string_view type);
// Whether it is a denominator of percentages that `record` measures itself: FLOP/s of a type, reads and the triad.
bool principal(const Peak& peak);

// `fresh` in place of what `stored` has of the same quantity and type, and the rest of `stored`; FLOP/s first, then
// bandwidths, "read" before the others, then latencies. What was measured in a short time or beside other programs does
// not replace a better measurement.
std::vector<Peak> merged_peaks(const std::vector<Peak>& stored, const std::vector<Peak>& fresh);

// Names this machine for the cache: CPU model, cores, memory size, kernel-independent. Safe as a file name.
std::string fingerprint(const Device& device);

// From the cache (base/file.h). Empty if there is none.
std::vector<Peak> cached_peaks(const Device& device);
Result<void> store_peaks(const Device& device, const std::vector<Peak>& peaks);

// In a method when other programs had the CPU meanwhile: "…, CPU share 61 %". The value is then too low.
inline constexpr std::string_view kShortOfCpu = "CPU share";
bool short_of_cpu(const Peak& peak);
// In a method of `roofline --quick`: less time and fewer shapes, so the device may do more.
inline constexpr std::string_view kShortMeasurement = "short measurement";
// Whether that was so for one of the principal peaks.
bool measured_while_busy(const std::vector<Peak>& peaks);
// Whether a CPU's stored peaks need no measuring. Those that were measured beside other programs are too low: they are
// measured again once the machine is idle.
bool cpu_peaks_are_good(const std::vector<Peak>& peaks);

// What was asked for and what came of it: a row of `llmprof roofline`.
struct PeakRow {
  Peak peak;        // without a value if it could not be measured
  std::string why;  // why there is no value; "" if there is one
};

// FLOP/s in float32 and float64, and the bandwidths of reads and of the triad: what a report needs. Takes at most about
// 3 s and uses all cores. `llmprof roofline` measures more (bench/roofline/).
Result<std::vector<Peak>> measure_cpu_peaks(const Device& device, const base::Progress& progress);

}  // namespace llmprof::hw
