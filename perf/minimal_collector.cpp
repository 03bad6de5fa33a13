// The least a profiler can do with CUPTI: the floor that our own collector is held against (capture_overhead.py), and
// the client that the fake CUPTI is tested with. Injected by CUDA_INJECTION64_PATH; counts records in a thread of its
// own and writes no trace. MINIMAL_KINDS: activity kinds, "10" (concurrent kernels) unless said; MINIMAL_CUPTI: the
// library; MINIMAL_OUT: a file for one line of JSON at exit; MINIMAL_REST_MS: nothing is recorded for so long, and so
// long it is, and so on: in every other such stretch of CLOCK_MONOTONIC_RAW.

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "tests/fakes/abi.h"

namespace {

constexpr std::size_t kBufferBytes = 8u << 20;

struct Filled {
  std::uint8_t* memory;
  std::size_t valid;
};

struct State {
  void* cupti = nullptr;
  std::mutex lock;
  std::condition_variable more;
  std::vector<std::uint8_t*> idle;
  std::vector<Filled> filled;
  std::vector<std::uint32_t> kinds;
  std::size_t buffers = 0, parsing = 0;
  std::uint64_t kernels = 0, copies = 0, graphs = 0, others = 0, kernel_ns = 0, zero = 0, dropped = 0;
};
State* state = nullptr;  // never destroyed: callbacks come late

template <typename... Arguments>
int cupti(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(state->cupti, name));
  return function != nullptr ? function(arguments...) : -1;
}

std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

void requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *max_records = 0;
  *bytes = kBufferBytes;
  {
    const std::lock_guard hold(state->lock);
    if (!state->idle.empty()) {
      *buffer = state->idle.back();
      state->idle.pop_back();
      return;
    }
    ++state->buffers;
  }
  void* memory = mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  *buffer = memory != MAP_FAILED ? static_cast<std::uint8_t*>(memory) : nullptr;
}

void completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::lock_guard hold(state->lock);
  state->filled.push_back({buffer, valid});
  state->more.notify_one();
}

void parse(const Filled& filled) {
  static const auto next = reinterpret_cast<int (*)(std::uint8_t*, std::size_t, std::uint8_t**)>(
      dlsym(state->cupti, "cuptiActivityGetNextRecord"));
  std::uint8_t* record = nullptr;
  while (next(filled.memory, filled.valid, &record) == fake::kSuccess) {
    std::uint32_t kind;
    std::memcpy(&kind, record, sizeof(kind));
    if (kind == fake::kConcurrentKernel) {
      const auto& kernel = *reinterpret_cast<const fake::KernelActivity*>(record);
      ++state->kernels;
      state->kernel_ns += kernel.end - kernel.start;
      if (kernel.start == 0) ++state->zero;
    } else {
      ++(kind == fake::kMemcpy || kind == fake::kMemset ? state->copies
         : kind == fake::kGraphTrace                    ? state->graphs
                                                        : state->others);
    }
  }
  std::memset(filled.memory, 0, filled.valid);
}

void* parse_all(void*) {
  for (;;) {
    std::unique_lock hold(state->lock);
    state->more.wait(hold, [] { return !state->filled.empty(); });
    const Filled filled = state->filled.back();
    state->filled.pop_back();
    ++state->parsing;
    hold.unlock();
    parse(filled);
    hold.lock();
    state->idle.push_back(filled.memory);
    --state->parsing;
  }
}

void* flush_often(void*) {
  for (;;) {
    usleep(250000);
    cupti("cuptiActivityFlushAll", 0u);
  }
}

void* rest_often(void*) {
  const std::uint64_t rest_ns = std::strtoull(std::getenv("MINIMAL_REST_MS"), nullptr, 10) * 1000000;
  for (;;) {
    const std::uint64_t now = now_ns();
    usleep(static_cast<useconds_t>((rest_ns - now % rest_ns) / 1000 + 1));
    const bool rests = now_ns() / rest_ns % 2 != 0;
    for (const std::uint32_t kind : state->kinds) cupti(rests ? "cuptiActivityDisable" : "cuptiActivityEnable", kind);
  }
}

void finish() {
  cupti("cuptiActivityFlushAll", 1u);
  for (;;) {
    const std::lock_guard hold(state->lock);
    if (state->filled.empty() && state->parsing == 0) break;
  }
  cupti("cuptiActivityGetNumDroppedRecords", static_cast<void*>(nullptr), 0u, &state->dropped);
  const char* path = std::getenv("MINIMAL_OUT");
  std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file,
               "{\"kernels\":%lu,\"copies\":%lu,\"graphs\":%lu,\"others\":%lu,\"kernel_ns\":%lu,\"zero\":%lu,"
               "\"dropped\":%lu,\"buffers\":%zu}\n",
               state->kernels, state->copies, state->graphs, state->others, state->kernel_ns, state->zero,
               state->dropped, state->buffers);
  std::fclose(file);
}

void* open_cupti() {
  if (const char* path = std::getenv("MINIMAL_CUPTI")) return dlopen(path, RTLD_NOW);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (void* found = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return found;
  }
  for (const char* name : {"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so", "libcupti.so.13", "libcupti.so.12"}) {
    if (void* found = dlopen(name, RTLD_NOW)) return found;
  }
  return nullptr;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int InitializeInjection() {
  if (state != nullptr) return 1;
  state = new State;
  state->cupti = open_cupti();
  if (state->cupti == nullptr) return 1;
  std::uint8_t zeroed = 1;
  std::size_t bytes = sizeof(zeroed);
  cupti("cuptiActivitySetAttribute", 5, &bytes, static_cast<void*>(&zeroed));
  cupti("cuptiActivityRegisterTimestampCallback", &now_ns);
  if (cupti("cuptiActivityRegisterCallbacks", &requested, &completed) != 0) return 1;
  const char* kinds = std::getenv("MINIMAL_KINDS");
  char* rest = nullptr;
  for (const char* at = kinds != nullptr ? kinds : "10"; *at != '\0'; at = *rest == ',' ? rest + 1 : rest) {
    state->kinds.push_back(static_cast<std::uint32_t>(std::strtoul(at, &rest, 10)));
    cupti("cuptiActivityEnable", state->kinds.back());
    if (rest == at) break;
  }
  pthread_t thread;
  if (pthread_create(&thread, nullptr, parse_all, nullptr) == 0) pthread_detach(thread);
  if (pthread_create(&thread, nullptr, flush_often, nullptr) == 0) pthread_detach(thread);
  if (std::getenv("MINIMAL_REST_MS") != nullptr && pthread_create(&thread, nullptr, rest_often, nullptr) == 0)
    pthread_detach(thread);
  std::atexit(finish);
  return 1;
}
