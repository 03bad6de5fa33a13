#pragma once
// Threads that stay: a benchmark of microseconds cannot start threads for every call. One caller at a time.

#include <cstdint>
#include <functional>
#include <memory>

namespace llmprof::bench {

class Team {
 public:
  explicit Team(std::int64_t threads);  // as many as could be started, 1 at least: the caller is the first
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::int64_t size() const;
  // Runs part(begin, end) over [0, count) cut into one piece per thread; returns when all are done. Pieces of fewer
  // than `grain` items are not handed out.
  void each(std::int64_t count, std::int64_t grain, const std::function<void(std::int64_t, std::int64_t)>& part) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace llmprof::bench
