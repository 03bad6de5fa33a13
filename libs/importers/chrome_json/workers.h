#pragma once
// A few threads that parse chunks while the caller reads on and uses what is parsed. With none, the caller parses.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "importers/chrome_json/parser.h"
#include "importers/chrome_json/splitter.h"

namespace llmprof::importers::chrome_json {

struct Job {
  Chunk chunk;
  Parsed parsed;
  bool done = false;  // guarded by the mutex of Workers
};

class Workers {
 public:
  explicit Workers(int threads);  // fewer if the system does not give them
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }
  void submit(Job& job);
  void wait(Job& job);  // helps while it waits

 private:
  void work();
  void parse_one(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable submitted_, finished_;
  std::deque<Job*> waiting_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace llmprof::importers::chrome_json
