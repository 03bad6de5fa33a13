#pragma once
// The highest rate that keeps limits: doubled until it does not, halved until it does, then between the two.

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace llmprof::load {

struct Probe {
  double rate = 0;           // what was asked for, requests per second
  bool good = false;         // the limits were kept by as many requests as wanted
  bool kept = true;          // the client kept up
  double finished_per_s = 0;
  bool interrupted = false;
};

struct SearchOptions {
  double first = 1;
  double tolerance = 0.05;  // the answer is known to this share of it
  int most_probes = 20;
  double least = 0.01, most = 1e5;
};

struct RateFound {
  std::optional<double> rate;  // the highest that was good
  std::string why;             // the search ended
  bool interrupted = false;
  int probes = 0;
};

// A pure function of what `probe` says. Its error ends the search.
Result<RateFound> find_rate(const SearchOptions& options, const std::function<Result<Probe>(double rate)>& probe);

}  // namespace llmprof::load
