#include "workload/cuda/testing/emulated_gpu.h"

#include <setjmp.h>
#include <ucontext.h>

#include <functional>
#include <memory>
#include <vector>

#include "workload/cuda/testing/run_block.h"

namespace llmprof::workload::cuda {
namespace {

constexpr unsigned kLanes = 32, kMostThreads = 1024;
constexpr std::size_t kStackBytes = 128 << 10, kSharedFloats = 64 << 10;

struct Barrier {
  unsigned arrived = 0, generation = 0, live = 0;
};

// A fiber begins by its context and goes on by its jump buffer: switching contexts costs a system call each time.
struct Fiber {
  ucontext_t context;
  jmp_buf place;
  bool begun = false;
  std::unique_ptr<char[]> stack;
  bool done = true;
};

struct Block {
  std::vector<Fiber> fibers{kMostThreads};
  jmp_buf scheduler;
  unsigned now = 0;  // the running thread, x fastest
  Barrier all, warps[kMostThreads / kLanes];
  std::uint64_t slots[kMostThreads];
  int any = 0;
  const std::function<void()>* body = nullptr;
  alignas(16) float shared[kSharedFloats];
};

Block& block() {
  static Block it;
  return it;
}

void yield() {
  Block& b = block();
  if (_setjmp(b.fibers[b.now].place) == 0) _longjmp(b.scheduler, 1);
}

void resume(Fiber& fiber) {
  if (_setjmp(block().scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.place, 1);
  fiber.begun = true;
  ::setcontext(&fiber.context);
}

// Threads that have ended are not waited for.
void wait(Barrier& barrier) {
  const unsigned mine = barrier.generation;
  ++barrier.arrived;
  while (barrier.generation == mine) {
    if (barrier.arrived >= barrier.live) {
      barrier.arrived = 0;
      ++barrier.generation;
      return;
    }
    yield();
  }
}

void thread_main() {
  Block& b = block();
  (*b.body)();
  --b.all.live;
  --b.warps[b.now / kLanes].live;
  b.fibers[b.now].done = true;
  yield();
}

void start(Fiber& fiber) {
  if (fiber.stack == nullptr) fiber.stack = std::make_unique<char[]>(kStackBytes);
  ::getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  ::makecontext(&fiber.context, thread_main, 0);
  fiber.done = fiber.begun = false;
}

}  // namespace

void run_block(unsigned threads, const std::function<void()>& body) {
  Block& b = block();
  b.body = &body;
  b.all = {.live = threads};
  for (unsigned warp = 0; warp * kLanes < threads; ++warp) b.warps[warp] = {.live = kLanes};
  for (unsigned i = 0; i < threads; ++i) start(b.fibers[i]);
  while (b.all.live > 0) {
    for (b.now = 0; b.now < threads; ++b.now) {
      if (b.fibers[b.now].done) continue;
      threadIdx = {b.now % blockDim.x, b.now / blockDim.x, 0};
      resume(b.fibers[b.now]);
    }
  }
}

float* emulated_shared() { return block().shared; }
void wait_for_block() { wait(block().all); }
void wait_for_warp() { wait(block().warps[block().now / kLanes]); }
unsigned lane_now() { return block().now % kLanes; }

std::uint64_t exchange_in_warp(std::uint64_t bits, unsigned from_lane) {
  Block& b = block();
  b.slots[b.now] = bits;
  wait_for_warp();
  const std::uint64_t found = b.slots[b.now / kLanes * kLanes + from_lane];
  wait_for_warp();  // until all have read
  return found;
}

int any_in_block(int value) {
  Block& b = block();
  wait_for_block();
  b.any = 0;
  wait_for_block();
  b.any |= value;
  wait_for_block();
  return b.any;
}

}  // namespace llmprof::workload::cuda
