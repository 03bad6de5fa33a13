#include "bench/time_left.h"

namespace llmprof::bench {

void TimeLeft::expect(std::string_view op) { ++paces_[std::string(op)].left; }

void TimeLeft::done(std::string_view op, double seconds) {
  Pace& pace = paces_[std::string(op)];
  pace.spent_seconds += seconds;
  ++pace.done;
  --pace.left;
}

std::optional<double> TimeLeft::seconds() const {
  double spent = 0;
  int done = 0;
  for (const auto& [op, pace] : paces_) {
    spent += pace.spent_seconds;
    done += pace.done;
  }
  if (done == 0) return std::nullopt;
  double left = 0;
  for (const auto& [op, pace] : paces_) {
    left += pace.left * (pace.done > 0 ? pace.spent_seconds / pace.done : spent / done);
  }
  return left;
}

}  // namespace llmprof::bench
