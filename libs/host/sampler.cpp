#include "host/sampler.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file.h"
#include "host/pace.h"
#include "host/proc.h"
#include "host/thread_states.h"
#include "host/usage.h"

namespace llmprof::host {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kLookNs = 20 * kMillisecond;          // between two looks for new processes
constexpr std::uint64_t kLongestLookNs = 100 * kMillisecond;  // also where looking is dear
constexpr std::uint64_t kMoreNs = 1000 * kMillisecond;        // I/O, switches, memory peak
constexpr std::uint64_t kFlushNs = 500 * kMillisecond;
constexpr double kUsageShare = 0.0015;  // of one core, at most: where a reading costs more, readings come less often
constexpr double kMoreShare = 0.001;
constexpr double kLookShare = 0.001;
constexpr std::uint64_t kFilesNs = 100 * kMillisecond;  // between two looks at mapped and open files
constexpr double kFilesShare = 0.0005;

constexpr std::uint64_t kStatesNs = 50 * kMillisecond;  // between two looks at what threads wait for
constexpr double kStatesShare = 0.001;
constexpr std::uint64_t kStatesNotedNs = 1000 * kMillisecond;

// A descriptor that is closed.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

void add_to(const Descriptor& epoll, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, descriptor, &event);
}

// One descriptor per followed process. Our program was forked already and keeps its own limit.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 16);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void be_modest(bool stacks) {
  ::pthread_setname_np(::pthread_self(), "llmprof-host");
  if (stacks) return;                       // frames of Python are to be read soon after their sample
  (void)::setpriority(PRIO_PROCESS, 0, 5);  // of this thread only; if refused, it goes on as it is
}

class ThreadSampler final : public Sampler {
 public:
  ThreadSampler(pid_t root, const SamplerOptions& options, HostLog log)
      : root_(root),
        options_(options),
        log_(std::move(log)),
        usage_(log_),
        timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        usage_pace_(1'000'000'000u / std::max(options.usage_hz, 1u), kUsageShare),
        more_pace_(kMoreNs, kMoreShare),
        look_pace_(kLookNs, kLookShare, kLongestLookNs),
        files_pace_(kFilesNs, kFilesShare),
        states_pace_(kStatesNs, kStatesShare) {}

  ~ThreadSampler() override { end_thread(); }

  // What can still fail.
  Result<void> prepare() {
    for (const Descriptor* descriptor : {&timer_, &stop_, &epoll_}) {
      if (descriptor->get() < 0) return base::errno_error(ErrorCode::kIo, "host sampler", errno);
    }
    add_to(epoll_, timer_.get());
    add_to(epoll_, stop_.get());
    if (const auto status = read_status(root_)) peak_before_ = status->peak_rss_bytes;
    if (options_.stack.running) allow_many_files();  // a descriptor per thread and CPU
    if (options_.stacks) open_stacks();
    return {};
  }

  void start() override {
    sigset_t all, found;
    allow_many_files();
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &found);  // the thread inherits it: signals are the main thread's business
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {  // too many threads already
      problem_ = std::string("processes are not watched: ") + error.what();
    }
    ::pthread_sigmask(SIG_SETMASK, &found, nullptr);
  }

  void pause() override { end_thread(); }

  void stop() override {
    end_thread();
    if (stacks_) stacks_->drain();
    states_.read();
    note_states();
    usage_.last_reading(root_);
    (void)usage_.read();  // its children may have ended just before it
  }

  SamplerOutcome finish(const rusage& used) override {
    if (!options_.stack.running) usage_.collected(root_, used, peak_before_);
    SamplerOutcome outcome;
    outcome.unreadable = usage_.unreadable();
    outcome.model_files = usage_.model_files();
    outcome.no_stacks = no_stacks_;
    outcome.contention = usage_.contention();
    outcome.no_causes = states_.problem();
    outcome.unread_threads = states_.left_out();
    if (stacks_) outcome.stacks = stacks_->stats();
    outcome.problem = problem_;
    if (options_.also) options_.also(log_);
    if (const auto flushed = log_.flush(); !flushed) outcome.problem = flushed.error().message;
    return outcome;
  }

 private:
  void open_stacks() {
    auto opened = StackSampler::open(root_, options_.stack, log_);
    if (!opened) {
      no_stacks_ = opened.error().message;
      return;
    }
    stacks_ = std::move(*opened);
    for (const int descriptor : stacks_->descriptors()) add_to(epoll_, descriptor);
  }

  void end_thread() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  void run() {
    be_modest(stacks_ != nullptr);
    ProcessTree tree(root_, options_.setting);
    for (bool go = true; go;) {
      tick(tree);
      go = wait();
    }
  }

  void tick(ProcessTree& tree) {
    const std::uint64_t now = now_ns();
    if (rest(now)) return set_timer(options_.rests.next_change(now));
    if (look_pace_.is_due(now)) look_pace_.measure(now, [&] { look(tree); });
    if (usage_pace_.is_due(now)) {
      usage_pace_.measure(now, [&] {
        for (const pid_t pid : usage_.read()) {
          tree.ended(pid);
          states_.ended(pid);
        }
      });
    }
    if (more_pace_.is_due(now)) more_pace_.measure(now, [&] { usage_.read_more(); });
    if (files_pace_.is_due(now)) files_pace_.measure(now, [&] { usage_.look_at_files(); });
    if (states_pace_.is_due(now)) states_pace_.measure(now, [&] { read_states(now); });
    if (now >= next_flush_ns_) {
      if (stacks_) stacks_->drain();
      if (options_.also) options_.also(log_);
      (void)log_.flush();  // an error stays and is told at the end
      next_flush_ns_ = now + kFlushNs;
    }
    set_timer(std::min({usage_pace_.next_ns(), more_pace_.next_ns(), files_pace_.next_ns(), next_flush_ns_,
                        look_pace_.next_ns(), states_pace_.next_ns(), options_.rests.next_change(now)}));
  }

  bool rest(std::uint64_t now) {
    const bool rests = options_.rests.at(now);
    if (rests != rests_ && stacks_) stacks_->rest(rests);
    return rests_ = rests;
  }

  void look(ProcessTree& tree) {
    for (const pid_t pid : tree.look()) {
      usage_.follow(pid);
      states_.follow(pid, pid == root_);  // which was made before it became the program
      if (!group_.found()) group_ = CpuGroupFile(pid);
      usage_pace_.due_now();
    }
  }

  void read_states(std::uint64_t now) {
    states_.read();
    if (now < next_states_note_ns_) return;
    next_states_note_ns_ = now + kStatesNotedNs;
    note_states();
  }

  // Adds what threads did since the last time to the log, and what the limit of their group took away.
  void note_states() {
    const std::uint64_t now = now_ns();
    for (const ThreadTimes& thread : states_.take()) {
      const auto pid = static_cast<std::uint32_t>(thread.pid), tid = static_cast<std::uint32_t>(thread.tid);
      if (thread.first)
        log_.add(wire::RecordKind::kThread).thread = {.ts_ns = now, .tid = tid, .name = log_.name(thread.name)};
      for (std::size_t state = 0; state < kThreadStates; ++state) {
        if (thread.ns[state] == 0) continue;
        log_.add(wire::RecordKind::kThreadTime).thread_time = {.ts_ns = now,
                                                               .time_ns = thread.ns[state],
                                                               .pid = pid,
                                                               .tid = tid,
                                                               .state = static_cast<ThreadState>(state)};
      }
    }
    if (!group_.found()) return;
    const CpuGroup group = group_.read();
    if (group.quota_us == 0 && group.throttled == 0) return;
    log_.add(wire::RecordKind::kCpuGroup).cpu_group = {.ts_ns = now,
                                                       .periods = group.periods,
                                                       .throttled = group.throttled,
                                                       .throttled_ns = group.throttled_ns,
                                                       .quota_us = static_cast<std::uint32_t>(group.quota_us),
                                                       .period_us = static_cast<std::uint32_t>(group.period_us),
                                                       .pid = static_cast<std::uint32_t>(root_)};
  }

  // Until `time_ns` of now_ns(). The clocks differ by less than a thousandth.
  void set_timer(std::uint64_t time_ns) const {
    const std::uint64_t now = now_ns();
    const std::uint64_t wait = std::max(time_ns, now + kMillisecond) - now;
    itimerspec timer{};
    timer.it_value = {static_cast<time_t>(wait / 1'000'000'000u), static_cast<long>(wait % 1'000'000'000u)};
    ::timerfd_settime(timer_.get(), 0, &timer, nullptr);
  }

  // The timer and the end do not wait for it.
  void let_gather(std::chrono::milliseconds time) const {
    std::array<pollfd, 2> others{{{timer_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (time.count() > 0) ::poll(others.data(), others.size(), static_cast<int>(time.count()));
  }

  // Until the timer rings; stack samples are drained meanwhile. False: the thread is to end.
  bool wait() const {
    std::array<epoll_event, 16> events;
    while (true) {
      const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
      bool samples = false, time = false;
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.fd == stop_.get()) return false;
        (event.data.fd == timer_.get() ? time : samples) = true;
        // The thread it was opened for is gone; those made by it go on. It would be ready for ever from now on, so what
        // is left is drained by the clock.
        if ((event.events & (EPOLLHUP | EPOLLERR)) != 0)
          ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, event.data.fd, nullptr);
      }
      if (samples && stacks_) {
        stacks_->drain();
        if (!time) let_gather(stacks_->may_gather());
      }
      if (time) return true;
      if (count < 0 && errno != EINTR) return false;
    }
  }

  pid_t root_;
  SamplerOptions options_;
  HostLog log_;
  Usage usage_;
  Descriptor timer_, stop_, epoll_;
  Pace usage_pace_, more_pace_, look_pace_, files_pace_, states_pace_;
  ThreadStates states_;
  CpuGroupFile group_;
  std::uint64_t next_states_note_ns_ = 0;
  std::unique_ptr<StackSampler> stacks_;  // before log_ goes
  std::string no_stacks_;
  std::string problem_;
  std::uint64_t peak_before_ = 0;
  std::uint64_t next_flush_ns_ = 0;
  bool rests_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Sampler>> Sampler::create(pid_t root, const SamplerOptions& options) {
  LLMPROF_LET(HostLog log, HostLog::create(options.log_path));
  auto sampler = std::make_unique<ThreadSampler>(root, options, std::move(log));
  LLMPROF_TRY(sampler->prepare());
  return std::unique_ptr<Sampler>(std::move(sampler));
}

}  // namespace llmprof::host
