#pragma once
// Threads for the loops between matrix products. Products bring their own threads (OpenBLAS), and the two kinds of
// work alternate, so both pools may be as large as the machine. One caller at a time.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace llmprof::workload {

class ThreadPool {
 public:
  // The caller counts as one of the threads.
  explicit ThreadPool(std::int64_t threads);
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool();

  std::int64_t threads() const { return static_cast<std::int64_t>(workers_.size()) + 1; }

  // Calls body(begin, end) for contiguous parts of [0, count), at least `min_part` items each, and waits for all.
  // Waking a thread costs some microseconds: choose min_part so that a part takes longer.
  template <class Body>
  void parallel_for(std::int64_t count, std::int64_t min_part, Body&& body) {
    run(
        count, min_part,
        [](void* context, std::int64_t begin, std::int64_t end) {
          (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end);
        },
        &body);
  }

 private:
  using Call = void (*)(void* context, std::int64_t begin, std::int64_t end);
  void run(std::int64_t count, std::int64_t min_part, Call call, void* context);
  void run_part(std::int64_t index) const;
  void work(std::int64_t index);

  std::vector<std::thread> workers_;
  std::atomic<std::uint32_t> round_{0};  // a new value: there is work, or the end
  std::atomic<std::int64_t> unfinished_{0};
  std::atomic<bool> stopping_{false};
  // The work of this round; written before round_ changes.
  Call call_ = nullptr;
  void* context_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t parts_ = 0;
};

}  // namespace llmprof::workload
