// A program that works in steps, for tests of hardware counters: `counter_victim SCENARIO LABEL [NUMBER…]`. It prints
// the answers of the driver that a profiler could change: a capture that breaks, a launch that fails.

#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "victim.h"

namespace {

using namespace victim;

// A step: kernels of 2,000 and 500 ns by turns, on one stream.
void kernels_on(void* stream, long count) {
  void* functions[2] = {kernel("gemm:2000"), kernel("norm:500")};
  for (long i = 0; i < count; ++i) launch(functions[i % 2], stream);
}

void step(const char* name, void* stream, long kernels) {
  nvtxRangePushA(name);
  kernels_on(stream, kernels);
  wait(stream);
  nvtxRangePop();
}

// A prefill of 40 kernels (50,000 ns), then steps.
void generate(void* stream, long steps, long kernels, long pause_us = 0) {
  step("prefill", stream, 40);
  for (long i = 0; i < steps; ++i) {
    step("decode_step", stream, kernels);
    if (pause_us > 0) usleep(static_cast<useconds_t>(pause_us));
  }
}

void replay_steps(void* exec, void* stream, long steps) {
  for (long i = 0; i < steps; ++i) {
    nvtxRangePushA("decode_step");
    if (cuda("cuGraphLaunch", exec, stream) != 0) std::_Exit(93);
    wait(stream);
    nvtxRangePop();
  }
}

int eager(const Numbers& numbers) {
  start();
  generate(make_stream(), numbers.at(0, 12), numbers.at(1, 4), numbers.at(2, 0));
  return 0;
}

// A graph of `nodes` kernels: all but the last take 300 ns, the last 900.
int graph(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  step("prefill", stream, 40);
  void* exec = instantiate(capture(stream, numbers.at(1, 5), "layer:300"));
  replay_steps(exec, stream, numbers.at(0, 12));
  return 0;
}

// Captures inside ranges, ranges inside captures, and a thread whose ranges come and go meanwhile.
int captures(const Numbers& numbers) {
  void* context = start();
  void* stream = make_stream();
  generate(stream, 3, 4);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    cuda("cuCtxSetCurrent", context);
    void* own = make_stream();
    while (!stop.load()) step("decode_step", own, 2), usleep(200);
  });
  int broken = 0;
  for (long i = 0; i < numbers.at(0, 20); ++i) {
    void *made = nullptr, *function = kernel("layer:300");
    nvtxRangePushA("prefill");
    cuda("cuStreamBeginCapture_v2", stream, 0);
    for (long k = 0; k < 5; ++k) {
      nvtxRangePushA("decode_step");
      broken += cuda("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, static_cast<void**>(nullptr),
                     static_cast<void**>(nullptr)) != 0;
      nvtxRangePop();
    }
    usleep(500);
    broken += cuda("cuStreamEndCapture", stream, &made) != 0;
    nvtxRangePop();
    if (made != nullptr) replay_steps(instantiate(made), stream, 2);
  }
  stop.store(true);
  other.join();
  std::printf("%d calls failed in captures\n", broken);
  return 0;
}

// Captures that begin while another thread does nothing but what is measured: ranges and launches without a pause.
int captures_beside(const Numbers& numbers) {
  void* context = start();
  void *stream = make_stream(), *function = kernel("layer:300");
  std::atomic<bool> stop{false};
  std::thread other([&] {
    cuda("cuCtxSetCurrent", context);
    void* own = make_stream();
    while (!stop.load()) step("decode_step", own, 1);
  });
  int broken = 0;
  for (long i = 0; i < numbers.at(0, 5); ++i) {
    void* made = nullptr;
    usleep(static_cast<useconds_t>(numbers.at(1, 20000)));
    broken += cuda("cuStreamBeginCapture_v2", stream, 0) != 0;
    broken += cuda("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, static_cast<void**>(nullptr),
                   static_cast<void**>(nullptr)) != 0;
    usleep(2000);
    broken += cuda("cuStreamEndCapture", stream, &made) != 0;
  }
  stop.store(true);
  other.join();
  std::printf("%d calls failed in captures\n", broken);
  return 0;
}

// The device works for 7 s: who waits for it to measure keeps a capture waiting, which goes on at last.
int capture_beside_long(const Numbers&) {
  void* context = start();
  void *stream = make_stream(), *function = kernel("layer:300");
  generate(stream, 3, 4);
  std::thread other([&] {
    cuda("cuCtxSetCurrent", context);
    void* own = make_stream();
    launch(kernel("long:7000000000"), own);
    for (int i = 0; i < 50; ++i) step("decode_step", own, 1);
  });
  usleep(100000);
  void* made = nullptr;
  int broken = cuda("cuStreamBeginCapture_v2", stream, 0) != 0;
  for (int i = 0; i < 30; ++i) {
    broken += cuda("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, static_cast<void**>(nullptr),
                   static_cast<void**>(nullptr)) != 0;
    usleep(100000);
  }
  broken += cuda("cuStreamEndCapture", stream, &made) != 0;
  other.join();
  std::printf("%d calls failed in captures\n", broken);
  return 0;
}

// Two contexts by turns, on the same device; then the second one ends.
int contexts(const Numbers& numbers) {
  void *first = start(), *second = nullptr;
  void* stream = make_stream();
  cuda("cuCtxCreate_v2", &second, 0u, 0);
  void* other = make_stream();
  for (long i = 0; i < numbers.at(0, 8); ++i) {
    cuda("cuCtxSetCurrent", first);
    step("decode_step", stream, 4);
    cuda("cuCtxSetCurrent", second);
    step("decode_step", other, 2);
  }
  std::printf("%d\n", cuda("cuCtxDestroy_v2", second));
  cuda("cuCtxSetCurrent", first);
  generate(stream, 4, 4);
  return 0;
}

int threads(const Numbers& numbers) {
  void* context = start();
  std::vector<std::thread> all;
  for (long t = 0; t < numbers.at(0, 3); ++t) {
    all.emplace_back([&] {
      cuda("cuCtxSetCurrent", context);
      generate(make_stream(), numbers.at(1, 20), 4);
    });
  }
  for (std::thread& thread : all) thread.join();
  return 0;
}

void open_range() {
  start();
  void* stream = make_stream();
  generate(stream, 6, 4);
  nvtxRangePushA("decode_step");
  kernels_on(stream, 4);
}

int exit_in_range(const Numbers&) {
  open_range();
  std::exit(7);
}

int leave_in_range(const Numbers&) {
  open_range();
  std::fflush(stdout);
  std::_Exit(6);
}

int abort_in_range(const Numbers&) {
  open_range();
  std::fflush(stdout);
  std::abort();
}

int return_in_range(const Numbers&) { return open_range(), 0; }

int exit_in_thread(const Numbers&) {
  std::thread([] {
    open_range();
    std::exit(4);
  }).detach();
  for (;;) usleep(1000);
}

// The context is destroyed while a range is open; the program goes on in another.
int destroy_in_range(const Numbers& numbers) {
  void *context = nullptr, *next = nullptr;
  if (cuda("cuInit", 0u) != 0 || cuda("cuCtxCreate_v2", &context, 0u, 0) != 0) std::_Exit(92);
  pause_at_start();
  void* stream = make_stream();
  generate(stream, numbers.at(0, 6), 4);
  nvtxRangePushA("decode_step");
  kernels_on(stream, 2);
  wait(stream);
  std::printf("%d\n", cuda("cuCtxDestroy_v2", context));
  nvtxRangePop();
  cuda("cuCtxCreate_v2", &next, 0u, 0);
  generate(make_stream(), 6, 4);
  return 0;
}

// The device fails while a range is open: every call after it does, too, and the program says so and ends.
int lose_in_range(const Numbers& numbers) {
  start();
  void *stream = make_stream(), *function = kernel("gemm:2000");
  generate(stream, numbers.at(0, 6), 4);
  for (int i = 0; i < 3; ++i) {
    nvtxRangePushA("decode_step");
    if (i == 0) cuda("fake_lose_device");
    std::printf("%d\n", cuda("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream,
                             static_cast<void**>(nullptr), static_cast<void**>(nullptr)));
    nvtxRangePop();
  }
  return 3;
}

int fork_in_range(const Numbers&) {
  open_range();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    nvtxRangePop();
    for (int i = 0; i < 5; ++i) nvtxRangePushA("decode_step"), nvtxRangePop();
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  nvtxRangePop();
  generate(make_stream(), 6, 4);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 90;
}

// Ranges in ranges, one that is closed twice, ones that nothing happens in, many more than any image has room for.
int odd_ranges(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  for (long i = 0; i < numbers.at(0, 300); ++i) {
    nvtxRangePushA("decode_step");
    step("prefill", stream, 2);
    nvtxRangePushA("decode_step"), nvtxRangePop();
    nvtxRangePop();
    if (i % 50 == 0) nvtxRangePop();
  }
  return 0;
}

// Eager kernels and a graph by turns: what kernels one by one are measured in.
int kernels(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  void* exec = instantiate(capture(stream, 5, "layer:300"));
  for (long i = 0; i < numbers.at(0, 20); ++i) {
    step("decode_step", stream, 6);
    replay_steps(exec, stream, 1);
  }
  return 0;
}

constexpr Scenario kScenarios[] = {
    {"eager", eager},
    {"graph", graph},
    {"captures", captures},
    {"captures_beside", captures_beside},
    {"capture_beside_long", capture_beside_long},
    {"contexts", contexts},
    {"threads", threads},
    {"exit_in_range", exit_in_range},
    {"leave_in_range", leave_in_range},
    {"abort_in_range", abort_in_range},
    {"return_in_range", return_in_range},
    {"exit_in_thread", exit_in_thread},
    {"destroy_in_range", destroy_in_range},
    {"lose_in_range", lose_in_range},
    {"fork_in_range", fork_in_range},
    {"odd_ranges", odd_ranges},
    {"kernels", kernels},
};

}  // namespace

int main(int argc, char** argv) { return run_scenario(argc, argv, kScenarios); }
