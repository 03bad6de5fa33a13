// What host_cost.py records: `host_load PROCESSES THREADS ROUNDS` computes ROUNDS units of about a millisecond, shared
// by all threads of all processes, on stacks about 20 calls deep, and prints the seconds it took.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

__attribute__((noinline)) double unit(int depth, double seed) {
  if (depth > 0) return unit(depth - 1, seed + 1) * 0.5 + 1;  // not a tail call: every level stays on the stack
  for (int i = 0; i < 250'000; ++i) seed = seed * 0.999999 + 0.5;
  return seed;
}

void compute(long rounds) {
  volatile double sum = 0;
  for (long i = 0; i < rounds; ++i) sum = sum + unit(20, static_cast<double>(i));
}

void use_threads(long threads, long rounds) {
  std::vector<std::thread> workers;
  for (long i = 0; i < threads; ++i) workers.emplace_back(compute, rounds);
  for (std::thread& worker : workers) worker.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const long processes = std::atol(argv[1]), threads = std::atol(argv[2]), rounds = std::atol(argv[3]);
  const auto begin = std::chrono::steady_clock::now();
  const long each = rounds / (processes * threads) + 1;
  for (long i = 1; i < processes; ++i) {
    if (::fork() == 0) {
      use_threads(threads, each);
      ::_exit(0);
    }
  }
  use_threads(threads, each);
  while (::wait(nullptr) > 0) {
  }
  std::printf("%.6f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}
