// What holds a program back on the CPU, whatever it is: too many threads, spinning, locks, a limit, the kernel.

#include "analyze/rules/tools.h"

namespace llmprof::analyze {
namespace {

constexpr double kLeastCpuNs = 2e8;  // below, a program is too short to judge
constexpr std::string_view kStateRows =
    "SELECT t.tid, w.state, sum(w.time_ns) AS ns FROM thread_time AS w JOIN thread AS t ON t.id = w.thread_id GROUP BY "
    "ALL ORDER BY ns DESC";

// Time of all threads in one state; of main threads only.
double time_in(const Host& host, std::string_view state) {
  double sum = 0;
  for (const ProcessWait& wait : host.waits) sum += wait.state == state ? static_cast<double>(wait.time_ns) : 0;
  return sum;
}
// Of the main thread of the process with most CPU time, which comes first.
double main_time_in(const Host& host, std::string_view state) {
  for (const ProcessWait& wait : host.waits) {
    if (wait.pid == host.waits.front().pid && wait.state == state) return static_cast<double>(wait.main_ns);
  }
  return 0;
}

std::int64_t cpus_of(const Summary& summary) {
  std::int64_t cpus = 0;
  for (const DeviceCard& device : summary.devices) cpus = device.kind == "cpu" ? std::max(cpus, device.units) : cpus;
  return cpus;
}

struct CpuUse {
  double cpu_ns = 0, system_ns = 0, queue_ns = 0, wall_ns = 0;
  double cpus = 0;
  std::int64_t busy_threads = 0, busy_processes = 0;  // that could run a fifth of the time

  double waiting() const { return cpu_ns + queue_ns > 0 ? queue_ns / (cpu_ns + queue_ns) : 0; }
  double runnable() const { return wall_ns > 0 ? (cpu_ns + queue_ns) / wall_ns : 0; }  // threads, on average
  double used() const { return cpus > 0 && wall_ns > 0 ? cpu_ns / (cpus * wall_ns) : 0; }
};

CpuUse use_of(const Summary& summary) {
  constexpr double kBusy = 0.2;
  CpuUse out;
  const Host& host = summary.host;
  out.system_ns = time_in(host, "system");
  out.cpu_ns = time_in(host, "user") + out.system_ns;
  out.queue_ns = time_in(host, "run queue");
  out.wall_ns = static_cast<double>(summary.coverage.wall_ns);
  out.cpus = static_cast<double>(cpus_of(summary));
  std::vector<std::int64_t> pids;
  for (const ThreadWait& thread : host.threads) {
    if (thread.cpu_share + thread.queue_share < kBusy) continue;
    ++out.busy_threads;
    if (std::ranges::count(pids, thread.pid) == 0) pids.push_back(thread.pid);
  }
  out.busy_processes = std::ssize(pids);
  return out;
}

RuleResult no_states() {
  return not_applicable("0 threads were read from outside, so what they waited for is unknown");
}

// The library whose pool of threads most of the CPU time is in; "" none that is known.
struct ThreadPool {
  std::string_view file, name, setting;
};
constexpr ThreadPool kPools[] = {
    {"openblas", "OpenBLAS", "OPENBLAS_NUM_THREADS"},   {"libmkl", "MKL", "MKL_NUM_THREADS"},
    {"libgomp", "OpenMP (libgomp)", "OMP_NUM_THREADS"}, {"libiomp", "OpenMP (libiomp)", "OMP_NUM_THREADS"},
    {"libomp", "OpenMP (libomp)", "OMP_NUM_THREADS"},   {"libblis", "BLIS", "BLIS_NUM_THREADS"}};
const ThreadPool* pool_of(const Host& host) {
  constexpr double kLeastShare = 0.05;
  const ThreadPool* out = nullptr;
  double most = kLeastShare;
  for (const TopFunction& function : host.top_functions) {
    for (const ThreadPool& pool : kPools) {
      if (function.file.find(pool.file) == std::string::npos || function.total_share <= most) continue;
      most = function.total_share;
      out = &pool;
    }
  }
  return out;
}

std::string fewer_threads(const Host& host, double cpus) {
  const ThreadPool* pool = pool_of(host);
  const std::string setting(pool != nullptr ? pool->setting : "OMP_NUM_THREADS");
  return fmt::format("{}={:.0f}", setting, std::max(1.0, cpus));
}

}  // namespace

namespace cpu_oversubscribed {
namespace {

constexpr double kLeastWaiting = 0.2, kOwn = 0.6;

void advise(const Summary& summary, const CpuUse& use, Finding& out) {
  const std::string fewer = fewer_threads(summary.host, use.cpus / std::max<double>(1, use.busy_processes));
  out.advice.push_back(fmt::format(
      "Start no more busy threads than CPUs: {} (OpenMP: OMP_NUM_THREADS, OpenBLAS: OPENBLAS_NUM_THREADS, MKL: "
      "MKL_NUM_THREADS)<torch> (torch.set_num_threads({:.0f}))</torch>.",
      fewer, std::max(1.0, use.cpus / std::max<double>(1, use.busy_processes))));
  if (use.busy_processes > 1)
    out.advice.push_back(
        fmt::format("{} busy processes each start threads of their own: threads x processes should be {:.0f} at most; "
                    "taskset gives "
                    "each process CPUs of its own.",
                    use.busy_processes, use.cpus));
  out.next = fewer + " llmprof record -o fewer -- PROGRAM";
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const Summary& summary = run.summary;
  if (summary.host.waits.empty()) return no_states();
  const CpuUse use = use_of(summary);
  if (use.cpus == 0) return not_applicable("0 CPUs: how many the program may use is unknown");
  const std::string seen =
      fmt::format("threads waited {} of the time in which they could run for a CPU", human_percent(use.waiting()));
  if (use.waiting() < kLeastWaiting || use.cpu_ns < kLeastCpuNs) return not_found(seen);
  Finding out;
  const bool own = use.used() >= kOwn && use.runnable() > use.cpus;
  out.title = own ? fmt::format("{} busy threads share {:.0f} CPUs: they wait {} of the time in which they could run",
                                use.busy_threads, use.cpus, human_percent(use.waiting()))
                  : fmt::format("Threads wait {} of the time in which they could run: other programs have the CPUs",
                                human_percent(use.waiting()));
  out.text =
      own ? "More threads are ready to run than there are CPUs, so they take turns, and threads that others wait "
            "for wait too."
          : fmt::format("The program itself used {} of the {:.0f} CPUs: its times are those of a busy machine.",
                        human_percent(use.used()), use.cpus);
  out.add_fraction("cpu.queue_share", "run queue: ready, but no CPU was free", use.waiting(),
                   fmt::format("{} on a CPU or ready for one, all threads", human_ns(use.cpu_ns + use.queue_ns)),
                   "measured", std::string(kStateRows));
  out.add_number("cpu.runnable", "threads on a CPU or ready for one, on average", use.runnable(), "", "measured",
                 std::string(kStateRows));
  out.add_number("cpu.cpus", "CPUs that the program may use", use.cpus, "", "measured");
  const double gain = std::min(main_time_in(summary.host, "run queue"), use.wall_ns);
  out.add_time("cpu.main_queue", "run queue, main thread", gain, "measured", std::string(kStateRows));
  if (own) {
    out.lever = "fewer threads";
    out.set_gain(gain, use.wall_ns,
                 fmt::format("{} of {} in which the main thread was ready and had no CPU", human_ns(gain),
                             human_ns(use.wall_ns)));
    advise(summary, use, out);
  } else {
    out.advice = {"Record again while nothing else runs, or keep CPUs for the program (taskset, cpuset)."};
    out.next = "llmprof record -o quiet -- PROGRAM";
  }
  return {.findings = {std::move(out)}};
}

}  // namespace cpu_oversubscribed

namespace spinning_threads {
namespace {

constexpr double kLeastShare = 0.1;

bool yields(std::string_view name) { return name.find("sched_yield") != std::string_view::npos; }

// Loops in which threads of a pool wait for work or for each other without sleeping.
bool spins(const TopFunction& function) {
  static constexpr std::string_view kLoops[] = {
      "blas_thread_server", "gomp_barrier_wait", "gomp_team_barrier_wait", "gomp_team_end", "gomp_simple_barrier_wait",
      "__kmp_wait_",        "__kmp_flag_",       "kmp_flag_native",        "__kmp_yield",   "pthread_spin_lock"};
  return std::ranges::any_of(kLoops, [&](std::string_view loop) { return function.name.starts_with(loop); });
}

}  // namespace

RuleResult check(const RuleInput& run) {
  const Host& host = run.summary.host;
  if (host.stacks.samples == 0) return not_applicable("0 stack samples: what threads do on a CPU is unknown");
  const auto sampled = static_cast<double>(host.stacks.sampled_ns);
  double yielding = 0, spinning = 0;
  for (const TopFunction& function : host.top_functions) {
    if (yields(function.name)) yielding = std::max(yielding, static_cast<double>(function.total_ns));
    if (spins(function)) spinning += static_cast<double>(function.self_ns);
  }
  const double lost = std::min(yielding + spinning, sampled);
  const double share = sampled > 0 ? lost / sampled : 0;
  if (share < kLeastShare || lost < kLeastCpuNs)
    return not_found(
        fmt::format("{} of the CPU time sampled is in loops that wait without sleeping", human_percent(share)));
  const ThreadPool* pool = pool_of(host);
  const CpuUse use = use_of(run.summary);
  Finding out;
  out.title = fmt::format("{} of the CPU time goes to threads that wait without sleeping{}{}", human_percent(share),
                          yielding >= spinning ? ", in sched_yield" : "",
                          pool != nullptr ? fmt::format(" ({})", pool->name) : "");
  out.text = use.waiting() >= 0.1
                 ? fmt::format(
                       "They do no work, but take CPUs from threads that have some: those wait {} of the time in "
                       "which they could run.",
                       human_percent(use.waiting()))
                 : "They do no work: they ask again and again whether there is some.";
  const std::string rows =
      "SELECT f.function, f.file, sum(s.weight_ns) AS ns FROM sample AS s JOIN stack AS k ON k.stack_id = s.stack_id "
      "AND "
      "k.depth = 0 JOIN frame AS f ON f.id = k.frame_id GROUP BY ALL ORDER BY ns DESC";
  out.add_fraction("cpu.spin_share", "in sched_yield and in loops of thread pools that wait", share,
                   fmt::format("{} of CPU time sampled", human_ns(sampled)), "measured", rows);
  out.add_time("cpu.yield", "in sched_yield", yielding, "measured", rows);
  if (use.system_ns > 0)
    out.add_fraction("cpu.system_share", "CPU time in the kernel", use.system_ns / std::max(1.0, use.cpu_ns),
                     fmt::format("{} of CPU time, all threads", human_ns(use.cpu_ns)), "measured",
                     std::string(kStateRows));
  if (use.cpus > 0 && use.wall_ns > 0) {
    const double gain = std::min(lost / use.cpus, use.wall_ns);
    out.set_gain(gain, use.wall_ns,
                 fmt::format("{} of CPU time on {:.0f} CPUs, if threads with work could have used all of it",
                             human_ns(lost), use.cpus));
  }
  const std::string fewer = fewer_threads(host, use.cpus);
  out.lever = "fewer threads";
  out.advice = {
      fmt::format("Start fewer threads, at most one a CPU ({}); for small matrices 1 is often fastest<torch> "
                  "(torch.set_num_threads)</torch>.",
                  fewer),
      "Let waiting threads sleep: OMP_WAIT_POLICY=passive (OpenMP), KMP_BLOCKTIME=0 (Intel's OpenMP); OpenBLAS: "
      "a build with OpenMP obeys the first."};
  out.next = fewer + " llmprof record -o fewer -- PROGRAM";
  return {.findings = {std::move(out)}};
}

}  // namespace spinning_threads

namespace lock_contention {
namespace {

constexpr double kWorking = 0.05, kLeastLocked = 0.25, kLeastLockedNs = 5e8, kManySwitches = 1000;

}  // namespace

RuleResult check(const RuleInput& run) {
  const Host& host = run.summary.host;
  if (host.waits.empty()) return no_states();
  std::int64_t working = 0;
  double time = 0, locked = 0, cpu = 0, longest = 0, switches = 0;
  for (const ThreadWait& thread : host.threads) {
    if (thread.cpu_share < kWorking || thread.cpu_ns < kLeastCpuNs / 4) continue;
    ++working;
    time += static_cast<double>(thread.time_ns);
    cpu += static_cast<double>(thread.cpu_ns);
    locked += static_cast<double>(thread.lock_ns);
    longest = std::max(longest, static_cast<double>(thread.lock_ns));
  }
  for (const ProcessUsage& process : host.processes)
    switches += static_cast<double>(process.voluntary_switches.value_or(0));
  if (working < 2) return not_applicable(fmt::format("{} threads did work: none waits for another's lock", working));
  const double share = time > 0 ? locked / time : 0, rate = cpu > 0 ? switches / cpu * 1e9 : 0;
  const std::string seen =
      fmt::format("{} working threads waited {} of their time in futexes, {} waits per second of CPU time", working,
                  human_percent(share), human_count(rate));
  if (share < kLeastLocked || locked < kLeastLockedNs || rate < kManySwitches) return not_found(seen);
  Finding out;
  out.title = fmt::format("{} working threads wait {} of their time for locks or for each other", working,
                          human_percent(share));
  out.text = fmt::format("They wait {} times per second of CPU time: the pieces of work between two waits are short.",
                         human_count(rate));
  out.add_fraction(
      "cpu.lock_share", "blocked in a futex: mutexes, condition variables, barriers", share,
      fmt::format("{} of threads that work {} of the time or more", human_ns(time), human_percent(kWorking)),
      "measured", std::string(kStateRows));
  out.add_number("cpu.waits_per_cpu_second", "voluntary context switches, per second of CPU time", rate, "", "measured",
                 "SELECT process_id, max(voluntary_switches) AS waits FROM process_usage GROUP BY process_id");
  const auto wall = static_cast<double>(run.summary.coverage.wall_ns);
  if (wall > 0)
    out.set_gain(std::min(longest, wall), wall,
                 fmt::format("{} of {} in which the thread that waited longest was in a futex", human_ns(longest),
                             human_ns(wall)));
  if (!host.python_functions.empty())
    out.advice.emplace_back(
        "Threads of one Python process take turns (GIL): use processes (multiprocessing), or code that "
        "lets go of it (numpy, torch) in larger pieces.");
  out.advice.emplace_back(
      "Give each thread larger pieces of work, or fewer threads; shorten what is done while a lock is held.");
  out.next = "llmprof query RUN \"" + std::string(kStateRows) + "\"";
  return {.findings = {std::move(out)}};
}

}  // namespace lock_contention

namespace cpu_limit {

RuleResult check(const RuleInput& run) {
  constexpr double kLeastThrottled = 0.05;
  constexpr std::int64_t kLeastPeriods = 5;
  const CpuLimit& limit = run.summary.host.cpu_limit;
  if (limit.periods == 0) return not_applicable("0 periods of a CPU limit: the control group of the program has none");
  const std::string seen = fmt::format("the CPU limit was reached in {} of {} periods", limit.throttled, limit.periods);
  if (limit.throttled < kLeastPeriods || limit.throttled_share.value_or(0) < kLeastThrottled) return not_found(seen);
  Finding out;
  const double cpus = limit.quota_cpus.value_or(0);
  out.title = fmt::format("The CPU limit{} stops the program in {} of its periods",
                          cpus > 0 ? fmt::format(" of {:.3g} CPUs", cpus) : "", human_percent(limit.throttled_share));
  out.text =
      "The control group (container, systemd) may use so much CPU time in each period and no more: then all of its "
      "threads stand still until the next begins.";
  const std::string rows = "SELECT * FROM cpu_group ORDER BY ts_ns";
  out.add_fraction("cpu.throttled_share", "periods in which the limit was reached", limit.throttled_share,
                   fmt::format("{} periods", limit.periods), "measured", rows);
  out.add_time("cpu.throttled", "stopped, added up over CPUs", static_cast<double>(limit.throttled_ns), "measured",
               rows);
  const auto wall = static_cast<double>(run.summary.coverage.wall_ns);
  if (wall > 0) {
    const double gain = std::min(static_cast<double>(limit.throttled_ns), wall);
    out.set_gain(gain, wall, fmt::format("{} stopped, of {}", human_ns(gain), human_ns(wall)));
  }
  const double threads = std::max(1.0, std::floor(cpus));
  out.advice = {"Raise the limit (docker run --cpus, resources.limits.cpu of Kubernetes, CPUQuota of systemd).",
                fmt::format("Start no more threads than it allows: OMP_NUM_THREADS={:.0f}<torch> "
                            "(torch.set_num_threads({:.0f}))</torch>. Libraries count the machine's CPUs.",
                            threads, threads)};
  out.next = fmt::format("OMP_NUM_THREADS={:.0f} llmprof record -o fewer -- PROGRAM", threads);
  return {.findings = {std::move(out)}};
}

}  // namespace cpu_limit

namespace kernel_time {
namespace {

constexpr double kLeastShare = 0.3, kSpinning = 0.5;

struct KernelCause {
  std::string_view function, what, advice;
};
// By functions of the kernel that stand on the stack; the first that takes a third of its time.
constexpr KernelCause kCauses[] = {
    {"page_fault", "page faults",
     "Memory is given back and taken again: keep buffers, or let the allocator keep them (MALLOC_TRIM_THRESHOLD_, "
     "MALLOC_MMAP_THRESHOLD_, jemalloc); large arrays: transparent huge pages."},
    {"sys_futex", "futexes", "Threads wake each other often: larger pieces of work, fewer threads."},
    {"vfs_read", "reading files", "Read in larger pieces, or map the file."},
    {"vfs_write", "writing files", "Write in larger pieces."},
    {"sys_munmap", "munmap", "Memory is given back and taken again: keep buffers, raise MALLOC_MMAP_THRESHOLD_."},
    {"sys_clone", "starting processes or threads", "Start fewer processes and threads: keep a pool."},
    {"sys_execve", "starting programs", "Start fewer programs: do more in each."},
    {"sys_exit", "ending processes", "Start fewer processes: do more in each."},
    {"sock", "the network", "Send and receive in larger pieces."},
    {"nvidia", "the GPU driver", "Fewer, larger calls of CUDA: CUDA graphs, pinned memory allocated once."}};

}  // namespace

RuleResult check(const RuleInput& run) {
  const Host& host = run.summary.host;
  double cpu = 0, system = 0, named = 0, yielding = 0;
  for (const ProcessUsage& process : host.processes) {
    cpu += static_cast<double>(process.cpu_ns);
    system += static_cast<double>(process.system_ns);
  }
  if (host.processes.empty() || cpu <= 0) return not_applicable("0 readings of CPU time");
  const double share = system / cpu;
  const std::string seen = fmt::format("{} of the CPU time is spent in the kernel", human_percent(share));
  if (share < kLeastShare || system < kLeastCpuNs) return not_found(seen);
  const KernelCause* cause = nullptr;
  double of_cause = 0;
  for (const TopFunction& function : host.top_functions) {
    if (function.kind == "kernel") named += static_cast<double>(function.self_ns);
    if (function.name.find("sched_yield") != std::string::npos)
      yielding = std::max(yielding, static_cast<double>(function.total_ns));
  }
  for (const TopFunction& function : host.top_functions) {
    if (function.kind != "kernel" || static_cast<double>(function.total_ns) <= of_cause) continue;
    for (const KernelCause& each : kCauses) {
      if (function.name.find(each.function) == std::string::npos &&
          function.file.find(each.function) == std::string::npos)
        continue;
      cause = &each;
      of_cause = static_cast<double>(function.total_ns);
      break;
    }
  }
  if (named > 0 && yielding >= kSpinning * named)
    return not_found(fmt::format("{}, most of it in sched_yield: see spinning_threads", seen));
  Finding out;
  const bool known = cause != nullptr && of_cause >= named / 3;
  out.title = fmt::format("{} of the CPU time is spent in the kernel{}", human_percent(share),
                          known ? fmt::format(", mostly in {}", cause->what) : "");
  out.add_fraction(
      "cpu.system_share", "CPU time in the kernel", share, fmt::format("{} of CPU time", human_ns(cpu)), "measured",
      "SELECT process_id, max(user_ns) AS user_ns, max(system_ns) AS system_ns FROM process_usage GROUP BY process_id");
  const std::string rows =
      "SELECT f.function, sum(s.weight_ns) AS ns FROM sample AS s JOIN stack AS k ON k.stack_id = s.stack_id AND "
      "k.depth = 0 "
      "JOIN frame AS f ON f.id = k.frame_id WHERE f.kind = 'kernel' GROUP BY ALL ORDER BY ns DESC";
  if (known)
    out.add_fraction("cpu.kernel_cause", cause->what.data(), of_cause / named,
                     fmt::format("{} of kernel time sampled", human_ns(named)), "measured", rows);
  const auto wall = static_cast<double>(run.summary.coverage.wall_ns);
  const double main = std::min(main_time_in(host, "system"), wall);
  if (wall > 0 && main > 0)
    out.set_gain(main, wall,
                 fmt::format("{} of {} in which the main thread was in the kernel", human_ns(main), human_ns(wall)));
  if (named <= 0) {
    out.verdict = Verdict::kInconclusive;
    out.text = "What the kernel does for the program is not known: its time could not be sampled.";
    out.next = "sudo sysctl kernel.perf_event_paranoid=1; llmprof record -o kernel -- PROGRAM";
    return {.findings = {std::move(out)}};
  }
  out.text = "System calls and page faults take it; the functions of kind kernel say which.";
  out.advice = {known ? std::string(cause->advice)
                      : "The functions of kind kernel in the report, and what calls them, say why."};
  out.next = "llmprof query RUN \"" + rows + "\"";
  return {.findings = {std::move(out)}};
}

}  // namespace kernel_time

}  // namespace llmprof::analyze
