#include "collect/cuda/counters/driver.h"

#include <dlfcn.h>

#include "collect/state.h"

namespace llmprof::collect::counters {
namespace {

struct Driver {
  std::atomic<int (*)(void** context)> get_current{nullptr};
  std::atomic<int (*)()> synchronize{nullptr};
  std::atomic<bool> searched{false};
};
constinit Driver driver;

// The program has it loaded: we are called from it, or after it was. Twice at once does no harm.
void search() {
  if (driver.searched.load(std::memory_order_acquire)) return;
  if (void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    driver.get_current.store(reinterpret_cast<int (*)(void**)>(dlsym(library, "cuCtxGetCurrent")));
    driver.synchronize.store(reinterpret_cast<int (*)()>(dlsym(library, "cuCtxSynchronize")));
  }
  driver.searched.store(true, std::memory_order_release);
}

}  // namespace

void* current_context() {
  search();
  const auto get = driver.get_current.load(std::memory_order_relaxed);
  void* context = nullptr;
  return get != nullptr && get(&context) == 0 ? context : nullptr;
}

void wait_for_device() {
  search();
  const auto wait = driver.synchronize.load(std::memory_order_relaxed);
  if (wait == nullptr) return;
  const bool before = tl.measuring;
  tl.measuring = true;
  wait();  // what it says of the program's work it will say to the program as well
  tl.measuring = before;
}

}  // namespace llmprof::collect::counters
