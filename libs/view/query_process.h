#pragma once
// SQL over a run in a process of its own (RELIABILITY W7): forked before this one has threads or opened anything, it
// forks a child for each statement. The child opens the run, then gives up writing, sockets, starting programs and most
// of its memory, runs the statement on the locked engine of trace::Run::user_query, and is killed when it takes too
// long.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "view/listen.h"

namespace llmprof::view {

struct QueryLimits {
  std::int64_t rows = 1000;
  std::size_t bytes = 900 << 10;  // of the answer
  int seconds = 20;
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;  // of the engine
};

class QueryProcess {
 public:
  // Call it while this process has one thread.
  static Result<QueryProcess> start(const QueryLimits& limits = {});
  QueryProcess(QueryProcess&& other) noexcept;
  QueryProcess& operator=(QueryProcess&&) = delete;
  ~QueryProcess();  // ends it

  void end();  // from any thread: a question that waits for its answer fails
  // {"columns": […], "rows": [[…]…], "truncated": …} as text. One at a time.
  Result<std::string> ask(const std::string& run, const std::string& sql);

 private:
  QueryProcess() = default;
  Descriptor socket_;
  int pid_ = -1;
};

}  // namespace llmprof::view
