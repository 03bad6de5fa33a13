#include "collect/cuda/driver.h"

#include <dlfcn.h>

#include "collect/state.h"

namespace llmprof::collect {
namespace {

template <class... Arguments>
using Function = std::atomic<int (*)(Arguments...)>;

struct Driver {
  Function<void**> get_current{nullptr};
  Function<> synchronize{nullptr};
  Function<const char**, void*> function_name{nullptr};
  Function<const char**, void*> kernel_name{nullptr};
  Function<void*, int*> is_capturing{nullptr};
  Function<int*> exchange_mode{nullptr};
  Function<void*, void**> context_of{nullptr};
  Function<void*> query{nullptr};
  Function<void**, unsigned> make_event{nullptr};
  Function<void*, void*> record_event{nullptr};
  Function<void*> query_event{nullptr};
  std::atomic<bool> searched{false};
};
constinit Driver driver;

template <class... Arguments>
void find(void* library, Function<Arguments...>& function, const char* name) {
  function.store(reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name)), std::memory_order_relaxed);
}

// The program has it loaded: we are called from it, or after it was. Twice at once does no harm.
void search() {
  if (driver.searched.load(std::memory_order_acquire)) return;
  if (void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    find(library, driver.get_current, "cuCtxGetCurrent");
    find(library, driver.synchronize, "cuCtxSynchronize");
    find(library, driver.function_name, "cuFuncGetName");
    find(library, driver.kernel_name, "cuKernelGetName");
    find(library, driver.is_capturing, "cuStreamIsCapturing");
    find(library, driver.exchange_mode, "cuThreadExchangeStreamCaptureMode");
    find(library, driver.context_of, "cuStreamGetCtx");
    find(library, driver.query, "cuStreamQuery");
    find(library, driver.make_event, "cuEventCreate");
    find(library, driver.record_event, "cuEventRecord");
    find(library, driver.query_event, "cuEventQuery");
  }
  driver.searched.store(true, std::memory_order_release);
}

// While it lives, callbacks of what this thread asks the driver are not the program's.
class OwnCall {
 public:
  OwnCall() : before_(tl.measuring) { tl.measuring = true; }
  ~OwnCall() { tl.measuring = before_; }

 private:
  bool before_;
};

const char* ask_name(const Function<const char**, void*>& of, void* handle) {
  const auto ask = of.load(std::memory_order_relaxed);
  const char* name = nullptr;
  return ask != nullptr && handle != nullptr && ask(&name, handle) == 0 ? name : nullptr;
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
  const OwnCall own;
  wait();  // what it says of the program's work it will say to the program as well
}

const char* name_of_kernel(void* function, void* kernel) {
  search();
  const OwnCall own;
  if (function == nullptr) return ask_name(driver.kernel_name, kernel);
  const char* name = ask_name(driver.function_name, function);
  return name != nullptr ? name : ask_name(driver.kernel_name, function);
}

constexpr int kNotReady = 600, kRelaxed = 2;

StreamState state_of_stream(void* stream) {
  search();
  const auto is_capturing = driver.is_capturing.load(std::memory_order_relaxed);
  const auto exchange_mode = driver.exchange_mode.load(std::memory_order_relaxed);
  const auto query = driver.query.load(std::memory_order_relaxed);
  if (is_capturing == nullptr || exchange_mode == nullptr || query == nullptr) return StreamState::kUnknown;
  const OwnCall own;
  int capture = 0, mode = kRelaxed;
  if (is_capturing(stream, &capture) != 0 || capture != 0) return StreamState::kUnknown;
  if (exchange_mode(&mode) != 0) return StreamState::kUnknown;
  const int result = query(stream);
  exchange_mode(&mode);  // as it was
  return result == 0 ? StreamState::kIdle : result == kNotReady ? StreamState::kBusy : StreamState::kUnknown;
}

void* context_of_stream(void* stream) {
  search();
  const auto is_capturing = driver.is_capturing.load(std::memory_order_relaxed);
  const auto context_of = driver.context_of.load(std::memory_order_relaxed);
  if (is_capturing == nullptr || context_of == nullptr) return nullptr;
  const OwnCall own;
  int capture = 0;
  void* context = nullptr;
  if (is_capturing(stream, &capture) != 0 || capture != 0) return nullptr;
  return context_of(stream, &context) == 0 ? context : nullptr;
}

void* mark_stream(void* stream, void* event) {
  static constinit std::atomic<std::uint32_t> made;
  constexpr std::uint32_t kMostEvents = 256;  // they are never given back: their contexts may be gone
  constexpr unsigned kWithoutTime = 2;
  search();
  const auto is_capturing = driver.is_capturing.load(std::memory_order_relaxed);
  const auto make = driver.make_event.load(std::memory_order_relaxed);
  const auto record = driver.record_event.load(std::memory_order_relaxed);
  if (is_capturing == nullptr || make == nullptr || record == nullptr) return nullptr;
  const OwnCall own;
  int capture = 0;
  if (is_capturing(stream, &capture) != 0 || capture != 0) return nullptr;
  if (event != nullptr && record(event, stream) == 0) return event;
  if (made.fetch_add(1, std::memory_order_relaxed) >= kMostEvents) return nullptr;
  return make(&event, kWithoutTime) == 0 && record(event, stream) == 0 ? event : nullptr;
}

StreamState state_of_event(void* event) {
  const auto query = driver.query_event.load(std::memory_order_relaxed);
  const auto exchange_mode = driver.exchange_mode.load(std::memory_order_relaxed);
  if (query == nullptr || exchange_mode == nullptr) return StreamState::kUnknown;
  const OwnCall own;
  int mode = kRelaxed;
  if (exchange_mode(&mode) != 0) return StreamState::kUnknown;
  const int result = query(event);
  exchange_mode(&mode);  // as it was
  return result == 0 ? StreamState::kIdle : result == kNotReady ? StreamState::kBusy : StreamState::kUnknown;
}

}  // namespace llmprof::collect
