#include "importers/chrome_json/reader.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "importers/chrome_json/chunks.h"
#include "importers/chrome_json/parser.h"

namespace llmprof::importers::chrome_json {

namespace {

constexpr int kMaxThreads = 4;                       // beyond, the caller's thread is what it waits for
constexpr std::size_t kKeptBytes = 2 << 20;          // memory that a chunk keeps for the next
constexpr std::size_t kMaxBytesUnderWay = 32 << 20;  // of chunks: only huge events come near

// Cores this process may use; in the sandbox nothing else can be asked.
int cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

struct Job {
  Chunk chunk;
  Parsed parsed;
  bool done = false;  // guarded by the mutex of Workers
};

// A few threads that parse chunks while the caller reads on and uses what is parsed. With none, the caller parses.
class Workers {
 public:
  // fewer if the system does not give them
  explicit Workers(int threads) {
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // a limit on threads: those that are there, or the caller alone, do it
    }
  }

  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      waiting_.clear();
    }
    submitted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

  void submit(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      job.done = false;
      waiting_.push_back(&job);
    }
    submitted_.notify_one();
  }

  // helps while it waits
  void wait(Job& job) {
    std::unique_lock lock(mutex_);
    while (!job.done) {
      if (waiting_.empty()) {
        finished_.wait(lock, [&job] { return job.done; });
      } else {
        parse_one(lock);
      }
    }
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      submitted_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      parse_one(lock);
    }
  }

  void parse_one(std::unique_lock<std::mutex>& lock) {
    Job& job = *waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    parse_events(job.chunk.text, job.chunk.offset, job.chunk.unclean, job.parsed);
    lock.lock();
    job.done = true;
    finished_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable submitted_, finished_;
  std::deque<Job*> waiting_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

class Reader {
 public:
  Reader(Input& input, Sink& sink, EventTaker& taker, const ReaderOptions& options)
      : input_(input),
        sink_(sink),
        taker_(taker),
        splitter_(input, options.chunk_bytes),
        workers_(std::clamp(options.threads > 0 ? options.threads : cores(), 1, kMaxThreads) - 1) {}

  Result<void> run() {
    const auto under_way = static_cast<std::size_t>(workers_.threads()) * 2 + 1;
    for (;;) {
      while (submitted_ - taken_ >= under_way || (submitted_ > taken_ && bytes_under_way_ > kMaxBytesUnderWay))
        LLMPROF_TRY(take_oldest());
      Job& job = jobs_[submitted_ % jobs_.size()];
      LLMPROF_LET(const bool more, splitter_.next(job.chunk));
      if (!header_given_ && splitter_.events_found()) {
        taker_.take_header(splitter_.outline().header());
        header_given_ = true;
      }
      if (!more) break;
      bytes_under_way_ += job.chunk.text.size();
      workers_.submit(job);
      ++submitted_;
    }
    while (taken_ < submitted_) LLMPROF_TRY(take_oldest());
    return finish();
  }

 private:
  Result<void> take_oldest() {
    Job& job = jobs_[taken_ % jobs_.size()];
    workers_.wait(job);
    ++taken_;
    bytes_under_way_ -= job.chunk.text.size();
    for (const Event& event : job.parsed.events) taker_.take(event);
    events_ += job.parsed.events.size();
    count(job.parsed);
    job.chunk.shrink(kKeptBytes);
    if (!sink_.progress(input_.stored_offset())) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    return {};
  }

  void lose(trace::Loss loss, const Tally& tally, std::string_view what) {
    if (tally.count > 0) sink_.lose(loss, tally.count, what, fmt::format("byte {}", tally.first));
  }

  void count(const Parsed& parsed) {
    lose(trace::Loss::kInputDamaged, parsed.damaged, "events that are not valid JSON");
    lose(trace::Loss::kInputDamaged, parsed.no_phase, "objects without ph");
    lose(trace::Loss::kInputRepaired, parsed.texts_repaired, "texts with bytes that JSON does not allow");
    lose(trace::Loss::kInputRepaired, parsed.numbers_repaired, "numbers that are none or out of range");
    lose(trace::Loss::kInputRepaired, parsed.commas, "commas in front of a closing bracket");
    no_phase_ += parsed.no_phase.count;
    if (parsed.no_phase.count > 0 && first_no_phase_ == 0) first_no_phase_ = parsed.no_phase.first;
  }

  Result<void> finish() {
    const Outline& outline = splitter_.outline();
    const std::string end = fmt::format("byte {}", splitter_.offset());
    lose(trace::Loss::kInputDamaged, splitter_.damaged(), "events whose quotes or brackets do not match");
    lose(trace::Loss::kInputRepaired, outline.repaired(), "texts that end with their line");
    if (outline.members_left_out() > 0)
      sink_.lose(trace::Loss::kInputIgnored, outline.members_left_out(), "large members beside traceEvents");
    if (splitter_.truncated()) sink_.lose(trace::Loss::kInputTruncated, 1, splitter_.truncated_why(), end);
    if (splitter_.second_document())
      sink_.lose(trace::Loss::kInputDamaged, 1, "content behind the end of the trace", end);
    if (events_ == 0 && no_phase_ > 0) {
      return Error{
          ErrorCode::kCorruptInput,
          fmt::format("byte {}: none of the {} objects is a trace event (they have no ph)", first_no_phase_, no_phase_),
          "this is JSON, but no trace of torch.profiler or in Chrome's format"};
    }
    taker_.take_header(outline.header());
    return {};
  }

  Input& input_;
  Sink& sink_;
  EventTaker& taker_;
  Splitter splitter_;
  std::array<Job, 2 * kMaxThreads> jobs_;  // before workers_, which use them until they are gone
  Workers workers_;
  std::size_t submitted_ = 0, taken_ = 0, bytes_under_way_ = 0, events_ = 0;
  std::int64_t no_phase_ = 0;
  std::uint64_t first_no_phase_ = 0;
  bool header_given_ = false;
};

}  // namespace

Result<void> read_events(Input& input, Sink& sink, EventTaker& taker, const ReaderOptions& options) {
  return Reader(input, sink, taker, options).run();
}

}  // namespace llmprof::importers::chrome_json
