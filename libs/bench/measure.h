#pragma once
// How long something takes, with statistics one can trust: samples until their spread, or their entropy, says that more
// of them would not change the answer, within a time limit. Samples taken while the clock was throttled are discarded,
// after a growing pause; where the clock stays low whatever the pause (a power limit), that is the device: they are
// kept, and the measurement says so. docs/format/bench-method.md has the reasons.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
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
  double warm_up_seconds = 0.02;     // and one call at least
  double least_seconds = 0.05;       // of sampling (wall time) before a criterion may stop it
  double limit_seconds = 3;          // of wall time for one point; one sample is taken even so
  double relative_spread = 0.005;    // standard error of the mean over the mean
  bool by_entropy = true;            // stop, too, when the entropy of the times no longer grows
  double throttle_share = 0.75;      // of `full_clock_mhz`, under which a sample is discarded
  double full_clock_mhz = 0;         // 0: the clock is not judged
  std::size_t batch = 16;            // samples asked for at a time, at most
  double resolution_seconds = 1e-9;  // of the sampler's timer: the steps in which the entropy sees times
};

// What measure() needs of the world; tests script it.
struct MeasureWorld {
  std::function<double()> now_seconds;  // steady
  std::function<void(double seconds)> sleep;
};
MeasureWorld real_world();

enum class StoppedBy : std::uint8_t { kSpread, kEntropy, kTime, kSamples, kUser };
inline constexpr std::string_view kStoppedByNames[] = {"spread", "entropy", "time limit", "samples", "interrupted"};
constexpr std::string_view stopped_by_name(StoppedBy by) { return kStoppedByNames[static_cast<std::size_t>(by)]; }

struct Measurement {
  Statistics time;              // seconds
  std::vector<double> samples;  // seconds, in the order taken
  StoppedBy stopped_by = StoppedBy::kTime;
  bool noisy = false;         // neither mean (relative_spread) nor median (95 % interval of +-2 %) is known well
  std::size_t throttled = 0;  // samples discarded
  bool slow_clock = false;    // the clock stayed under the throttle share through every pause: samples kept as they are
  double clock_mhz = 0;       // median over the samples kept; 0: unknown
  double spent_seconds = 0;   // wall time, warm-up included
};

// `go_on` is asked between batches; false stops with what there is (kInterrupted if that is nothing).
// A sample that is not above 0 is an error: nothing takes no time.
Result<Measurement> measure(Sampler& sampler, const MeasureSettings& settings, const std::function<bool()>& go_on,
                            const MeasureWorld& world = real_world());

// When enough samples were taken. Each criterion is told every sample and says when more would not change the answer;
// measure.h decides how few samples are too few.

// The mean is known well enough: its standard error is at most `limit` of it.
class SpreadCriterion {
 public:
  explicit SpreadCriterion(double limit) : limit_(limit) {}
  void add(double seconds);
  double relative_error() const;  // standard error of the mean over the mean; infinite for fewer than two samples
  bool done() const { return relative_error() <= limit_; }

 private:
  double limit_;
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;  // of the distances from the mean
};

// The distribution is known well enough: times that were not seen before have become rare. After each sample the
// Shannon entropy of all samples so far, in steps of the timer's resolution, is noted; done when the line through the
// last ones is level and is a line.
class EntropyCriterion {
 public:
  static constexpr std::size_t kWindow = 256, kLeastPoints = 32;
  static constexpr double kMostDegrees = 0.048;  // slope of bits per sample, as an angle
  static constexpr double kLeastR2 = 0.36;

  explicit EntropyCriterion(double resolution_seconds) : resolution_seconds_(resolution_seconds) {}
  void add(double seconds);
  double entropy_bits() const;
  bool done() const;

 private:
  double resolution_seconds_;
  std::size_t count_ = 0;
  double weighted_ = 0;  // sum of c * log2(c) over the counts c
  std::map<std::int64_t, std::size_t> counts_;
  std::deque<double> window_;
};

// y = intercept + slope * i over i = 0, 1, …; r2 of a level line through level points is 1.
struct Line {
  double slope = 0, r2 = 0;
};
Line fitted_line(const std::deque<double>& y);

}  // namespace llmprof::bench
