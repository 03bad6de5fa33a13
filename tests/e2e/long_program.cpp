// long_program STEPS STEP_MS MODULES [THREADS [CHILDREN [FILE]]]: an annotated program of any length. Each thread of
// each process does STEPS steps of STEP_MS inside a range "outer"; step i has context i + 1 and MODULES modules. FILE
// is created when the first step is done; when FILE.stop exists, the step being done is the last. CHILDREN more
// processes do the same.

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "llmprof/annotate.h"

namespace {

long long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

long number(int argc, char** argv, int i, long fallback) { return argc > i ? std::atol(argv[i]) : fallback; }

void work(long steps, long step_ms, long modules, const char* file) {
  llmprof_module_push("outer");
  for (long i = 0; i < steps; ++i) {
    const long long end = now_ns() + step_ms * 1'000'000;
    llmprof_step_push("decode", 1, 1, static_cast<uint32_t>(i + 1));
    for (long m = 0; m < modules; ++m) {
      llmprof_module_push("layers.0.mlp");
      llmprof_pop();
    }
    while (now_ns() < end) usleep(200);
    llmprof_pop();
    if (file == nullptr) continue;
    if (i == 0) std::fclose(std::fopen(file, "w"));
    if (access((std::string(file) + ".stop").c_str(), F_OK) == 0) break;
  }
  llmprof_pop();
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = number(argc, argv, 1, 10), step_ms = number(argc, argv, 2, 1), modules = number(argc, argv, 3, 1);
  const long threads = number(argc, argv, 4, 1), children = number(argc, argv, 5, 0);
  std::vector<pid_t> started;
  for (long i = 0; i < children; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("LONG_PROGRAM_CHILD", "1", 1);
      execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], argv[4], static_cast<char*>(nullptr));
      _exit(127);
    }
    started.push_back(pid);
  }
  llmprof_model("{\"model_type\": \"toy\"}");
  std::vector<std::thread> workers;
  for (long i = 1; i < threads; ++i) workers.emplace_back(work, steps, step_ms, modules, nullptr);
  work(steps, step_ms, modules, argc > 6 ? argv[6] : nullptr);
  for (std::thread& worker : workers) worker.join();
  for (const pid_t pid : started) waitpid(pid, nullptr, 0);
  if (std::getenv("LONG_PROGRAM_CHILD") == nullptr) std::puts("done");
}
