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

// The arithmetic whose peak limits products of `type`: "float8" for "float8_e4m3" and "mxfp8", else the type itself.
std::string_view peak_type(std::string_view type);
// The first of its kind; nullptr if there is none. `type` as above; the bandwidth that limits programs is "read".
const Peak* find_peak(const std::vector<Peak>& peaks, std::string_view quantity, std::string_view type);
// Whether it is a denominator of percentages: FLOP/s of a type, and the bandwidth of reading.
bool principal(const Peak& peak);

// `fresh` in place of what `stored` has of the same quantity and type, and the rest of `stored`; FLOP/s first, then
// bandwidths, "read" before the others, then latencies. What was measured beside other programs does not replace more.
std::vector<Peak> merged_peaks(const std::vector<Peak>& stored, const std::vector<Peak>& fresh);

// Names this machine for the cache: CPU model, cores, memory size, kernel-independent. Safe as a file name.
std::string fingerprint(const Device& device);

// From the cache (base/cache_folder.h). Empty if there is none.
std::vector<Peak> cached_peaks(const Device& device);
Result<void> store_peaks(const Device& device, const std::vector<Peak>& peaks);

// In a method when other programs had the CPU meanwhile: "…, CPU share 61 %". The value is then too low.
inline constexpr std::string_view kShortOfCpu = "CPU share";
bool short_of_cpu(const Peak& peak);
// Whether that was so for one of the principal peaks.
bool measured_while_busy(const std::vector<Peak>& peaks);

// What was asked for and what came of it: a row of `llmprof roofline`.
struct PeakRow {
  Peak peak;        // without a value if it could not be measured
  std::string why;  // why there is no value; "" if there is one
};

// FLOP/s in float32 and float64, and the bandwidth of reading: what a report needs. Takes at most about 3 s and uses
// all cores. `llmprof roofline` measures more (bench/roofline/).
Result<std::vector<Peak>> measure_cpu_peaks(const Device& device, const base::Progress& progress);

}  // namespace llmprof::hw
