#pragma once
// The roofline, once: which peak holds for a type of arithmetic and for bytes, the least time that work needs on a
// device (its floor), and which of the two bounds it. Reports of runs, designs of models, benchmarks and hardware
// counters all ask here, so that they cannot disagree.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/peaks.h"

namespace llmprof::hw {

// The peak that products of a type, or bytes, are compared with.
struct UsedPeak {
  std::string type;       // of the products; "" for bytes
  std::string peak_type;  // whose peak: what the device would run instead, where it has none of this type
  double per_second = 0;
  std::string source;  // "measured", "spec"
  std::string method;
  std::string note;  // "" or why it is another type's
};

// The arithmetic whose peak limits products of `type`: "float8" for "float8_e4m3" and "mxfp8", else the type itself.
std::string_view peak_type(std::string_view type);
// Measured peaks before those of data sheets. Nothing if neither the type nor what the device runs instead has a peak.
// `device` is its name, for the note.
std::optional<UsedPeak> flops_peak(const std::vector<Peak>& peaks, std::string_view type, std::string_view device);
// The fastest stream through memory.
std::optional<UsedPeak> bandwidth_peak(const std::vector<Peak>& peaks);
// Of a GPU's plain cores, without its tensor cores. Data sheets call that of float32 just "float32".
const Peak* plain_cores_peak(const std::vector<Peak>& peaks, const std::string& type);

// Time of an amount at a rate; unknown unless the amount is finite and not negative and the rate is known and positive.
std::optional<double> time_ns(std::optional<double> amount, std::optional<double> per_second);
// The part of a time that something needs at least: unknown unless both are known and positive.
std::optional<double> share(std::optional<double> least_ns, double time_ns);
// amount / time / peak, unknown unless all three are known and positive.
std::optional<double> efficiency(double amount, double time_ns, double peak_per_second);
// FLOP per byte above which arithmetic is the limit.
std::optional<double> ridge(std::optional<double> flops_per_s, std::optional<double> bytes_per_s);

struct Floor {
  std::optional<double> compute_ns;  // sum over types of FLOPs / peak
  std::optional<double> memory_ns;   // bytes / bandwidth
  std::optional<double> ns;          // the larger of the two, unknown unless both are known
  std::string_view bound() const;    // "compute", "memory", "unknown"
  // One after the other, as the stages of a pipeline are.
  Floor& operator+=(const Floor& other);
};
Floor floor_of(std::optional<double> compute_ns, std::optional<double> memory_ns);

// The least time to move bytes, and the peak that decides: what is read cannot come faster than reads do, nor all of it
// faster than the fastest stream. nullptr: no peak is known, or nothing moves.
struct MemoryTime {
  double ns = 0;
  const Peak* peak = nullptr;
};
MemoryTime memory_time(double read_bytes, double all_bytes, const std::vector<Peak>& peaks);

// A device's peaks, looked up once for the types of one model.
class Roofline {
 public:
  using FlopsByType = std::map<std::string, double>;

  Roofline() = default;
  Roofline(const std::vector<Peak>& peaks, std::string_view device, const std::vector<std::string>& types);

  Floor floor(const FlopsByType& flops, double bytes) const { return floor_of(compute_ns(flops), memory_ns(bytes)); }
  std::optional<double> compute_ns(const std::string& type, double flops) const;
  std::optional<double> compute_ns(const FlopsByType& flops) const;
  std::optional<double> memory_ns(double bytes) const;
  // For this mix of types: its FLOPs over the time they take.
  std::optional<double> ridge(const FlopsByType& flops) const;

  const std::vector<UsedPeak>& peaks() const { return peaks_; }  // of the types, those that are known
  const std::optional<UsedPeak>& bandwidth() const { return bandwidth_; }
  const std::vector<std::string>& unknown_types() const { return unknown_types_; }

 private:
  std::vector<UsedPeak> peaks_;
  std::optional<UsedPeak> bandwidth_;
  std::vector<std::string> unknown_types_;
};

}  // namespace llmprof::hw
