// annotated_loop N [PAUSE_NS [SECONDS]]: N annotated modules, or as many as fit into SECONDS; then its memory and the
// time just before main returns. perf/collector_cost.py runs it with and without the collector.

#include <time.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "llmprof/annotate.h"

namespace {

long long now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// A line of /proc/self/status in kB.
long status_kb(const char* key) {
  FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long value = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) value = std::atol(line + std::strlen(key) + 1);
  }
  if (file != nullptr) std::fclose(file);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const long long count = argc > 1 ? std::atoll(argv[1]) : 1'000'000;
  const long long pause_ns = argc > 2 ? std::atoll(argv[2]) : 0;
  const long long begin = now_ns(), cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
  const long long last = argc > 3 ? begin + std::atoll(argv[3]) * 1'000'000'000 : LLONG_MAX;
  long long done = 0;
  for (; done < count; ++done) {
    llmprof_module_push("layers.0.mlp.up_proj");
    llmprof_pop();
    if (pause_ns > 0) {
      const long long until = now_ns() + pause_ns;
      if (until > last) break;
      while (now_ns() < until) {
      }
    }
  }
  const long long cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin, end = now_ns();
  std::printf("{\"events\": %lld, \"loop_ns\": %lld, \"loop_cpu_ns\": %lld, \"rss_peak_kb\": %ld, \"end_ns\": %lld}\n",
              2 * done, end - begin, cpu, status_kb("VmHWM"), end);
  std::fflush(stdout);
  return 0;
}
