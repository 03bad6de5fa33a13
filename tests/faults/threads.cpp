// Crowds of threads, tiny stacks, cancelled threads, events faster than any disk, names of every kind.

#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "collect/testing/nvtx_client.h"
#include "victim.h"

namespace fault {
namespace {

struct Work {
  Ledger* ledger;
  std::size_t stream;
  std::uint64_t events;
  pthread_barrier_t* together;
};

void* work(void* argument) {
  const Work& mine = *static_cast<Work*>(argument);
  mine.ledger->emit(mine.stream, mine.events, 0);
  if (mine.together != nullptr) pthread_barrier_wait(mine.together);
  return nullptr;
}

class SmallStack {
 public:
  explicit SmallStack(std::size_t bytes) {
    pthread_attr_init(&attributes_);
    pthread_attr_setstacksize(&attributes_, bytes);
  }
  const pthread_attr_t* get() const { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

long count_maps() {
  long lines = 0;
  FILE* maps = std::fopen("/proc/self/maps", "r");
  for (int c = std::fgetc(maps); c != EOF; c = std::fgetc(maps)) lines += c == '\n';
  std::fclose(maps);
  return lines;
}

// Into the ledger's folder and not on the output: these differ with a profiler.
void note(const Arguments& arguments, const char* what, long value) {
  const char* folder = std::getenv("FAULT_LEDGER");
  if (folder == nullptr) return;
  FILE* file = std::fopen((std::string(folder) + "/." + arguments[0] + "." + what).c_str(), "w");
  std::fprintf(file, "%ld", value);
  std::fclose(file);
}

long peak_kib() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// THREADS EVENTS: all alive at once.
int crowd(const Arguments& arguments) {
  const auto count = static_cast<std::size_t>(number(arguments, 1, 100));
  Ledger mine(arguments[0], count);
  pthread_barrier_t together;
  pthread_barrier_init(&together, nullptr, static_cast<unsigned>(count) + 1);
  const SmallStack stack(65536);
  std::vector<Work> works(count);
  std::vector<pthread_t> threads(count);
  for (std::size_t i = 0; i < count; ++i) {
    works[i] = {&mine, i, static_cast<std::uint64_t>(number(arguments, 2, 10)), &together};
    if (pthread_create(&threads[i], stack.get(), work, &works[i]) != 0) {
      std::printf("thread %zu cannot be made\n", i);
      std::_Exit(3);
    }
  }
  note(arguments, "maps", count_maps());
  pthread_barrier_wait(&together);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  note(arguments, "peak_kib", peak_kib());
  std::printf("%zu threads\n", count);
  return 0;
}

// THREADS EVENTS: one after the other, a few at a time. Their streams are as many as there are at once.
int churn(const Arguments& arguments) {
  constexpr std::size_t kAtOnce = 4;
  Ledger mine(arguments[0], kAtOnce);
  const SmallStack stack(65536);
  const long rounds = number(arguments, 1, 1000) / static_cast<long>(kAtOnce);
  for (long round = 0; round < rounds; ++round) {
    Work works[kAtOnce];
    pthread_t threads[kAtOnce];
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      works[i] = {&mine, i, static_cast<std::uint64_t>(number(arguments, 2, 3)), nullptr};
      pthread_create(&threads[i], stack.get(), work, &works[i]);
    }
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
    if (round == rounds / 4) note(arguments, "early_kib", peak_kib());
  }
  note(arguments, "peak_kib", peak_kib());
  std::printf("%ld threads\n", rounds * static_cast<long>(kAtOnce));
  return 0;
}

// EVENTS BYTES: on a thread with the smallest stack the system allows, plus BYTES.
int small_stack(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  const SmallStack stack(PTHREAD_STACK_MIN + static_cast<std::size_t>(number(arguments, 2, 0)));
  Work only{&mine, 0, static_cast<std::uint64_t>(number(arguments, 1, 10)), nullptr};
  pthread_t thread;
  if (pthread_create(&thread, stack.get(), work, &only) != 0) return 1;
  pthread_join(thread, nullptr);
  std::printf("small stack\n");
  return 0;
}

// The first event of the process comes from a thread that is already cancelled, to end at the next place where it may.
int cancelled(const Arguments& arguments) {
  Ledger mine(arguments[0], 3);
  Work first{&mine, 0, 10, nullptr}, second{&mine, 1, 10, nullptr};
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* argument) -> void* {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        pthread_cancel(pthread_self());
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);  // from here on any cancellation point is the end
        work(argument);
        pthread_testcancel();
        return argument;
      },
      &first);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
  pthread_create(&thread, nullptr, work, &second);  // must not wait for what the first one held
  pthread_join(thread, nullptr);
  mine.emit(2, 1000, 0);
  return 0;
}

// THREADS EVENTS: as fast as they can.
int flood(const Arguments& arguments) {
  const auto count = static_cast<std::size_t>(number(arguments, 1, 2));
  Ledger mine(arguments[0], count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] { mine.emit(i, static_cast<std::uint64_t>(number(arguments, 2, 100000)), 0); });
  }
  for (auto& thread : threads) thread.join();
  std::printf("flooded\n");
  return 0;
}

// Names that were never meant to be names. The numbered events go on beside them.
int hostile_names(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  const std::string long_name(70000, 'y');
  const std::string names[] = {"",
                               "\xff\xfe bytes that are no UTF-8 \x80",
                               "new\nline\r\ttab",
                               "</script><script>alert(1)</script>",
                               "'; DROP TABLE range; --",
                               "%s%n%p",
                               "\x1b[31mred",
                               "\xe2\x80\xae rtl",
                               std::string(65536, 'x'),
                               long_name + "a",
                               long_name + "b",
                               std::string(1 << 20, 'z')};
  for (const std::string& name : names) {
    nvtxRangePushA(name.c_str());
    mine.emit(0);
    nvtxRangePop();
  }
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  std::printf("%zu names\n", std::size(names));
  return 0;
}

// COUNT: every event has a name of its own.
int distinct_names(const Arguments& arguments) {
  char name[32];
  for (long i = 0; i < number(arguments, 1, 1000); ++i) {
    std::snprintf(name, sizeof(name), "name %ld", i);
    nvtxMarkA(name);
    if (i % 10000 == 9999) usleep(2000);
  }
  std::printf("named\n");
  return 0;
}

constexpr Scenario kScenarios[] = {
    {"crowd", crowd},
    {"churn", churn},
    {"small_stack", small_stack},
    {"cancelled", cancelled},
    {"flood", flood},
    {"hostile_names", hostile_names},
    {"distinct_names", distinct_names},
};

}  // namespace

Scenarios threads() { return {kScenarios, std::size(kScenarios)}; }

}  // namespace fault
