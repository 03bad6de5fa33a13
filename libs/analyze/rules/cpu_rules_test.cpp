// Rules about threads and CPUs, of any program: by numbers worked out by hand, and on a run written row by row.

#include "analyze/rules/testing/rule_run.h"

namespace llmprof::analyze {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A program of 10 s on 2 CPUs. Time of threads by state: {state, all threads, main thread}.
struct State {
  const char* state;
  double seconds, main_seconds;
};
Summary program(const std::vector<State>& states, std::int64_t threads = 1) {
  Summary summary;
  summary.coverage.wall_ns = 10 * kSecond;
  summary.devices.push_back({.kind = "cpu", .name = "Toy", .units = 2});
  ProcessUsage process{.name = "/bin/x", .pid = 7};
  std::int64_t cpu = 0, queue = 0, lock = 0, all = 0;
  for (const State& each : states) {
    const auto ns = static_cast<std::int64_t>(each.seconds * 1e9);
    summary.host.waits.push_back({.name = "/bin/x", .pid = 7, .state = each.state, .time_ns = ns, .threads = threads});
    summary.host.waits.back().main_ns = static_cast<std::int64_t>(each.main_seconds * 1e9);
    const std::string state = each.state;
    (state == "user" ? process.user_ns : state == "system" ? process.system_ns : all) += ns;
    cpu += state == "user" || state == "system" ? ns : 0;
    queue += state == "run queue" ? ns : 0;
    lock += state == "lock" ? ns : 0;
  }
  all += cpu;
  process.cpu_ns = cpu;
  summary.host.processes.push_back(process);
  for (std::int64_t i = 0; i < threads; ++i) {
    ThreadWait thread{.pid = 7, .tid = 7 + i, .main = i == 0};
    thread.time_ns = all / threads, thread.cpu_ns = cpu / threads, thread.lock_ns = lock / threads;
    thread.cpu_share = static_cast<double>(cpu) / static_cast<double>(all);
    thread.queue_share = static_cast<double>(queue) / static_cast<double>(all);
    summary.host.threads.push_back(thread);
  }
  return summary;
}

void add_function(Summary& summary, const char* name, const char* file, const char* kind, double self, double total) {
  Host& host = summary.host;
  host.stacks.samples = 1000;
  host.stacks.sampled_ns = 20 * kSecond;
  TopFunction function{.name = name, .file = file, .kind = kind};
  function.self_ns = static_cast<std::int64_t>(self * 1e9), function.total_ns = static_cast<std::int64_t>(total * 1e9);
  function.self_share = self / 20, function.total_share = total / 20;
  host.top_functions.push_back(function);
}

RuleResult checked(const char* rule, const Summary& summary) { return find_rule(rule)->check({summary, Facts{}}); }

TEST(CpuOversubscribed, SixteenThreadsOnTwoCpus) {
  // 2 CPUs busy for 10 s, 60 s in the run queue: 60 / 80.
  const Summary summary = program({{"user", 20, 2}, {"run queue", 60, 7}, {"lock", 80, 1}}, 16);
  const RuleResult result = checked("cpu_oversubscribed", summary);
  ASSERT_EQ(result.findings.size(), 1u) << result.why;
  const Finding& found = result.findings.front();
  EXPECT_EQ(found.title, "16 busy threads share 2 CPUs: they wait 75.0 % of the time in which they could run");
  EXPECT_DOUBLE_EQ(evidence(found, "cpu.queue_share"), 0.75);
  EXPECT_DOUBLE_EQ(evidence(found, "cpu.runnable"), 8);
  ASSERT_TRUE(found.gain);
  EXPECT_DOUBLE_EQ(found.gain->ns, 7e9);  // the main thread's time in the run queue
  EXPECT_DOUBLE_EQ(found.gain->of_ns, 10e9);
  EXPECT_NE(found.advice.front().find("OMP_NUM_THREADS=2"), std::string::npos);
  EXPECT_EQ(found.next, "OMP_NUM_THREADS=2 llmprof record -o fewer -- PROGRAM");
}

TEST(CpuOversubscribed, OtherProgramsHaveTheCpus) {
  const RuleResult result = checked("cpu_oversubscribed", program({{"user", 4, 4}, {"run queue", 6, 6}}));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings.front().title.find("other programs have the CPUs"), std::string::npos);
  EXPECT_FALSE(result.findings.front().gain);
}

TEST(CpuOversubscribed, NotWhereThreadsHaveCpusOrNothingWasRead) {
  const RuleResult quiet = checked("cpu_oversubscribed", program({{"user", 19, 9}, {"run queue", 1, 0.5}}, 2));
  EXPECT_TRUE(quiet.findings.empty());
  EXPECT_NE(quiet.why.find("5.0 %"), std::string::npos) << quiet.why;
  EXPECT_FALSE(checked("cpu_oversubscribed", Summary{}).applicable);
}

TEST(SpinningThreads, SchedYieldOfOpenBlas) {
  Summary summary = program({{"user", 6, 3}, {"system", 14, 5}, {"run queue", 60, 2}}, 16);
  add_function(summary, "do_sched_yield", "[kernel]", "kernel", 5, 12);
  add_function(summary, "sched_yield", "/lib/libc.so.6", "native", 1, 13);
  add_function(summary, "blas_thread_server", "/lib/libopenblas.so.0", "native", 1, 14);
  const RuleResult result = checked("spinning_threads", summary);
  ASSERT_EQ(result.findings.size(), 1u) << result.why;
  const Finding& found = result.findings.front();
  // 13 s with sched_yield on the stack and 1 s in the loop around it, of 20 s.
  EXPECT_EQ(found.title,
            "70.0 % of the CPU time goes to threads that wait without sleeping, in sched_yield (OpenBLAS)");
  EXPECT_DOUBLE_EQ(evidence(found, "cpu.spin_share"), 0.7);
  EXPECT_DOUBLE_EQ(found.gain->ns, 7e9);  // 14 s on 2 CPUs
  EXPECT_NE(found.advice.front().find("OPENBLAS_NUM_THREADS=2"), std::string::npos);
  // It is the kernel's time, too, but said once.
  const RuleResult kernel = checked("kernel_time", summary);
  EXPECT_TRUE(kernel.findings.empty());
  EXPECT_NE(kernel.why.find("spinning_threads"), std::string::npos) << kernel.why;
}

TEST(SpinningThreads, NotWhereThreadsWork) {
  Summary summary = program({{"user", 20, 10}}, 2);
  add_function(summary, "sgemm_kernel", "/lib/libopenblas.so.0", "native", 19, 19);
  add_function(summary, "sched_yield", "/lib/libc.so.6", "native", 0.1, 0.1);
  EXPECT_TRUE(checked("spinning_threads", summary).findings.empty());
  EXPECT_FALSE(checked("spinning_threads", program({{"user", 20, 10}})).applicable) << "no stacks were sampled";
}

TEST(LockContention, ThreadsThatWaitOften) {
  Summary summary = program({{"user", 4, 1}, {"lock", 36, 9}}, 4);
  summary.host.processes.front().voluntary_switches = 40'000;
  const RuleResult result = checked("lock_contention", summary);
  ASSERT_EQ(result.findings.size(), 1u) << result.why;
  EXPECT_DOUBLE_EQ(evidence(result.findings.front(), "cpu.lock_share"), 0.9);
  EXPECT_DOUBLE_EQ(evidence(result.findings.front(), "cpu.waits_per_cpu_second"), 10'000);
  EXPECT_DOUBLE_EQ(result.findings.front().gain->ns, 9e9);
}

TEST(LockContention, NotWhereTheyHaveNoWork) {
  Summary summary = program({{"user", 4, 1}, {"lock", 36, 9}}, 4);
  summary.host.processes.front().voluntary_switches = 400;  // long waits
  EXPECT_TRUE(checked("lock_contention", summary).findings.empty());
  EXPECT_FALSE(checked("lock_contention", program({{"user", 5, 5}, {"lock", 5, 5}})).applicable) << "one thread";
}

TEST(CpuLimitRule, ReachedOften) {
  Summary summary = program({{"user", 10, 5}}, 2);
  EXPECT_FALSE(checked("cpu_limit", summary).applicable);
  summary.host.cpu_limit = {.periods = 100, .throttled = 60, .throttled_ns = 8 * kSecond};
  summary.host.cpu_limit.quota_cpus = 1.5;
  summary.host.cpu_limit.throttled_share = 0.6;
  const RuleResult result = checked("cpu_limit", summary);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings.front().title, "The CPU limit of 1.5 CPUs stops the program in 60.0 % of its periods");
  EXPECT_DOUBLE_EQ(result.findings.front().gain->ns, 8e9);
  EXPECT_EQ(result.findings.front().next, "OMP_NUM_THREADS=1 llmprof record -o fewer -- PROGRAM");
  summary.host.cpu_limit.throttled = 2;
  summary.host.cpu_limit.throttled_share = 0.02;
  EXPECT_TRUE(checked("cpu_limit", summary).findings.empty());
}

TEST(KernelTime, NamesWhatItIs) {
  Summary summary = program({{"user", 4, 4}, {"system", 6, 6}});
  add_function(summary, "clear_page_erms", "[kernel]", "kernel", 5, 5);
  add_function(summary, "asm_exc_page_fault", "[kernel]", "kernel", 1, 6);
  const RuleResult result = checked("kernel_time", summary);
  ASSERT_EQ(result.findings.size(), 1u) << result.why;
  EXPECT_EQ(result.findings.front().title, "60.0 % of the CPU time is spent in the kernel, mostly in page faults");
  EXPECT_DOUBLE_EQ(result.findings.front().gain->ns, 6e9);
  // Where its functions may not be seen, nothing is claimed.
  const RuleResult unseen = checked("kernel_time", program({{"user", 4, 4}, {"system", 6, 6}}));
  ASSERT_EQ(unseen.findings.size(), 1u);
  EXPECT_EQ(unseen.findings.front().verdict, Verdict::kInconclusive);
  EXPECT_NE(unseen.findings.front().next.find("perf_event_paranoid"), std::string::npos);
  EXPECT_TRUE(checked("kernel_time", program({{"user", 9, 9}, {"system", 1, 1}})).findings.empty());
}

// From rows to findings, of a program that runs no model.
TEST(CpuRules, OfARunWithoutAModel) {
  RuleRun run(10 * kSecond);
  trace::DeviceRow cpu{.id = 1, .kind = run.name("cpu"), .name = run.name("Toy"), .units = 2};
  run.add(cpu);
  for (std::int64_t id = 2; id <= 9; ++id) run.thread(id);
  const auto time = [&](std::int64_t thread, const char* state, std::int64_t ns) {
    run.add(trace::ThreadTimeRow{.ts_ns = 10 * kSecond, .thread_id = thread, .state = run.name(state), .time_ns = ns});
  };
  for (std::int64_t id = 1; id <= 9; ++id) {
    time(id, "user", 2 * kSecond);
    time(id, "run queue", 8 * kSecond);
  }
  run.usage(0, 0, 0);
  run.usage(10 * kSecond, 18 * kSecond, 0);
  const Summary summary = run.summary();
  const Diagnosis& said = summary.diagnosis;
  const Finding* found = find(said, "cpu_oversubscribed");
  ASSERT_NE(found, nullptr) << outcome(said, "cpu_oversubscribed").why;
  EXPECT_EQ(found->title, "9 busy threads share 2 CPUs: they wait 80.0 % of the time in which they could run");
  ASSERT_EQ(summary.host.waits.size(), 2u);
  EXPECT_EQ(summary.host.waits.front().state, "run queue");
  EXPECT_EQ(summary.host.waits.front().time_ns, 72 * kSecond);
  EXPECT_DOUBLE_EQ(summary.host.waits.front().share, 0.8);
  EXPECT_EQ(summary.host.waits.front().main_thread_ns, 10 * kSecond);  // thread 1 has the number of its process
  EXPECT_EQ(summary.host.threads.size(), 9u);
}

}  // namespace
}  // namespace llmprof::analyze
