#pragma once
// SQL over a run in a process of its own: forked before this one has threads or opened anything, it
// forks a child for each statement. The child opens the run, then gives up writing, sockets, starting programs and most
// of its memory, runs the statement on the locked engine of trace::Run::user_query, and is killed when it takes too
// long.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "view/http.h"
#include "view/server.h"

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

// Statements wait here for the one process that runs them, so that the server never waits.

class QueryQueue {
 public:
  static constexpr std::size_t kMost = 8;                                       // waiting
  using Answer = std::function<void(std::uint64_t ticket, Response response)>;  // called by a thread of the queue

  QueryQueue(QueryProcess process, Answer answer);
  ~QueryQueue();  // what waits is dropped; the process is ended

  // False: too many wait already.
  bool add(std::uint64_t ticket, const std::string& run, const std::string& sql);

 private:
  struct Job {
    std::uint64_t ticket;
    std::string run, sql;
  };
  void work();

  QueryProcess process_;
  Answer answer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace llmprof::view
