#include "workload/thread_pool.h"

#include <algorithm>

namespace llmprof::workload {

ThreadPool::ThreadPool(std::int64_t threads) {
  for (std::int64_t index = 1; index < threads; ++index) {
    workers_.emplace_back([this, index] { work(index); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_part(std::int64_t index) const {
  const std::int64_t begin = count_ * index / parts_;
  const std::int64_t end = count_ * (index + 1) / parts_;
  if (begin < end) call_(context_, begin, end);
}

void ThreadPool::run(std::int64_t count, std::int64_t min_part, Call call, void* context) {
  const std::int64_t parts = std::min(threads(), count / std::max<std::int64_t>(min_part, 1));
  if (parts <= 1) {
    if (count > 0) call(context, 0, count);
    return;
  }
  call_ = call;
  context_ = context;
  count_ = count;
  parts_ = parts;
  unfinished_ = static_cast<std::int64_t>(workers_.size());
  ++round_;
  round_.notify_all();
  run_part(0);
  for (std::int64_t left = unfinished_; left != 0; left = unfinished_) unfinished_.wait(left);
}

void ThreadPool::work(std::int64_t index) {
  for (std::uint32_t seen = 0;;) {
    round_.wait(seen);
    seen = round_;
    if (stopping_) return;
    if (index < parts_) run_part(index);
    if (--unfinished_ == 0) unfinished_.notify_one();
  }
}

}  // namespace llmprof::workload
