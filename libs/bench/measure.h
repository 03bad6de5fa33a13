#pragma once
// How long something takes, with statistics one can trust: samples until their spread, or their entropy, says that more
// of them would not change the answer, within a time limit. Samples taken while the clock was throttled are discarded.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/statistics.h"

namespace llmprof::bench {

struct Sample {
  double seconds = 0;    // of one call
  double clock_mhz = 0;  // the device's clock meanwhile; 0: unknown
};

// Gives samples: a CPU or a GPU, or a list in a test.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Takes about `wanted` more (at least one). The cost of each beside its own time (flushes, launches) is its business.
  virtual Result<std::vector<Sample>> next(std::size_t wanted) = 0;
};

struct MeasureSettings {
  std::size_t least_samples = 10;
  std::size_t most_samples = 10'000;
  double warm_up_seconds = 0.02;   // and one call at least
  double least_seconds = 0.05;     // of measured time before a criterion may stop it
  double limit_seconds = 3;        // of wall time for one point
  double relative_spread = 0.005;  // standard error of the mean over the mean
  bool by_entropy = true;          // stop, too, when the entropy of the times no longer grows
  double throttle_share = 0.75;    // of `full_clock_mhz`, under which a sample is discarded
  double full_clock_mhz = 0;       // 0: the clock is not judged
  std::size_t batch = 16;          // samples asked for at a time
};

enum class StoppedBy : std::uint8_t { kSpread, kEntropy, kTime, kSamples, kUser };
std::string_view stopped_by_name(StoppedBy by);  // "spread", "entropy", "time limit", "samples", "interrupted"

struct Measurement {
  Statistics time;              // seconds
  std::vector<double> samples;  // seconds, in the order taken
  StoppedBy stopped_by = StoppedBy::kTime;
  bool noisy = false;         // stopped by time or samples while the spread was still too wide
  std::size_t throttled = 0;  // samples discarded
  double clock_mhz = 0;       // median over the samples kept; 0: unknown
  double spent_seconds = 0;   // wall time, warm-up included
};

// `go_on` is asked between batches; false stops with what there is (kInterrupted if that is nothing).
Result<Measurement> measure(Sampler& sampler, const MeasureSettings& settings, const std::function<bool()>& go_on);

}  // namespace llmprof::bench
