#include "importers/chrome_json/workers.h"

#include <system_error>

namespace llmprof::importers::chrome_json {

Workers::Workers(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // a limit on threads: those that are there, or the caller alone, do it
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    waiting_.clear();
  }
  submitted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::submit(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    job.done = false;
    waiting_.push_back(&job);
  }
  submitted_.notify_one();
}

void Workers::wait(Job& job) {
  std::unique_lock lock(mutex_);
  while (!job.done) {
    if (waiting_.empty()) {
      finished_.wait(lock, [&job] { return job.done; });
    } else {
      parse_one(lock);
    }
  }
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    submitted_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    parse_one(lock);
  }
}

void Workers::parse_one(std::unique_lock<std::mutex>& lock) {
  Job& job = *waiting_.front();
  waiting_.pop_front();
  lock.unlock();
  parse_events(job.chunk.text, job.chunk.offset, job.chunk.unclean, job.parsed);
  lock.lock();
  job.done = true;
  finished_.notify_all();
}

}  // namespace llmprof::importers::chrome_json
