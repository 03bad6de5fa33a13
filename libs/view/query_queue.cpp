#include "view/query_queue.h"

#include <utility>

namespace llmprof::view {

QueryQueue::QueryQueue(QueryProcess process, Answer answer)
    : process_(std::move(process)), answer_(std::move(answer)), thread_([this] { work(); }) {}

QueryQueue::~QueryQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  process_.end();  // whoever waits for it hears so
  thread_.join();
}

bool QueryQueue::add(std::uint64_t ticket, const std::string& run, const std::string& sql) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= kMost) return false;
    jobs_.push_back({ticket, run, sql});
  }
  changed_.notify_all();
  return true;
}

void QueryQueue::work() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    auto rows = process_.ask(job.run, job.sql);
    if (rows) {
      answer_(job.ticket, Response{.body = std::move(*rows)});
    } else {
      const Error& error = rows.error();
      answer_(job.ticket, refusal(400, error.hint.empty() ? error.message : error.message + "; " + error.hint));
    }
  }
}

}  // namespace llmprof::view
