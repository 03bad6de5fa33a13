// A libcuda.so.1 without a device: it keeps books of what it was asked to do, gives every kernel the time its name says
// ("name:1500" takes 1,500 ns), and tells the tool. This file: initialisation, devices, contexts, streams, memory,
// waits.
#include "cuda_driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace fake {
namespace {

constexpr const char* kNames[] = {
#define X(name) #name,
    FAKE_COUNTERS(X)
#undef X
};

LedgerEntry* open_ledger() {
  const std::size_t bytes = sizeof(LedgerEntry) * kCounters;
  const char* folder = std::getenv("FAULT_LEDGER");
  int descriptor = -1;
  if (folder != nullptr) {
    const std::string path = std::string(folder) + "/.gpu." + std::to_string(getpid());
    descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) std::_Exit(98);
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      descriptor >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, descriptor, 0);
  if (memory == MAP_FAILED) std::_Exit(97);
  if (descriptor >= 0) close(descriptor);
  auto* entries = static_cast<LedgerEntry*>(memory);
  for (int i = 0; i < kCounters; ++i) std::strncpy(entries[i].name, kNames[i], sizeof(entries[i].name) - 1);
  return entries;
}

std::atomic<bool> initialised{false};
std::mutex init_lock;
thread_local Context* current = nullptr;
thread_local int capture_mode = 0;
Context* primary = nullptr;

void inject() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || path[0] == '\0') return;
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) return;
  const auto start = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (start != nullptr && start() == 1) count(driver().ledger, k_injected);
}

void attach(const Tool* tool) { driver().tool.store(tool); }

void break_captures() {
  const std::lock_guard hold(driver().lock);
  for (Stream* stream : driver().capturing) stream->capture_broken = true;
}

std::uint64_t idle_at_ns() {
  const std::lock_guard hold(driver().lock);
  return driver().idle_at_ns;
}

bool graph_in_flight() {
  const std::lock_guard hold(driver().lock);
  return driver().at_graphs.load() != 0 || driver().graphs_until_ns > now_ns();
}

[[gnu::destructor]] void finish() { driver().fini.store(true); }

}  // namespace

DriverState& driver() {
  static DriverState* state = [] {
    auto* made = new DriverState;
    made->ledger = open_ledger();
    return made;
  }();
  return *state;
}

std::uint64_t now_ns() {
  const Tool* tool = driver().tool.load();
  if (tool != nullptr) return tool->now();
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

Context* current_context() { return current != nullptr ? current : primary; }

int unusable(const Stream* stream) {
  if (driver().lost.load()) return kCudaIllegalAddress;
  return stream->context->dead.load() ? kCudaInvalidContext : kCudaSuccess;
}

void resource(std::uint32_t id, Stream* stream, void* descriptor) {
  if (const Tool* tool = driver().tool.load()) tool->resource(id, current_context(), stream, descriptor);
}

Call::Call(DriverCall id, const char* name, const void* parameters, const char* symbol)
    : api_{id, name, parameters, symbol, current_context(), &data_, driver().next_correlation.fetch_add(1), 0} {
  if (const Tool* tool = driver().tool.load()) {
    api_.begin_ns = tool->now();
    tool->api(api_, 0, &result);
  }
}

Call::~Call() {
  if (const Tool* tool = driver().tool.load()) tool->api(api_, 1, &result);
}

namespace {

Stream* make_stream(Context* context) {
  auto* stream = new Stream{driver().next_id.fetch_add(1), context, 0, nullptr};
  count(driver().ledger, k_streams);
  return stream;
}

Context* make_context(int device) {
  auto* context = new Context{driver().next_id.fetch_add(1), device};
  driver().contexts.fetch_add(1);
  count(driver().ledger, k_contexts);
  current = context;
  context->own = make_stream(context);
  resource(kContextCreated);
  return context;
}

Stream* own_stream_of_thread(Context* context) {
  thread_local std::vector<Stream*> own;
  for (Stream* stream : own) {
    if (stream->context == context) return stream;
  }
  return own.emplace_back(make_stream(context));
}

// Handles of what is gone must not be used: the real driver may crash.
bool is_gone(const Stream* stream) { return stream->destroyed || stream->context->dead.load(); }

void wait_for(Stream* stream, std::uint32_t correlation) {
  const std::uint64_t begin_ns = now_ns();
  while (now_ns() < stream->busy_until_ns) usleep(50);
  if (const Tool* tool = driver().tool.load()) tool->waited(correlation, stream, current_context(), begin_ns);
}

void remember(std::uint64_t address, std::uint64_t bytes, std::uint32_t correlation, bool release) {
  count(driver().ledger, release ? k_frees : k_allocations);
  if (!release) count(driver().ledger, k_allocated_bytes, bytes);
  if (const Tool* tool = driver().tool.load()) {
    tool->memory({address, bytes, correlation, current_context()->id, release});
  }
}

}  // namespace

Stream* stream_of(void* handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number > 2) return static_cast<Stream*>(handle);
  return number == 2 ? own_stream_of_thread(current_context()) : current_context()->own;
}

}  // namespace fake

using namespace fake;

FAKE_EXPORT const Driver* fake_cuda_driver() {
  static const Driver table{driver().ledger,        attach,         &driver().contexts, &driver().execs, &driver().fini,
                            &driver().initialising, &driver().lost, &driver().captures, break_captures,  idle_at_ns,
                            graph_in_flight};
  return &table;
}

FAKE_EXPORT int cuInit(unsigned) {
  const std::lock_guard hold(init_lock);
  if (initialised.exchange(true)) return kCudaSuccess;
  driver();
  driver().initialising.store(true);
  inject();
  driver().initialising.store(false);
  resource(kCuInitFinished);
  return kCudaSuccess;
}

FAKE_EXPORT int cuDriverGetVersion(int* version) { return *version = 13000, kCudaSuccess; }
FAKE_EXPORT int cuDeviceGetCount(int* devices) { return *devices = 2, kCudaSuccess; }
FAKE_EXPORT int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, kCudaSuccess; }

FAKE_EXPORT int cuDeviceGetName(char* name, int length, int) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(length) - 1);
  name[length - 1] = '\0';
  return kCudaSuccess;
}

FAKE_EXPORT int cuDeviceGetUuid_v2(Uuid* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(16 * device + i);
  return kCudaSuccess;
}

FAKE_EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = 151'000'000'000u, kCudaSuccess; }

FAKE_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;  // multiprocessors, compute capability 9.0
  return kCudaSuccess;
}

FAKE_EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  const std::lock_guard hold(init_lock);
  if (!initialised.load()) return kCudaNotInitialized;
  if (primary == nullptr) primary = make_context(device);
  *context = primary;
  return kCudaSuccess;
}

FAKE_EXPORT int cuCtxCreate_v2(void** context, unsigned, int device) {
  if (!initialised.load()) return kCudaNotInitialized;
  *context = make_context(device);
  return kCudaSuccess;
}

FAKE_EXPORT int cuCtxDestroy_v2(void* handle) {
  auto* context = static_cast<Context*>(handle);
  if (context == nullptr || context->dead.load()) return kCudaInvalidContext;
  if (const Tool* tool = driver().tool.load()) tool->resource(kContextDestroyStarting, context, nullptr, nullptr);
  context->dead.store(true);
  if (current == context) current = nullptr;
  if (primary == context) primary = nullptr;
  return kCudaSuccess;
}

// Not CUDA's: from here on every call fails, as after a kernel that wrote where it may not.
FAKE_EXPORT int fake_lose_device() { return driver().lost.store(true), kCudaSuccess; }
// Nor these: from here on the answer whether a stream is captured, and instantiations, take so long.
FAKE_EXPORT int fake_question_us(unsigned us) { return driver().question_us.store(us), kCudaSuccess; }
FAKE_EXPORT int fake_instantiate_ms(unsigned ms) { return driver().instantiate_ms.store(ms), kCudaSuccess; }

FAKE_EXPORT int cuCtxSetCurrent(void* context) { return current = static_cast<Context*>(context), kCudaSuccess; }
FAKE_EXPORT int cuCtxGetCurrent(void** context) { return *context = current_context(), kCudaSuccess; }

FAKE_EXPORT int cuCtxGetDevice(int* device) {
  if (current_context() == nullptr) return kCudaNotInitialized;
  return *device = current_context()->device, kCudaSuccess;
}

FAKE_EXPORT int cuStreamCreate(void** stream, unsigned) {
  Stream* made = make_stream(current_context());
  resource(kStreamCreated, made);
  *stream = made;
  return kCudaSuccess;
}

FAKE_EXPORT int cuStreamSynchronize(void* stream) {
  Call call(kCuStreamSynchronize, "cuStreamSynchronize", &stream);
  if ((call.result = unusable(stream_of(stream))) != kCudaSuccess) return call.result;
  wait_for(stream_of(stream), call.correlation());
  return call.result;
}

FAKE_EXPORT int cuStreamDestroy_v2(void* stream) {
  resource(kStreamDestroyStarting, static_cast<Stream*>(stream));
  static_cast<Stream*>(stream)->destroyed = true;
  return kCudaSuccess;  // it stays: records of what ran on it may still come
}

// As the real one: asked about a stream that is captured, the capture is over.
FAKE_EXPORT int cuStreamQuery(void* stream) {
  Stream* of = stream_of(stream);
  const std::lock_guard hold(driver().lock);
  if (is_gone(of)) count(driver().ledger, k_bad_dead_context);
  if (of->capturing != nullptr || (driver().captures.load() != 0 && capture_mode != 2)) {
    for (Stream* other : driver().capturing) other->capture_broken = true;
    count(driver().ledger, k_bad_in_capture);
    return kCudaCaptureInvalidated;
  }
  return now_ns() < of->busy_until_ns ? kCudaNotReady : kCudaSuccess;
}

FAKE_EXPORT int cuStreamGetCtx(void* stream, void** context) {
  if (is_gone(stream_of(stream))) count(driver().ledger, k_bad_dead_context);
  return *context = stream_of(stream)->context, kCudaSuccess;
}

FAKE_EXPORT int cuEventCreate(void** event, unsigned) { return *event = new Event{current_context(), 0}, kCudaSuccess; }
FAKE_EXPORT int cuEventRecord(void* handle, void* stream_handle) {
  auto* event = static_cast<Event*>(handle);
  Stream* stream = stream_of(stream_handle);
  if (event->context->dead.load() || is_gone(stream)) count(driver().ledger, k_bad_dead_context);
  if (event->context != stream->context) return kCudaInvalidHandle;
  const std::lock_guard hold(driver().lock);
  return event->at_ns = stream->busy_until_ns, kCudaSuccess;
}
FAKE_EXPORT int cuEventQuery(void* handle) {
  const auto* event = static_cast<Event*>(handle);
  if (event->context->dead.load()) count(driver().ledger, k_bad_dead_context);
  const std::lock_guard hold(driver().lock);
  return now_ns() < event->at_ns ? kCudaNotReady : kCudaSuccess;
}

FAKE_EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) { return std::swap(*mode, capture_mode), kCudaSuccess; }

// Of this context only. As the real one: illegal while a stream is captured, in whatever mode, and the end of the
// capture.
FAKE_EXPORT int cuCtxSynchronize() {
  Call call(kCuCtxSynchronize, "cuCtxSynchronize", nullptr);
  if (driver().captures.load() != 0) {
    break_captures();
    count(driver().ledger, k_bad_in_capture);
    return call.result = kCudaCaptureInvalidated;
  }
  const auto until = [](const Context* context) {
    const std::lock_guard hold(driver().lock);
    return context->idle_at_ns;
  };
  const Context* context = current_context();
  while (context != nullptr && now_ns() < until(context)) usleep(50);
  return call.result;
}

FAKE_EXPORT int cuStreamIsCapturing(void* stream, int* status) {
  const Stream* of = stream_of(stream);
  *status = of->capture_broken ? 2 : of->capturing != nullptr ? 1 : 0;
  usleep(driver().question_us.load());  // it was so: much may happen until the asker knows
  return kCudaSuccess;
}

FAKE_EXPORT int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  static std::atomic<std::uint64_t> next{0x7f0000000000};
  const AllocateParams parameters{address, bytes};
  Call call(kCuMemAlloc_v2, "cuMemAlloc_v2", &parameters);
  *address = next.fetch_add((bytes + 511) / 512 * 512);
  remember(*address, bytes, call.correlation(), false);
  return call.result;
}

FAKE_EXPORT int cuMemFree_v2(std::uint64_t address) {
  const FreeParams parameters{address};
  Call call(kCuMemFree_v2, "cuMemFree_v2", &parameters);
  remember(address, 0, call.correlation(), true);
  return call.result;
}

FAKE_EXPORT int cuProfilerStart() { return Call(kCuProfilerStart, "cuProfilerStart", nullptr).result; }
FAKE_EXPORT int cuProfilerStop() { return Call(kCuProfilerStop, "cuProfilerStop", nullptr).result; }

FAKE_EXPORT int cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int* status) {
  *function = dlsym(RTLD_DEFAULT, name);
  Dl_info info;  // of this library, however it was loaded
  if (*function == nullptr && dladdr(reinterpret_cast<void*>(&cuInit), &info) != 0) {
    if (void* self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)) {
      *function = dlsym(self, name);
      if (*function == nullptr) *function = dlsym(self, (std::string(name) + "_v2").c_str());
    }
  }
  if (status != nullptr) *status = *function != nullptr ? 0 : 1;
  return *function != nullptr ? kCudaSuccess : kCudaNotFound;
}
