// Threads that push, pop, mark, call BLAS, start, end, die, fork and exit while the writer takes, encodes and gives
// back: every lock-free list, hand-over and start lock of the collector, with a full account of the events at the end.
// Made for the sanitizers; right under any compiler.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "collect/names.h"
#include "in_process.h"

namespace llmprof::stress {
namespace {

using collect::testing::Log;
using wire::LossKind;
using wire::RangeOp;
using wire::RecordKind;

constexpr std::uint64_t kEventsPerStep = 4;  // push, mark, gemm, pop

#if defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// Marks count upwards from 1 on every thread.
void steps(std::uint64_t count) {
  for (std::uint64_t i = 1; i <= count; ++i) {
    push("step");
    mark("count", i);
    gemm(static_cast<std::int64_t>(i));
    pop();
  }
}

void on_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(work, i);
  for (std::thread& thread : running) thread.join();
}

std::uint64_t events(const Log& log) { return log.ranges().size() + log.gemms().size(); }

// Sound, and every thread's marks in the order they were made, none twice: a buffer that was read too early, twice or
// after it changed hands shows here.
void expect_in_order(const Log& log) {
  EXPECT_EQ(log.damaged_bytes + log.torn_bytes + log.missing_blocks + log.undefined_names, 0u) << log.path;
  std::map<std::uint32_t, std::uint64_t> last_mark, last_gemm;
  for (const collect::testing::Entry& entry : log.entries) {
    if (entry.record.kind == RecordKind::kGemm) {
      const auto m = static_cast<std::uint64_t>(entry.record.gemm.m);
      ASSERT_GT(m, last_gemm[entry.thread]) << "thread " << entry.thread;
      last_gemm[entry.thread] = m;
    }
    if (entry.record.kind != RecordKind::kRange) continue;
    const wire::RangeRecord& range = entry.record.range;
    ASSERT_TRUE(range.op == RangeOp::kPush || range.op == RangeOp::kPop || range.op == RangeOp::kMark ||
                range.op == RangeOp::kStart || range.op == RangeOp::kEnd)
        << int(range.op);
    if (range.op != RangeOp::kMark) continue;
    ASSERT_GT(range.payload, last_mark[entry.thread]) << "thread " << entry.thread;
    last_mark[entry.thread] = range.payload;
  }
}

TEST(Stress, EveryEventOfManyThreadsIsThereOrCounted) {
  const int threads = 4;
  const std::uint64_t count = 2000u * static_cast<unsigned>(scale());
  for (const char* chunks : {"16384", "64", "8", "4"}) {  // from plenty to hardly any
    const std::vector<Log> logs = record({{"LLMPROF_POOL_CHUNKS", chunks}, {"LLMPROF_FLUSH_MS", "1"}}, [&] {
      connect();
      on_threads(threads, [&](int) { steps(count); });
      return 0;
    });
    ASSERT_EQ(logs.size(), 1u);
    expect_in_order(logs[0]);
    EXPECT_TRUE(logs[0].ended());
    const std::uint64_t unbalanced = logs[0].lost(LossKind::kUnbalancedPop);
    EXPECT_EQ(events(logs[0]) + logs[0].lost(LossKind::kBufferFull) + unbalanced,
              kEventsPerStep * count * static_cast<unsigned>(threads))
        << chunks;
  }
}

// Few buffers: the writer looks at what a thread is filling, takes the full ones and gives them back; by then the
// thread may have handed that one over, and got it again.
TEST(Stress, BuffersThatComeBackAtOnce) {
  const std::uint64_t count = (kSanitized ? 10000u : 50000u) * static_cast<unsigned>(scale());
  for (const char* chunks : {"4", "5", "6", "7", "8"}) {
    const std::vector<Log> logs = record({{"LLMPROF_POOL_CHUNKS", chunks}, {"LLMPROF_FLUSH_MS", "1"}}, [&] {
      connect();
      on_threads(2, [&](int) { steps(count); });
      return 0;
    });
    ASSERT_EQ(logs.size(), 1u);
    expect_in_order(logs[0]);
    EXPECT_EQ(events(logs[0]) + logs[0].lost(LossKind::kBufferFull), 2 * kEventsPerStep * count) << chunks;
  }
}

TEST(Stress, ThreadsComeAndGo) {
  const int waves = 60 * scale();
  const std::vector<Log> logs = record({{"LLMPROF_POOL_CHUNKS", "64"}, {"LLMPROF_FLUSH_MS", "1"}}, [&] {
    connect();
    for (int wave = 0; wave < waves; ++wave) on_threads(8, [](int) { steps(10); });
    return 0;
  });
  ASSERT_EQ(logs.size(), 1u);
  expect_in_order(logs[0]);
  EXPECT_EQ(events(logs[0]) + logs[0].lost(LossKind::kBufferFull),
            8u * 10 * kEventsPerStep * static_cast<unsigned>(waves));
  EXPECT_EQ(logs[0].lost(LossKind::kThreadTableFull), 0u);
}

// All threads raise the first event of the process at once.
TEST(Stress, ManyStartAtOnce) {
  for (int round = 0; round < 10 * scale(); ++round) {
    const std::vector<Log> logs = record({}, [&] {
      std::atomic<int> waiting{0};
      connect();
      on_threads(8, [&](int) {
        ++waiting;
        while (waiting < 8) std::this_thread::yield();
        steps(5);
      });
      return 0;
    });
    ASSERT_EQ(logs.size(), 1u);
    expect_in_order(logs[0]);
    EXPECT_EQ(events(logs[0]) + logs[0].lost(LossKind::kBufferFull), 8u * 5 * kEventsPerStep);
  }
}

// Several threads end the recording while others go on; then it is ended again, and events come still.
TEST(Stress, EndingTwiceUnderLoad) {
  for (int round = 0; round < 10 * scale(); ++round) {
    const std::vector<Log> logs = record({{"LLMPROF_FLUSH_MS", "1"}}, [&] {
      connect();
      std::atomic<bool> enough{false};
      on_threads(6, [&](int i) {
        if (i < 2) {
          usleep(2000);
          stop();
          stop();
          enough = true;
        }
        for (std::uint64_t n = 0; i >= 2 && !enough; ++n) {
          push("step");
          pop();
        }
      });
      steps(10);
      stop();
      return 0;
    });
    ASSERT_EQ(logs.size(), 1u);
    expect_in_order(logs[0]);
    EXPECT_TRUE(logs[0].ended());
  }
}

TEST(Stress, StoppedWithoutAnEvent) {
  const std::vector<Log> logs = record({}, [] {
    connect();
    stop();
    stop();
    return 0;
  });
  EXPECT_TRUE(logs.empty());
}

TEST(Stress, NamesDomainsAndCategoriesAtOnce) {
  const int names = 1500 * scale();
  const std::vector<Log> logs = record({}, [&] {
    connect();
    on_threads(6, [&](int thread) {
      for (int i = 0; i < names; ++i) {
        const int number = thread % 2 == 0 ? i : thread * names + i;  // three threads race for the same names
        const std::string name = "name " + std::to_string(number);
        mark(name.c_str(), static_cast<std::uint64_t>(i) + 1);
        if (i % 50 == 0) name_category(static_cast<std::uint32_t>(i), name.c_str());
        if (i % 100 == 0) create_domain(name.c_str());
        if (i % 7 == 0) end(start(name.c_str()));
      }
    });
    return 0;
  });
  ASSERT_EQ(logs.size(), 1u);
  expect_in_order(logs[0]);
  std::size_t marks = 0;
  for (const wire::RangeRecord& range : logs[0].ranges()) marks += range.op == RangeOp::kMark;
  EXPECT_LE(marks, 6u * static_cast<unsigned>(names));
  EXPECT_GE(marks + logs[0].lost(LossKind::kBufferFull), 6u * static_cast<unsigned>(names));
}

// Any number may be asked about while the name of that number is being entered.
TEST(Stress, ANameIsValidOnceItIsComplete) {
  const auto table = std::make_unique<collect::StringTable>();
  const auto names = static_cast<std::uint32_t>(kSanitized ? 2000 : 20'000);
  std::uint64_t wrong = 0;
  std::atomic<int> waiting{0};
  on_threads(3, [&](int thread) {
    ++waiting;
    while (waiting < 3) std::this_thread::yield();
    for (std::uint32_t i = 0; thread < 2 && i < names; ++i) {
      const std::string name = "name " + std::to_string(2 * i + static_cast<unsigned>(thread));
      table->intern(name.data(), name.size());
    }
    for (wire::StringId id = 1; thread == 2 && id <= 2 * names; ++id) {
      while (!table->valid(id)) std::this_thread::yield();
      const char* text = table->text(id);
      table->name(id).emitted = id;  // as the writer does
      wrong += std::strncmp(text, "name ", 5) != 0 || table->name(id).length != std::strlen(text);
    }
  });
  EXPECT_EQ(wrong, 0u);
  for (wire::StringId id = 1; id <= 2 * names; ++id) ASSERT_EQ(table->name(id).emitted, id);
}

// Many reasons for one kind of loss, the last of which is told: the log knows the name of each that it tells.
TEST(Stress, WhatALossIsAboutHasAName) {
  const unsigned reasons = 3000u * static_cast<unsigned>(scale());
  const std::vector<Log> logs = record({{"LLMPROF_FLUSH_MS", "1"}}, [&] {
    connect();
    mark("start", 1);
    on_threads(3, [&](int thread) {
      for (unsigned i = 0; i < reasons; ++i) {
        const std::string why = "why " + std::to_string(thread) + " " + std::to_string(i);
        collect::count_loss_about(LossKind::kCountersSkipped, 1, collect::intern(why.c_str()));
        if (i % 4 == 0) usleep(50);
      }
    });
    return 0;
  });
  ASSERT_EQ(logs.size(), 1u);
  expect_in_order(logs[0]);
  EXPECT_EQ(logs[0].lost(LossKind::kCountersSkipped), 3u * reasons);
  for (const collect::testing::Entry& entry : logs[0].entries) {
    if (entry.record.kind != RecordKind::kLoss || entry.record.loss.kind != LossKind::kCountersSkipped) continue;
    const auto id = static_cast<wire::StringId>(entry.record.loss.detail);
    EXPECT_EQ(logs[0].names.count(id), 1u) << "id " << id;
  }
}

TEST(Stress, TheSizeLimitIsReachedUnderLoad) {
  const std::uint64_t count = 5000u * static_cast<unsigned>(scale());
  const std::vector<Log> logs = record({{"LLMPROF_MAX_BYTES", "60000"}, {"LLMPROF_FLUSH_MS", "1"}}, [&] {
    connect();
    on_threads(4, [&](int) { steps(count); });
    return 0;
  });
  ASSERT_EQ(logs.size(), 1u);
  expect_in_order(logs[0]);
  EXPECT_GT(logs[0].lost(LossKind::kSizeLimit), 0u);
}

// Children forked while every thread is busy start collectors of their own; half of them leave by _exit.
TEST(Stress, ForksUnderLoad) {
  const int children = 8 * scale();
  const std::vector<Log> logs = record({{"LLMPROF_FLUSH_MS", "1"}}, [&] {
    connect();
    std::atomic<bool> enough{false};
    std::atomic<int> started{0};
    std::vector<std::thread> busy;
    for (int i = 0; i < 3; ++i) {
      busy.emplace_back([&] {
        push("step");
        pop();
        ++started;
        while (!enough) {
          for (int n = 0; n < 20; ++n) {
            push("step");
            pop();
          }
          usleep(100);
        }
      });
    }
    // A thread that starts allocates memory, and a sanitizer's allocator that is locked at a fork stays locked in the
    // child. (Forks while threads start: tests/faults, without sanitizers.) The pause is for the collector's own
    // thread.
    while (started < 3) usleep(100);
    usleep(200'000);
    int failed = 0;
    for (int i = 0; i < children; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        on_threads(2, [](int) { steps(20); });
        if (i % 2 == 0) std::exit(0);
        usleep(20000);
        _exit(0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      failed += status != 0;
    }
    enough = true;
    for (std::thread& thread : busy) thread.join();
    return failed;
  });
  EXPECT_EQ(logs.size(), static_cast<std::size_t>(children) + 1);
  for (const Log& log : logs) expect_in_order(log);
}

}  // namespace
}  // namespace llmprof::stress
