#pragma once
// When enough samples were taken. Each criterion is told every sample and says when more would not change the answer;
// measure.h decides how few samples are too few.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

namespace llmprof::bench {

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
