// annotated all|threads: a program in C and C++ that annotates itself; prints "listening N" at the end.

#include "annotated.h"

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "llmprof/annotate.h"

namespace {

void annotate_in_cpp() {
  const llmprof::Stage stage("decode");
  const llmprof::Step step("decode", 0xFFFFFFFFU, 1, 0x1FFFFFFU);  // batch and context do not fit
  const llmprof::Module module("lm_head");
  const llmprof::Module registered(llmprof_register("sampling"));
  llmprof_step_member("r-1", 16, 0x1FFFFFFFU);  // the length does not fit
  llmprof_request("", LLMPROF_ENGINE_PADDED, 64, 0);
}

// All threads make the first annotation of the process at the same time.
void annotate_from_threads(int count) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      ++ready;
      while (ready != count) std::this_thread::yield();
      for (int round = 0; round < 100; ++round) {
        const llmprof::Stage stage("decode");
        const llmprof::Step step("decode", 1, 1, 1);
        for (int layer = 0; layer < 3; ++layer) const llmprof::Module module("layer");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "threads") {
    annotate_from_threads(4);
  } else {
    annotate_in_c();
    annotate_in_cpp();
  }
  std::printf("listening %d\n", llmprof_listening());
}
