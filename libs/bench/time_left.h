#pragma once
// How long the rest of a sweep will take: as long as the points of the same operator took, else as long as all did.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::bench {

class TimeLeft {
 public:
  void expect(std::string_view op);                // a point that is still to be measured
  void done(std::string_view op, double seconds);  // one of them is
  std::optional<double> seconds() const;           // unknown until one is

 private:
  struct Pace {
    double spent_seconds = 0;
    int done = 0, left = 0;
  };
  std::map<std::string, Pace, std::less<>> paces_;
};

}  // namespace llmprof::bench
