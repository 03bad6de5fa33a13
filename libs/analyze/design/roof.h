#pragma once
// What a device can do at most, and the least time that costs need on it. Each percentage and each floor names the
// peaks it rests on.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/peaks.h"
#include "model/model.h"

namespace llmprof::analyze::design {

// One device. Without a name there is none: costs are known then, times are not, and `why` says how to get them.
struct Roof {
  std::string device;
  std::string source;              // "this machine", "catalogue"
  double memory_bytes = 0;         // 0: unknown
  std::int64_t on_chip_bytes = 0;  // last-level cache; 0: unknown, every activation counts as moved
  std::vector<hw::Peak> peaks;
  std::string why;

  bool known() const { return !device.empty(); }
};

// The peak that products of a type, or bytes, are held against.
struct UsedPeak {
  std::string type;       // of the products; "" for bytes
  std::string peak_type;  // whose peak: what the device would run instead, where it has none of this type
  double per_second = 0;
  std::string source;  // "measured", "spec"
  std::string method;
  std::string note;  // "" or why it is another type's
};

// Measured peaks before those of data sheets. Nothing if neither the type nor what could stand in for it has a peak.
std::optional<UsedPeak> flops_peak(const Roof& roof, std::string_view type);
std::optional<UsedPeak> bandwidth_peak(const Roof& roof);

struct Floor {
  std::optional<double> compute_ns;  // sum over types of FLOPs / peak
  std::optional<double> memory_ns;   // bytes / bandwidth
  std::optional<double> ns;          // the larger of the two, unknown unless both are known
  std::string_view bound() const;    // "compute", "memory", "unknown"
  // One after the other, as the stages of a pipeline are.
  Floor& operator+=(const Floor& other);
};

// A roof with the peaks looked up once, for many passes of one model.
class Ruler {
 public:
  Ruler(const Roof& roof, const std::vector<std::string>& types);

  Floor floor(const model::PassCosts& costs) const;
  Floor floor(const model::OpCost& cost) const;
  // FLOP per byte above which arithmetic is the limit, for the types the costs are made of.
  std::optional<double> ridge(const model::PassCosts& costs) const;
  std::optional<double> compute_ns(const std::map<std::string, double>& flops_by_type) const;
  std::optional<double> memory_ns(double bytes) const;

  const std::vector<UsedPeak>& peaks() const { return peaks_; }  // of the types, those that are known
  const std::optional<UsedPeak>& bandwidth() const { return bandwidth_; }
  const std::vector<std::string>& unknown_types() const { return unknown_types_; }

 private:
  std::optional<double> seconds(std::string_view type, double flops) const;
  Floor larger(std::optional<double> compute_ns, std::optional<double> memory_ns) const;

  std::vector<UsedPeak> peaks_;
  std::optional<UsedPeak> bandwidth_;
  std::vector<std::string> unknown_types_;
};

}  // namespace llmprof::analyze::design
