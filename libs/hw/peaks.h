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
  std::string quantity;  // "flops" or "bandwidth"
  std::string type;      // "float32", "bfloat16", "float8"; bandwidth: "read"
  double value = 0;      // FLOP/s or bytes/s
  std::string unit;      // "FLOP/s" ("OP/s" for integers), "B/s"
  std::string source;    // "measured", "spec" (a vendor's figure, from the catalogue)
  std::string method;    // "FMA loop, AVX-512, 2 threads, best of 5"
};

// The arithmetic whose peak limits products of `type`: "float8" for "float8_e4m3" and "mxfp8", else the type itself.
std::string_view peak_type(std::string_view type);
// The first of its kind; nullptr if there is none. `type` as above; "" any.
const Peak* find_peak(const std::vector<Peak>& peaks, std::string_view quantity, std::string_view type);

// Names this machine for the cache: CPU model, cores, memory size, kernel-independent. Safe as a file name.
std::string fingerprint(const Device& device);

// Where things measured on this machine are kept; "" if there is no place.
std::string cache_folder();

// From the cache ($LLMPROF_CACHE_DIR, else $XDG_CACHE_HOME/llmprof, else ~/.cache/llmprof). Empty if there is none.
std::vector<Peak> cached_peaks(const Device& device);
Result<void> store_peaks(const Device& device, const std::vector<Peak>& peaks);

// In a method when other programs had the CPU meanwhile: "…, CPU share 61 %". The value is then too low.
inline constexpr std::string_view kShortOfCpu = "CPU share";

// Takes at most about 3 s and uses all cores.
Result<std::vector<Peak>> measure_cpu_peaks(const Device& device, const base::Progress& progress);

}  // namespace llmprof::hw
