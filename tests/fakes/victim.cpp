// A program that uses CUDA, for tests of what a profiler does to it: `gpu_victim SCENARIO LABEL [NUMBER…]`. It prints
// what is the same in every run, and leaves the books to the driver.

#include "victim.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "abi.h"

namespace {

using namespace victim;

// Kernels, copies and memsets by turns, on two streams, in ranges of eight kernels.
void work(long kernels, long pause_us) {
  void* streams[2] = {make_stream(), make_stream()};
  void* functions[3] = {kernel("gemm:1500"), kernel("norm:700"), kernel("attention:2100")};
  std::uint64_t memory = 0;
  cuda("cuMemAlloc_v2", &memory, std::size_t{4096});
  static char host[4096];
  for (long i = 0; i < kernels; ++i) {
    if (i % 8 == 0) nvtxRangePushA("eight");
    launch(functions[i % 3], streams[i % 2], static_cast<unsigned>(i % 5 + 1));
    if (i % 8 == 3) cuda("cuMemcpyHtoDAsync_v2", memory, static_cast<const void*>(host), std::size_t{4096}, streams[0]);
    if (i % 8 == 5) cuda("cuMemsetD8Async", memory, static_cast<unsigned char>(0), std::size_t{2048}, streams[1]);
    if (i % 8 == 6) cuda("cuMemcpyDtoHAsync_v2", static_cast<void*>(host), memory, std::size_t{1024}, streams[0]);
    if (i % 8 == 7 || i + 1 == kernels) nvtxRangePop();
    if (pause_us > 0) usleep(static_cast<useconds_t>(pause_us));
  }
  wait(streams[0]), wait(streams[1]);
  cuda("cuMemFree_v2", memory);
}

void replay(void* exec, void* stream, long times, long pause_us) {
  for (long i = 0; i < times; ++i) {
    nvtxRangePushA("decode");
    if (cuda("cuGraphLaunch", exec, stream) != 0) std::_Exit(93);
    wait(stream);
    nvtxRangePop();
    if (pause_us > 0) usleep(static_cast<useconds_t>(pause_us));
  }
}

int none(const Numbers&) { return 0; }

int run(const Numbers& numbers) {
  start();
  work(numbers.at(0, 100), numbers.at(1, 0));
  return 0;
}

int threads(const Numbers& numbers) {
  void* context = start();
  std::vector<std::thread> all;
  for (long t = 0; t < numbers.at(0, 4); ++t) {
    all.emplace_back([&] {
      cuda("cuCtxSetCurrent", context);
      work(numbers.at(1, 100), 0);
    });
  }
  for (std::thread& thread : all) thread.join();
  return 0;
}

int graph(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  void* exec = instantiate(capture(stream, numbers.at(0, 50), "layer:300"));
  replay(exec, stream, numbers.at(1, 40), numbers.at(2, 0));
  return 0;
}

// Nested, cloned, updated, repeated, destroyed while it is replayed.
int graph_kinds(const Numbers& numbers) {
  start();
  const long times = numbers.at(0, 20);
  void* stream = make_stream();
  void *inner = capture(stream, 5, "inner:200"), *outer = nullptr, *node = nullptr, *copy = nullptr;
  cuda("cuGraphCreate", &outer, 0u);
  cuda("cuGraphAddChildGraphNode", &node, outer, static_cast<const void*>(nullptr), std::size_t{0}, inner);
  cuda("fake_graph_add_while", outer, inner, 3u);
  replay(instantiate(outer), stream, times, 0);
  cuda("cuGraphClone", &copy, outer);
  replay(instantiate(copy), stream, times, 0);
  void* exec = instantiate(inner);
  replay(exec, stream, times, 0);
  void* other = capture(stream, 5, "updated:250");
  if (cuda("cuGraphExecUpdate_v2", exec, other, static_cast<void*>(nullptr)) != 0) return 91;
  replay(exec, stream, times, 0);
  cuda("cuGraphLaunch", exec, stream);
  cuda("cuGraphExecDestroy", exec);
  cuda("cuGraphDestroy", inner);
  wait(stream);
  return 0;
}

// One executable that is updated before each launch by a new capture of the same kernels, by turns in two ranges.
int graph_updated_by_turns(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  const auto captured = [&](bool first) {
    nvtxRangePushA(first ? "layer 0" : "layer 1");
    void* made = capture(stream, 3, "layer:300");
    nvtxRangePop();
    return made;
  };
  void* exec = instantiate(captured(true));
  for (long i = 0; i < numbers.at(0, 20); ++i) {
    if (i > 0 && cuda("cuGraphExecUpdate_v2", exec, captured(i % 2 == 0), static_cast<void*>(nullptr)) != 0) return 91;
    replay(exec, stream, 1, 0);
  }
  return 0;
}

fake::KernelNodeParams of_kernel(const char* name, bool as_kernel) {
  void* handle = nullptr;
  if (as_kernel) cuda("cuLibraryGetKernel", &handle, static_cast<void*>(nullptr), name);
  return {as_kernel ? nullptr : kernel(name), {4, 1, 1}, {128, 1, 1}, 0, nullptr, nullptr, handle, nullptr};
}

// A graph whose kernels are added one by one: a function, a kernel, a kernel in the place of a function, and by the
// call for all kinds of nodes. Returns the graph and its first node.
std::pair<void*, void*> made_by_hand(const char* name) {
  void *graph = nullptr, *first = nullptr, *node = nullptr;
  const void* none = nullptr;
  cuda("cuGraphCreate", &graph, 0u);
  const fake::KernelNodeParams function = of_kernel(name, false), kernel = of_kernel("kernel:300", true);
  fake::KernelNodeParams cast = of_kernel("cast:400", true);
  std::swap(cast.function, cast.kernel);
  cuda("cuGraphAddKernelNode_v2", &first, graph, none, std::size_t{0}, &function);
  cuda("cuGraphAddKernelNode_v2", &node, graph, none, std::size_t{0}, &kernel);
  cuda("cuGraphAddKernelNode_v2", &node, graph, none, std::size_t{0}, &cast);
  fake::NodeParams any{};
  any.kernel = of_kernel("any:500", true);
  cuda("cuGraphAddNode_v2", &node, graph, none, none, std::size_t{0}, &any);
  return {graph, first};
}

void launch_graph(void* exec, void* stream) {
  if (cuda("cuGraphLaunch", exec, stream) != 0) std::_Exit(93);
}

// Bursts of launches; the program knows by other means than a call of CUDA when they have ended.
void bursts(void* exec, void* stream, long times, long launches, long pause_us) {
  for (long i = 0; i < times; ++i) {
    nvtxRangePushA("burst");
    for (long k = 0; k < launches; ++k) launch_graph(exec, stream);
    nvtxRangePop();
    usleep(static_cast<useconds_t>(pause_us));
  }
}

int graph_by_hand(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  bursts(instantiate(made_by_hand("function:200").first), stream, numbers.at(0, 40), numbers.at(1, 16), 2000);
  return 0;
}

// Several threads, each with a stream and a graph of its own, and graphs that are made while the others launch.
int graph_threads(const Numbers& numbers) {
  void* context = start();
  std::vector<std::thread> all;
  for (long t = 0; t < numbers.at(0, 3); ++t) {
    all.emplace_back([&] {
      cuda("cuCtxSetCurrent", context);
      void* stream = make_stream();
      void* exec = instantiate(made_by_hand("function:200").first);
      for (long i = 0; i < numbers.at(1, 10); ++i) {
        bursts(exec, stream, 8, 4, 1000);
        if (i % 4 == 3) exec = instantiate(capture(stream, 5, "layer:300"));
      }
      wait(stream);
      cuda("cuStreamDestroy_v2", stream);
    });
  }
  for (std::thread& thread : all) thread.join();
  return 0;
}

constexpr const char* kLong = "long:60000000";  // 60 ms

// Two devices, and graphs on the default stream of each. One of the second is in flight while the first goes on: on a
// stream that is destroyed meanwhile, on the default stream, on that of a thread that ends, in a context that is
// destroyed. The more launches before it, the further a sample is.
int graph_contexts(const Numbers& numbers) {
  void *first = start(), *second = nullptr;
  void* short_one = instantiate(capture(make_stream(), 5, "layer:300"));
  cuda("cuGraphUpload", short_one, static_cast<void*>(nullptr));
  for (long way = 0; way < 4; ++way) {
    cuda("cuCtxCreate_v2", &second, 0u, 1);
    void* long_one = instantiate(capture(make_stream(), 2, kLong));
    cuda("cuCtxSetCurrent", first);
    replay(short_one, nullptr, numbers.at(0, 3), 0);
    std::thread([&] {
      cuda("cuCtxSetCurrent", second);
      void* stream = way == 0 ? make_stream() : way == 1 ? nullptr : reinterpret_cast<void*>(way == 2 ? 2 : 1);
      launch_graph(long_one, stream);
      if (way == 0) cuda("cuStreamDestroy_v2", stream);
      if (way == 3) cuda("cuCtxDestroy_v2", second);
    }).join();
    replay(short_one, nullptr, 10, 1000);
    usleep(60000);
    replay(short_one, nullptr, 10, 0);
  }
  return 0;
}

// A stream that ran a graph is captured while another thread launches, and whoever wants to know its state is slow to
// find out. Prints how many calls of the captures failed.
int graph_captured_beside(const Numbers& numbers) {
  void* context = start();
  cuda("fake_question_us", 300u);
  std::atomic<bool> ends{false};
  std::thread beside([&] {
    cuda("cuCtxSetCurrent", context);
    void* own = make_stream();
    while (!ends) {
      void* its = instantiate(made_by_hand("beside:300").first);
      for (int i = 0; i < 20 && !ends; ++i) replay(its, own, 1, 100);
    }
  });
  void *stream = make_stream(), *exec = instantiate(made_by_hand("function:200").first), *made = nullptr;
  int broken = 0;
  for (long i = 0; i < numbers.at(0, 100); ++i) {
    replay(exec, stream, 1, 200);
    broken += cuda("cuStreamBeginCapture_v2", stream, 0) != 0;
    usleep(500);
    broken += cuda("cuStreamEndCapture", stream, &made) != 0;
  }
  ends = true;
  beside.join();
  std::printf("%d calls failed in captures\n", broken);
  return 0;
}

// A graph is instantiated while one of another stream is in flight, for so many ms, and while another thread launches.
int graph_made_beside(const Numbers& numbers) {
  void* context = start();
  void *stream = make_stream(), *other = make_stream();
  void* exec = instantiate(capture(stream, 5, "layer:300"));
  void* long_one = instantiate(capture(other, 2, ("long:" + std::to_string(numbers.at(0, 60) * 1000000)).c_str()));
  cuda("fake_instantiate_ms", static_cast<unsigned>(numbers.at(1, 0)));
  std::atomic<bool> ends{false};
  std::thread beside([&] {
    if (numbers.at(1, 0) == 0) return;
    cuda("cuCtxSetCurrent", context);
    void* own = make_stream();
    void* its = instantiate(capture(own, 5, "beside:300"));
    while (!ends) replay(its, own, 1, 500);
  });
  for (long i = 0; i < numbers.at(2, 8); ++i) {
    replay(exec, stream, 3 + i % 4, 0);  // in every state of a sample
    launch_graph(long_one, other);
    void* before = std::exchange(exec, instantiate(made_by_hand("function:200").first));
    replay(exec, stream, 1, 0);
    wait(other);
    replay(before, stream, 3, 0);
  }
  ends = true;
  beside.join();
  return 0;
}

// A graph that is captured again is launched too rarely to be sampled; one of other kernels, too.
int graph_recaptured(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  replay(instantiate(capture(stream, 5, "layer:300")), stream, numbers.at(0, 40), 0);
  replay(instantiate(capture(stream, 5, "layer:300")), stream, 2, 0);
  replay(instantiate(capture(stream, 5, "nowhere:300")), stream, 2, 0);
  return 0;
}

// The kernel of a node is another one after some launches; before that it is set to what it was.
int graph_set_params(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  const auto [graph, first] = made_by_hand("function:200");
  void* exec = instantiate(graph);
  const fake::KernelNodeParams same = of_kernel("function:200", false), other = of_kernel("other:700", false);
  const long times = numbers.at(0, 20);
  for (long i = 0; i < 2 * times; ++i) {
    if (cuda("cuGraphExecKernelNodeSetParams_v2", exec, first, i < times ? &same : &other) != 0) return 91;
    replay(exec, stream, 1, 0);
  }
  return 0;
}

// Graphs that are never waited for: one is always in flight.
int graph_stream(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  bursts(instantiate(capture(stream, 5, "layer:3000000")), stream, 1, numbers.at(0, 20), 0);
  return 0;
}

// Graphs, of one thread or two, and after them never again one.
int graph_then_kernels(const Numbers& numbers) {
  void* context = start();
  const auto launches = [&](long threads_us) {
    cuda("cuCtxSetCurrent", context);
    void* stream = make_stream();
    replay(instantiate(capture(stream, 20, "layer:300")), stream, numbers.at(0, 100), threads_us);
  };
  std::thread beside([&] {
    if (numbers.at(1, 0) != 0) launches(700);
  });
  launches(1000);
  beside.join();
  for (long i = 0; i < 100; ++i) {
    work(4, 0);
    usleep(3000);
  }
  return 0;
}

// Work, a quiet while, work again.
int twice(const Numbers& numbers) {
  start();
  work(numbers.at(0, 60), numbers.at(1, 10000));
  usleep(static_cast<useconds_t>(numbers.at(2, 2000) * 1000));
  work(numbers.at(0, 60), numbers.at(1, 10000));
  return 0;
}

// Launches without waiting: what CUPTI has not yet delivered when the program ends.
void burst(long kernels) {
  void *stream = make_stream(), *function = kernel("burst:20000");
  for (long i = 0; i < kernels; ++i) launch(function, stream);
}

int unfinished(const Numbers& numbers) {
  start();
  burst(numbers.at(0, 100));
  return 0;
}

int exit_in_handler(const Numbers& numbers) {
  start();
  std::atexit([] { std::exit(3); });
  burst(numbers.at(0, 100));
  return 0;
}

int exit_in_thread(const Numbers& numbers) {
  void* context = start();
  const long kernels = numbers.at(0, 100);
  std::thread([context, kernels] {
    cuda("cuCtxSetCurrent", context);
    burst(kernels);
    std::exit(4);
  }).detach();
  for (;;) usleep(1000);
}

int exit_in_callback(const Numbers& numbers) {
  start();
  burst(numbers.at(0, 100));
  void* none = nullptr;
  cuda(
      "cuLaunchHostFunc", none, +[](void*) { std::exit(5); }, none);
  return 0;
}

// A thread that goes on launching while the process exits, and longer than the exit handlers run.
int exit_beside_launches(const Numbers& numbers) {
  void* context = start();
  work(8, 0);
  const long pause_us = numbers.at(0, 20);
  std::thread([context, pause_us] {
    cuda("cuCtxSetCurrent", context);
    void *stream = make_stream(), *function = kernel("late:500");
    for (;;) {
      launch(function, stream);
      usleep(static_cast<useconds_t>(pause_us));
    }
  }).detach();
  usleep(20000);
  return 0;
}

int leave(const Numbers& numbers) {
  start();
  work(numbers.at(0, 100), 0);
  std::_Exit(6);
}

int killed(const Numbers& numbers) {
  start();
  void* stream = make_stream();
  void* exec = instantiate(capture(stream, 50, "layer:300"));
  replay(exec, stream, numbers.at(0, 100), 1000);
  for (long i = 0; i < 20; ++i) cuda("cuGraphLaunch", exec, stream);
  raise(SIGKILL);
  return 0;
}

// The child of a process that has CUDA uses ranges, not CUDA; the parent goes on.
int fork_after_init(const Numbers& numbers) {
  start();
  work(20, 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 5; ++i) nvtxRangePushA("child"), nvtxRangePop();
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  work(numbers.at(0, 20), 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 90;
}

// The child starts CUDA, the parent never does.
int fork_before_init(const Numbers& numbers) {
  nvtxRangePushA("parent"), nvtxRangePop();
  const pid_t child = fork();
  if (child == 0) {
    start();
    work(numbers.at(0, 20), 0);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 90;
}

// Work outside and inside of windows, so many times.
int profiler_windows(const Numbers& numbers) {
  start();
  for (long i = 0; i < numbers.at(0, 100); ++i) {
    work(4, 0);
    cuda("cuProfilerStart");
    work(4, 0);
    cuda("cuProfilerStop");
    usleep(static_cast<useconds_t>(numbers.at(1, 0)));
  }
  return 0;
}

constexpr Scenario kScenarios[] = {
    {"none", none},
    {"run", run},
    {"threads", threads},
    {"twice", twice},
    {"graph", graph},
    {"graph_kinds", graph_kinds},
    {"graph_updated_by_turns", graph_updated_by_turns},
    {"graph_by_hand", graph_by_hand},
    {"graph_threads", graph_threads},
    {"graph_contexts", graph_contexts},
    {"graph_captured_beside", graph_captured_beside},
    {"graph_made_beside", graph_made_beside},
    {"graph_recaptured", graph_recaptured},
    {"graph_set_params", graph_set_params},
    {"graph_stream", graph_stream},
    {"graph_then_kernels", graph_then_kernels},
    {"unfinished", unfinished},
    {"exit_in_handler", exit_in_handler},
    {"exit_in_thread", exit_in_thread},
    {"exit_in_callback", exit_in_callback},
    {"exit_beside_launches", exit_beside_launches},
    {"leave", leave},
    {"killed", killed},
    {"fork_after_init", fork_after_init},
    {"fork_before_init", fork_before_init},
    {"profiler_windows", profiler_windows},
};

}  // namespace

int main(int argc, char** argv) { return run_scenario(argc, argv, kScenarios); }
