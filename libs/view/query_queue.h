#pragma once
// Statements wait here for the one process that runs them, so that the server never waits.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "view/http_response.h"
#include "view/query_process.h"

namespace llmprof::view {

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
