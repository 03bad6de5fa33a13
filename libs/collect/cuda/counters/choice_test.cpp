// What is measured and how often, without CUPTI: the plan, the budget, the choice of windows, the lock.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "collect/cuda/counters/choice.h"
#include "collect/cuda/counters/plan.h"
#include "collect/cuda/counters/windows.h"

namespace llmprof::collect::counters {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    char folder[] = "/tmp/llmprof_plan_XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~PlanTest() override {
    unlink((folder_ + "/counters.plan").c_str());
    rmdir(folder_.c_str());
  }
  bool read(const std::string& text) {
    std::ofstream(folder_ + "/counters.plan", std::ios::binary) << text;
    return read_plan(folder_.c_str(), &plan_, why_);
  }

  std::string folder_;
  Plan plan_{};
  char why_[160] = "";
};

TEST_F(PlanTest, ReadsEveryWord) {
  ASSERT_TRUE(
      read("llmprof counters 1\nmethod kernel\nbudget_ppm 12500\nstalls with\nreplay 1\nrange decode *\n"
           "range pre?ill\nkernel _Z4gemm*\nnamed foo\nkernel foo\nkernel _Z3foo*\nlater something\nmetric GH100 "
           "dram__bytes_read.sum\n"
           "metric GA100 lts__t_bytes.sum\nmetric GH100 gpu__time_duration.sum"))
      << why_;
  EXPECT_EQ(plan_.method, Method::kKernel);
  EXPECT_EQ(plan_.stalls, Stalls::kWith);
  EXPECT_TRUE(plan_.replay);
  EXPECT_EQ(plan_.budget_ppm, 12500u);
  ASSERT_EQ(plan_.ranges.count, 2u);
  EXPECT_STREQ(plan_.ranges.words[0], "decode *");
  ASSERT_EQ(plan_.kernels.count, 3u);
  EXPECT_EQ(plan_.kernels.names[0], nullptr);
  EXPECT_STREQ(plan_.kernels.names[2], "foo");
  EXPECT_EQ(plan_.kernels.names[1], plan_.kernels.names[2]);
  List metrics{};
  metrics_for(plan_, "GH100", &metrics);
  ASSERT_EQ(metrics.count, 2u);
  EXPECT_STREQ(metrics.words[0], "dram__bytes_read.sum");
  EXPECT_STREQ(metrics.words[1], "gpu__time_duration.sum");
  metrics_for(plan_, "GH10", &metrics);
  EXPECT_EQ(metrics.count, 0u);
  EXPECT_TRUE(matches(plan_.ranges, "decode 17"));
  EXPECT_TRUE(matches(plan_.ranges, "prefill"));
  EXPECT_FALSE(matches(plan_.ranges, "prefills"));
  EXPECT_FALSE(matches(plan_.ranges, "decode"));
}

TEST_F(PlanTest, RefusesWhatIsNoPlan) {
  EXPECT_FALSE(read_plan(folder_.c_str(), &plan_, why_));
  EXPECT_STRNE(why_, "");
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read("llmprof counters 2\nmethod range\n"));
  EXPECT_FALSE(read(std::string(2 << 20, 'x')));
  EXPECT_TRUE(read(std::string("llmprof counters 1\n\0\0\nmethod range\n", 35)));
  EXPECT_EQ(plan_.method, Method::kRange);
}

TEST_F(PlanTest, KeepsWhatFits) {
  std::string text = "llmprof counters 1\n";
  for (int i = 0; i < 1000; ++i) text += "range r" + std::to_string(i) + "\n";
  ASSERT_TRUE(read(text));
  EXPECT_EQ(plan_.ranges.count, List::kMost);
}

TEST(Budget, EarnsAShareOfTheTime) {
  Budget budget;
  budget.begin(1000 * kMs, 10'000, 5 * kMs);  // one percent and 5 ms
  EXPECT_TRUE(budget.allows(1000 * kMs, 5 * kMs));
  EXPECT_FALSE(budget.allows(1000 * kMs, 6 * kMs));
  budget.spend(5 * kMs);
  EXPECT_FALSE(budget.allows(1099 * kMs, kMs));
  EXPECT_TRUE(budget.allows(1100 * kMs, kMs));  // 100 ms earn one
  budget.begin(0, 0, 0);
  EXPECT_TRUE(budget.allows(0, 1000 * kMs));  // no limit
}

// A step of 2 ms for 10 s at 1.5 %, each window 1.1 ms. 150 ms may be spent: 136 windows of 1.1 ms.
TEST(WindowChoice, StaysWithinTheBudget) {
  WindowChoice choice;
  choice.begin(0, 15'000, 1);
  std::uint64_t windows = 0;
  for (std::uint64_t at_ns = 0; at_ns < 10'000 * kMs; at_ns += 2 * kMs) {
    if (!choice.wants(7, at_ns)) continue;
    choice.chose(7);
    choice.measured(7, 1'100'000, true);
    ++windows;
  }
  EXPECT_GE(windows, 130u);
  EXPECT_LE(windows, 136u);
  EXPECT_LE(choice.spent_ns(), 150 * kMs);
}

TEST(WindowChoice, TheFirstOfEachNameComeOutOfTheCredit) {
  WindowChoice choice;
  choice.begin(0, 15'000, 1);
  for (std::uint64_t key = 1; key <= 3; ++key) {
    for (std::uint32_t i = 0; i < WindowChoice::kEarly; ++i) {
      EXPECT_TRUE(choice.wants(key, 0));
      choice.measured(key, kMs, true);
    }
    EXPECT_FALSE(choice.wants(key, 0)) << "the credit is for others";
  }
  // 30 ms of credit, of which 21 are left; then it is used up.
  EXPECT_TRUE(choice.wants(4, 0));
  choice.measured(4, 21 * kMs, true);
  EXPECT_FALSE(choice.wants(5, 0));
  // It is paid back: 30 ms and the next window, at 1.5 %, take about 2 s (windows of 1 ms, then one of 21: an average
  // of 3.5 ms).
  EXPECT_FALSE(choice.wants(1, 2000 * kMs));
  EXPECT_TRUE(choice.wants(1, 3000 * kMs));
}

// Two names by turns, one of them 50 times as often: the rare one is measured whenever it is not ahead.
TEST(WindowChoice, TheOneThatWasMeasuredLessGoesFirst) {
  WindowChoice choice;
  choice.begin(0, 15'000, 1);
  std::uint64_t rare = 0, often = 0;
  for (std::uint64_t step = 0; step < 50'000; ++step) {
    const std::uint64_t key = step % 50 == 49 ? 2 : 1, at_ns = step * 2 * kMs;
    if (!choice.wants(key, at_ns)) continue;
    choice.measured(key, 1'100'000, true);
    (key == 2 ? rare : often) += 1;
  }
  EXPECT_GT(rare, 300u);  // of 1000; without the rule it gets a window when chance has it
  EXPECT_GT(often, rare);
}

TEST(WindowChoice, OuterAndEmptyRangesAreLeftAlone) {
  WindowChoice choice;
  choice.begin(0, 0, 1);
  EXPECT_TRUE(choice.wants(1, 0));
  choice.is_outer(1);
  EXPECT_FALSE(choice.wants(1, kMs));
  EXPECT_TRUE(choice.wants(2, 0));
  choice.measured(2, kMs, false);
  EXPECT_TRUE(choice.wants(2, 0));
  choice.measured(2, kMs, true);
  choice.measured(2, kMs, false);
  EXPECT_TRUE(choice.wants(2, 0));
  choice.measured(2, kMs, false);
  EXPECT_FALSE(choice.wants(2, 0));
}

TEST(WindowChoice, SeveralPassesStayWithOneName) {
  WindowChoice choice;
  choice.begin(0, 0, 5);
  EXPECT_FALSE(choice.wants(1, 0));  // it may never come again
  EXPECT_FALSE(choice.wants(1, 0));
  EXPECT_TRUE(choice.wants(1, 0));
  choice.chose(1);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(choice.wants(2, 0));
  EXPECT_FALSE(choice.is_stuck());
  EXPECT_TRUE(choice.wants(1, 0));
  choice.completed();
  EXPECT_EQ(choice.current(), 0u);
  EXPECT_TRUE(choice.wants(2, 0));
}

TEST(WindowChoice, SeveralPassesDoNotWaitForEver) {
  WindowChoice choice;
  choice.begin(0, 0, 5);
  for (int i = 0; i < 3; ++i) choice.wants(1, 0);
  choice.chose(1);
  int others = 0;
  for (; others < 1000 && !choice.is_stuck(); ++others) EXPECT_FALSE(choice.wants(2, 0));
  EXPECT_EQ(others, 16 + 8 * 3 + 1);
  choice.give_up();
  EXPECT_TRUE(choice.wants(2, 0));
  choice.chose(2);
  choice.completed();
  EXPECT_FALSE(choice.wants(1, 0));  // the fourth of at least 12
}

TEST(WindowChoice, ManyNamesDoNotOverflow) {
  WindowChoice choice;
  choice.begin(0, 0, 1);
  for (std::uint64_t key = 1; key <= WindowChoice::kMostNames; ++key) EXPECT_TRUE(choice.wants(key, 0));
  EXPECT_FALSE(choice.wants(WindowChoice::kMostNames + 1, 0));
  choice.measured(WindowChoice::kMostNames + 1, kMs, true);
  choice.is_outer(WindowChoice::kMostNames + 1);
}

TEST(ProfilerLock, OneAtATime) {
  ProfilerLock lock;
  std::uint32_t number = 0;
  EXPECT_FALSE(lock.try_acquire_any_window(&number));
  ASSERT_TRUE(lock.try_acquire());
  EXPECT_FALSE(lock.try_acquire());
  EXPECT_TRUE(lock.is_taken());
  const std::uint32_t first = lock.open_window();
  EXPECT_TRUE(lock.has_window());
  EXPECT_FALSE(lock.try_acquire());
  EXPECT_FALSE(lock.try_acquire_window(first + 1));
  ASSERT_TRUE(lock.try_acquire_window(first));
  lock.release();
  EXPECT_FALSE(lock.try_acquire_window(first)) << "it was ended";
  ASSERT_TRUE(lock.try_acquire());
  const std::uint32_t second = lock.open_window();
  EXPECT_NE(first, second);
  EXPECT_FALSE(lock.try_acquire_window(first));
  ASSERT_TRUE(lock.try_acquire_anything(&number));
  EXPECT_EQ(number, second);
  lock.retire();
  EXPECT_FALSE(lock.try_acquire());
  EXPECT_FALSE(lock.try_acquire_anything(&number));
}

// Windows of many threads, and one that ends them early: a plain counter shows whether two ever held it at once.
TEST(ProfilerLock, HoldsAmongThreads) {
  ProfilerLock lock;
  std::uint64_t inside = 0, mistakes = 0;
  std::atomic<std::uint64_t> rounds{0};
  const auto work = [&] {
    if (inside++ != 0) ++mistakes;
    --inside;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      // Not a number of tries: all of them can fall into the time slice of one that holds it and does not run.
      for (int i = 0; i < 20'000 || rounds.load(std::memory_order_relaxed) < 1000; ++i) {
        if (i >= 20'000) std::this_thread::yield();
        std::uint32_t number = 0;
        if (t == 0) {
          if (!lock.try_acquire_anything(&number)) continue;
          work();
          lock.release();
          continue;
        }
        if (!lock.try_acquire()) continue;
        work();
        number = lock.open_window();
        if (!lock.try_acquire_window(number)) continue;
        work();
        rounds.fetch_add(1, std::memory_order_relaxed);
        lock.release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mistakes, 0u);
}

// A window that is opened and taken up, again and again, is never seen as nobody's: a capture that begins then waits.
TEST(ProfilerLock, IsBusyWithoutAGap) {
  ProfilerLock lock;
  ASSERT_TRUE(lock.try_acquire());
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<bool> ends{false};
  std::thread other([&] {
    for (; !ends; ++rounds) lock.try_acquire_window(lock.open_window());
  });
  std::uint64_t gaps = 0;
  for (std::uint64_t looks = 0; looks < 15'000'000 || rounds < 5'000'000; ++looks) gaps += lock.is_busy() ? 0 : 1;
  ends = true;
  other.join();
  EXPECT_EQ(gaps, 0u);
}

}  // namespace
}  // namespace llmprof::collect::counters
