#include "host/live.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "host/pace.h"
#include "host/proc.h"
#include "wire/clock.h"

namespace llmprof::host {
namespace {

constexpr std::uint64_t kLiveLookNs = 50'000'000;  // between two readings of states
constexpr double kLiveShare = 0.005;               // of one core

// Functions of the samples of one interval.
class FunctionSums {
 public:
  void add(const SeenSample& sample) {
    sampled_ns_ += sample.weight_ns;
    seen_.clear();
    bool python = false;
    for (std::size_t i = 0; i < sample.frames.size(); ++i) {
      const SeenFrame& frame = *sample.frames[i];
      const Key key{frame.function, frame.file};
      const bool first = seen_.insert(key).second;  // recursion counts once
      LiveFunction& function = entry(functions_, key, frame);
      if (i == 0) function.self_ns += sample.weight_ns;
      if (first) function.total_ns += sample.weight_ns;
      if (frame.kind != wire::FrameKind::kPython) continue;
      LiveFunction& own = entry(python_, key, frame);
      if (!std::exchange(python, true)) own.self_ns += sample.weight_ns;
      if (first) own.total_ns += sample.weight_ns;
    }
  }

  void take(LiveInterval& out) {
    out.functions = sorted(functions_);
    out.python_functions = sorted(python_);
    out.sampled_ns = std::exchange(sampled_ns_, 0);
  }

 private:
  using Key = std::pair<std::string, std::string>;
  using Functions = std::map<Key, LiveFunction>;
  static LiveFunction& entry(Functions& functions, const Key& key, const SeenFrame& frame) {
    LiveFunction& function = functions[key];
    if (function.name.empty()) function = {frame.function, frame.file, frame.kind};
    return function;
  }
  static std::vector<LiveFunction> sorted(Functions& functions) {
    std::vector<LiveFunction> out;
    for (auto& [key, function] : std::exchange(functions, {})) out.push_back(std::move(function));
    std::ranges::stable_sort(out, [](const LiveFunction& a, const LiveFunction& b) {
      return std::pair(a.self_ns, a.total_ns) > std::pair(b.self_ns, b.total_ns);
    });
    return out;
  }

  Functions functions_, python_;
  std::set<Key> seen_;  // reused
  std::uint64_t sampled_ns_ = 0;
};

class WatchedProgram final : public LiveProgram {
 public:
  explicit WatchedProgram(pid_t pid) : pid_(pid), stat_(pid), tree_(pid, ""), states_pace_(kLiveLookNs, kLiveShare) {}

  Result<void> prepare(std::uint32_t hz) {
    const auto now = stat_.read();
    if (!now || now->ended())
      return Error{ErrorCode::kNotFound, fmt::format("there is no process {}", pid_), "ps -e lists them"};
    StackOptions options;
    options.hz = hz;
    options.running = true;
    options.seen = [this](const SeenSample& sample) { sums_.add(sample); };
    auto opened = StackSampler::open(pid_, options, log_);
    if (opened) {
      stacks_ = std::move(*opened);
    } else {
      no_stacks_ = opened.error().message;
    }
    look();
    (void)processes_.read(pids());
    return {};
  }

  LiveInterval watch(std::uint64_t ns, const std::function<bool()>& stop) override {
    const std::uint64_t begin = wire::now_ns();
    LiveInterval out;
    for (std::uint64_t now = begin; now - begin < ns && !out.ended && !stop(); now = wire::now_ns()) {
      if (states_pace_.is_due(now)) {
        states_pace_.measure(now, [&] {
          look();
          states_.read();
        });
      }
      const auto stat = stat_.read();
      out.ended = !stat || stat->ended();
      wait(std::min(ns - (now - begin), kLiveLookNs));
      if (stacks_) stacks_->drain();
    }
    take(out, wire::now_ns() - begin);
    return out;
  }

  const std::string& no_stacks() const override { return no_stacks_; }
  std::string limits() const override {
    std::string out = stacks_ ? stacks_->stats().kernel_why : "";
    if (!states_.problem().empty())
      out += fmt::format("{}causes of waits are less exact ({})", out.empty() ? "" : "; ", states_.problem());
    return out;
  }

 private:
  void look() {
    for (const pid_t pid : tree_.look()) {
      members_.insert(pid);
      states_.follow(pid, true);
    }
  }
  std::vector<pid_t> pids() const { return {members_.begin(), members_.end()}; }

  // Python's frames are read soon after their sample.
  void wait(std::uint64_t ns) const {
    std::vector<pollfd> ends;
    if (stacks_) {
      for (const int descriptor : stacks_->descriptors()) ends.push_back({descriptor, POLLIN, 0});
    }
    const int count = ::poll(ends.data(), ends.size(), static_cast<int>(ns / 1'000'000) + 1);
    const bool broken =
        std::ranges::any_of(ends, [](const pollfd& end) { return (end.revents & (POLLHUP | POLLERR)) != 0; });
    if (count > 0 && broken) ::usleep(10'000);  // its first thread is gone: it would be ready for ever
  }

  void take(LiveInterval& out, std::uint64_t ns) {
    out.ns = ns;
    sums_.take(out);
    out.processes = processes_.read(pids());
    std::set<pid_t> alive;
    for (const LiveProcess& process : out.processes) alive.insert(process.pid);
    std::erase_if(members_, [&](pid_t pid) {
      if (alive.contains(pid)) return false;
      tree_.ended(pid);
      states_.ended(pid);
      return true;
    });
    for (const ThreadTimes& thread : states_.take()) {
      for (std::size_t i = 0; i < kThreadStates; ++i) {
        out.states[i] += thread.ns[i];
        if (thread.tid == pid_) out.main_states[i] += thread.ns[i];
      }
    }
  }

  pid_t pid_;
  StatFile stat_;
  ProcessTree tree_;
  Pace states_pace_;
  HostLog log_ = HostLog::nowhere();
  FunctionSums sums_;
  std::unique_ptr<StackSampler> stacks_;
  std::string no_stacks_;
  ThreadStates states_;
  LiveProcesses processes_;
  std::set<pid_t> members_;
};

}  // namespace

std::vector<LiveProcess> LiveProcesses::read(const std::vector<pid_t>& pids) {
  std::vector<LiveProcess> out;
  std::map<pid_t, Before> now;
  for (const pid_t pid : pids) {
    const auto stat = read_stat(pid);
    if (!stat || stat->ended()) continue;
    const auto known = before_.find(pid);
    Before before = known != before_.end() && known->second.start_ticks == stat->start_ticks ? known->second : Before{};
    const bool fresh = before.start_ticks == 0;
    if (fresh) {
      before.name = executable(pid);
      before.arguments = arguments(pid);
      std::ranges::replace(before.arguments, '\0', ' ');
    }
    LiveProcess process{.pid = pid, .name = before.name, .arguments = before.arguments};
    process.rss_bytes = stat->rss_bytes;
    process.threads = stat->threads;
    if (!fresh) {
      process.user_ns = stat->user_ns - std::min(stat->user_ns, before.user_ns);
      process.system_ns = stat->system_ns - std::min(stat->system_ns, before.system_ns);
    }
    before.start_ticks = std::max<std::uint64_t>(stat->start_ticks, 1);
    before.user_ns = stat->user_ns;
    before.system_ns = stat->system_ns;
    now[pid] = std::move(before);
    out.push_back(std::move(process));
  }
  before_ = std::move(now);
  std::ranges::stable_sort(out, std::greater{}, &LiveProcess::cpu_ns);
  return out;
}

std::vector<pid_t> own_processes() {
  std::vector<pid_t> out;
  for (const pid_t pid : processes()) {
    struct stat owner {};
    if (::stat(fmt::format("/proc/{}", pid).c_str(), &owner) != 0) continue;
    if (::geteuid() != 0 && owner.st_uid != ::geteuid()) continue;
    if (!executable(pid).empty()) out.push_back(pid);
  }
  return out;
}

Result<std::unique_ptr<LiveProgram>> LiveProgram::open(pid_t pid, std::uint32_t sample_hz) {
  auto program = std::make_unique<WatchedProgram>(pid);
  LLMPROF_TRY(program->prepare(sample_hz));
  return std::unique_ptr<LiveProgram>(std::move(program));
}

}  // namespace llmprof::host
