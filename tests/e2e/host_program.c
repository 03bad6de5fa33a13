// What host_test.py records: memory that comes and goes inside ranges, and a child that only computes. Between two steps it
// waits much longer than the time between two readings.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "llmprof/annotate.h"

#define MEGABYTE 1000000u

static void wait_for_readings(void) { usleep(500 * 1000); }

static void* take(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) exit(1);
  memset(memory, 1, bytes);
  return memory;
}

static void scratch(void) {  // gives back what it took
  llmprof_module_push("scratch");
  wait_for_readings();
  void* memory = take(50 * MEGABYTE);
  wait_for_readings();
  munmap(memory, 50 * MEGABYTE);
  wait_for_readings();
  llmprof_pop();
}

static void* weights(void) {  // keeps 200 MB; holds 20 MB more for a while
  llmprof_module_push("weights");
  wait_for_readings();
  void* memory = take(200 * MEGABYTE);
  void* more = take(20 * MEGABYTE);
  wait_for_readings();
  munmap(more, 20 * MEGABYTE);
  wait_for_readings();
  llmprof_pop();
  return memory;
}

static void compute(void) {
  volatile double sum = 0;
  while (clock() < CLOCKS_PER_SEC * 3 / 10) sum += 1;
}

int main(void) {
  llmprof_stage_push("load", 0, 0, 0);
  scratch();
  void* memory = weights();
  llmprof_pop();
  llmprof_module_push("release");
  wait_for_readings();
  munmap(memory, 200 * MEGABYTE);
  wait_for_readings();
  llmprof_pop();
  const pid_t child = fork();
  if (child == 0) {
    compute();
    _exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}
