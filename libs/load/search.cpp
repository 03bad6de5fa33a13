#include "load/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/human.h"

namespace llmprof::load {
namespace {

std::string rate_words(double rate) { return base::three_digits(rate) + " requests/s"; }

class Search {
 public:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  explicit Search(const SearchOptions& options) : options_(options), next_(options.first) {}

  double next() const { return next_; }
  // Empty: go on at next(); else why the search ended.
  std::string take(const Probe& probe) {
    if (probe.interrupted) return "it was interrupted";
    if (probe.good) {  // also where the client was late: its lateness is in the latencies
      low = low ? std::max(*low, probe.rate) : probe.rate;
      // What is sent faster than it is served only waits: a short probe can keep loose limits so.
      if (high_ == kNone && probe.finished_per_s < probe.rate / 2)
        return fmt::format("at {} the server finished only {}: the probe is too short, or its limits too loose, for more",
                           rate_words(probe.rate), rate_words(probe.finished_per_s));
    } else if (probe.rate < high_) {
      high_ = probe.rate;
      client_ = !probe.kept;
    }
    return choose();
  }
  std::optional<double> low;

 private:
  std::string choose() {
    if (high_ == kNone) {
      next_ = *low * 2;
      return next_ > options_.most ? fmt::format("{} were kept, and more is not tried", rate_words(*low)) : "";
    }
    const std::string limit = client_ ? fmt::format("at {} the client did not keep up: the limit may be its own", rate_words(high_))
                                      : fmt::format("at {} they are not kept", rate_words(high_));
    if (!low) {
      next_ = high_ / 2;
      return next_ < options_.least ? limit + ", and less is not tried" : "";
    }
    if (high_ <= *low * (1 + options_.tolerance)) return limit;
    next_ = std::sqrt(*low * high_);
    return "";
  }

  const SearchOptions& options_;
  double next_;
  double high_ = kNone;  // the lowest that was not good
  bool client_ = false;
};

}  // namespace

Result<RateFound> find_rate(const SearchOptions& options, const std::function<Result<Probe>(double rate)>& probe) {
  Search search(options);
  RateFound found;
  while (found.why.empty()) {
    LLMPROF_LET(const Probe tried, probe(search.next()));
    ++found.probes;
    found.interrupted = tried.interrupted;
    found.why = search.take(tried);
    if (found.why.empty() && found.probes == options.most_probes)
      found.why = fmt::format("{} loads were tried", found.probes);
  }
  found.rate = search.low;
  return found;
}

}  // namespace llmprof::load
