#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <thread>

namespace llmprof::bench {

namespace {

// A throttled device gets a pause to cool down: 0.05 s, 0.10 s, … 0.5 s. After four in vain (0.5 s together) the low
// clock is taken for what the device can hold.
constexpr double kPauseStep = 0.05, kMostPause = 0.5;
constexpr int kPausesInVain = 4;
// An idle GPU runs at a low clock that has nothing to do with heat: a warm-up waits for it to rise, so long at most.
constexpr double kMostWarmUp = 0.3, kMostWarmUpAfterPause = 0.1;
// Two sweeps are to agree within 2 %: a median that may lie further off is noise. Fewer samples have no 95 % interval.
constexpr double kMedianInterval = 0.02;
constexpr std::size_t kLeastForMedian = 6;
// No batch longer than this, as far as can be foreseen: the user may want to stop.
constexpr double kBatchSeconds = 0.1;

bool median_is_known(const Statistics& time) {
  return time.count >= kLeastForMedian && time.high - time.low <= 2 * kMedianInterval * time.median;
}

class Loop {
 public:
  Loop(Sampler& sampler, const MeasureSettings& settings, const std::function<bool()>& go_on, const MeasureWorld& world)
      : sampler_(sampler),
        settings_(settings),
        go_on_(go_on),
        world_(world),
        spread_(settings.relative_spread),
        entropy_(settings.resolution_seconds),
        begin_(world.now_seconds()) {}

  Result<Measurement> run() {
    LLMPROF_TRY(warm_up(kMostWarmUp));
    const double sampling_begin = world_.now_seconds();
    while (!stopped_) {
      if (!go_on_()) {
        stopped_ = StoppedBy::kUser;
        break;
      }
      LLMPROF_LET(const std::vector<Sample> samples, take(wanted()));
      if (judge(samples)) LLMPROF_TRY(pause());
      look_whether_enough(world_.now_seconds() - sampling_begin);
    }
    return result();
  }

 private:
  double elapsed() const { return world_.now_seconds() - begin_; }

  Result<std::vector<Sample>> take(std::size_t count) {
    const double before = world_.now_seconds();
    LLMPROF_LET(std::vector<Sample> samples, sampler_.next(count));
    if (samples.empty()) return Error{ErrorCode::kInternal, "a sampler gave no samples", ""};
    for (const Sample& sample : samples) {
      if (!std::isfinite(sample.seconds) || sample.seconds <= 0) {
        return Error{ErrorCode::kInternal, fmt::format("the timer read {} s for a call", sample.seconds), ""};
      }
    }
    sample_cost_ = (world_.now_seconds() - before) / static_cast<double>(samples.size());
    return samples;
  }

  Result<void> warm_up(double most_seconds) {
    const double begin = world_.now_seconds();
    for (;;) {
      if (!go_on_()) return Error{ErrorCode::kInterrupted, "interrupted while warming up", ""};
      LLMPROF_LET(const std::vector<Sample> samples, take(1));
      const double spent = world_.now_seconds() - begin;
      const bool rising = is_throttled(samples.back()) && spent < most_seconds && elapsed() < settings_.limit_seconds;
      if (spent >= settings_.warm_up_seconds && !rising) return {};
    }
  }

  std::size_t wanted() const {
    const std::size_t left = std::max<std::size_t>(settings_.most_samples, kept_.size() + 1) - kept_.size();
    const double foreseen = kBatchSeconds / std::max(sample_cost_, 1e-9);
    const std::size_t most = std::max<std::size_t>(1, std::min(settings_.batch, left));
    return foreseen >= static_cast<double>(most) ? most : std::max<std::size_t>(1, static_cast<std::size_t>(foreseen));
  }

  bool is_throttled(const Sample& sample) const {
    return !slow_clock_ && sample.clock_mhz > 0 && settings_.full_clock_mhz > 0 &&
           sample.clock_mhz < settings_.throttle_share * settings_.full_clock_mhz;
  }

  void keep(const Sample& sample) {
    kept_.push_back(sample);
    spread_.add(sample.seconds);
    entropy_.add(sample.seconds);
  }

  // Whether the device needs a pause.
  bool judge(const std::vector<Sample>& samples) {
    const std::size_t before = discarded_.size();
    for (const Sample& sample : samples) is_throttled(sample) ? discarded_.push_back(sample) : keep(sample);
    const std::size_t throttled = discarded_.size() - before;
    if (throttled < samples.size()) pauses_ = 0;  // the clock came back in between
    if (throttled == 0) return false;
    if (++pauses_ <= kPausesInVain || !kept_.empty()) return true;
    give_in();
    return false;
  }

  Result<void> pause() {
    world_.sleep(std::min(kMostPause, kPauseStep * pauses_));
    const Result<void> warm = warm_up(kMostWarmUpAfterPause);
    const bool interrupted = !warm && warm.error().code == ErrorCode::kInterrupted;
    return interrupted ? Result<void>() : warm;  // the loop asks again whether to go on
  }

  // The last of what was discarded belongs to the measurement after all: it was taken in the state that lasts.
  void give_in() {
    slow_clock_ = true;
    for (const Sample& sample : discarded_) keep(sample);
    discarded_.clear();
  }

  void look_whether_enough(double sampling_seconds) {
    const bool may = kept_.size() >= settings_.least_samples && sampling_seconds >= settings_.least_seconds;
    if (may && spread_.done()) {
      stopped_ = StoppedBy::kSpread;
    } else if (may && settings_.by_entropy && entropy_.done()) {
      stopped_ = StoppedBy::kEntropy;
    } else if (kept_.size() >= settings_.most_samples) {
      stopped_ = StoppedBy::kSamples;
    } else if (elapsed() >= settings_.limit_seconds) {
      if (kept_.empty()) give_in();
      stopped_ = StoppedBy::kTime;
    }
  }

  Result<Measurement> result() {
    if (kept_.empty()) return Error{ErrorCode::kInterrupted, "interrupted before anything was measured", ""};
    Measurement measurement;
    std::vector<double> clocks;
    for (const Sample& sample : kept_) {
      measurement.samples.push_back(sample.seconds);
      if (sample.clock_mhz > 0) clocks.push_back(sample.clock_mhz);
    }
    std::sort(clocks.begin(), clocks.end());
    measurement.time = statistics(measurement.samples);
    measurement.stopped_by = *stopped_;
    measurement.noisy = !spread_.done() && !median_is_known(measurement.time);
    measurement.throttled = discarded_.size();
    measurement.slow_clock = slow_clock_;
    measurement.clock_mhz = clocks.empty() ? 0 : quantile(clocks, 0.5);
    measurement.spent_seconds = elapsed();
    return measurement;
  }

  Sampler& sampler_;
  const MeasureSettings& settings_;
  const std::function<bool()>& go_on_;
  const MeasureWorld& world_;
  SpreadCriterion spread_;
  EntropyCriterion entropy_;
  double begin_;
  double sample_cost_ = 0;  // wall time of one, all included
  std::vector<Sample> kept_, discarded_;
  int pauses_ = 0;
  bool slow_clock_ = false;
  std::optional<StoppedBy> stopped_;
};

double weight(std::size_t count) {
  const auto c = static_cast<double>(count);
  return count == 0 ? 0 : c * std::log2(c);
}

}  // namespace

MeasureWorld real_world() {
  return {.now_seconds =
              [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); },
          .sleep = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }};
}

Result<Measurement> measure(Sampler& sampler, const MeasureSettings& settings, const std::function<bool()>& go_on,
                            const MeasureWorld& world) {
  return Loop(sampler, settings, go_on, world).run();
}

void SpreadCriterion::add(double seconds) {
  ++count_;
  const double before = seconds - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (seconds - mean_);
}

double SpreadCriterion::relative_error() const {
  if (count_ < 2 || mean_ <= 0) return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(count_);
  return std::sqrt(squares_ / (n - 1) / n) / mean_;
}

void EntropyCriterion::add(double seconds) {
  constexpr double kMost = 9e18;  // what an int64 holds
  const auto step = static_cast<std::int64_t>(std::min(std::round(seconds / resolution_seconds_), kMost));
  std::size_t& count = counts_[step];
  weighted_ += weight(count + 1) - weight(count);
  ++count;
  ++count_;
  window_.push_back(entropy_bits());
  if (window_.size() > kWindow) window_.pop_front();
}

// -sum p log2 p with p = c / n is log2 n - (sum c log2 c) / n.
double EntropyCriterion::entropy_bits() const {
  if (count_ == 0) return 0;
  const auto n = static_cast<double>(count_);
  return std::max(0.0, std::log2(n) - weighted_ / n);
}

bool EntropyCriterion::done() const {
  if (window_.size() < kLeastPoints) return false;
  const Line line = fitted_line(window_);
  const double degrees = std::atan(std::abs(line.slope)) * 180 / std::numbers::pi;
  return degrees <= kMostDegrees && line.r2 >= kLeastR2;
}

Line fitted_line(const std::deque<double>& y) {
  const auto n = static_cast<double>(y.size());
  const double middle = (n - 1) / 2;
  double mean = 0;
  for (const double value : y) mean += value / n;
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double dx = static_cast<double>(i) - middle, dy = y[i] - mean;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  const double level = 1e-24 * n * (1 + mean * mean);  // what rounding alone gives
  if (xx == 0 || yy <= level) return {0, 1};
  return {xy / xx, xy * xy / (xx * yy)};
}

}  // namespace llmprof::bench
