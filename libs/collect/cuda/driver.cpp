#include "collect/cuda/driver.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>
#include <type_traits>

#include "collect/names.h"

namespace llmprof::collect {
namespace {

constexpr int kMissing = -1;  // where the driver has no such function
constexpr int kNotReady = 600;

// Member, its name in the driver (older ones lack the "_v2"), what it is given.
#define LLMPROF_DRIVER_FUNCTIONS(X)                           \
  X(get_current, "cuCtxGetCurrent", void**)                   \
  X(synchronize, "cuCtxSynchronize")                          \
  X(function_name, "cuFuncGetName", const char**, void*)      \
  X(kernel_name, "cuKernelGetName", const char**, void*)      \
  X(is_capturing, "cuStreamIsCapturing", void*, int*)         \
  X(exchange_mode, "cuThreadExchangeStreamCaptureMode", int*) \
  X(context_of, "cuStreamGetCtx", void*, void**)              \
  X(query, "cuStreamQuery", void*)                            \
  X(make_event, "cuEventCreate", void**, unsigned)            \
  X(record_event, "cuEventRecord", void*, void*)              \
  X(query_event, "cuEventQuery", void*)                       \
  X(device_count, "cuDeviceGetCount", int*)                   \
  X(device, "cuDeviceGet", int*, int)                         \
  X(device_name, "cuDeviceGetName", char*, int, int)          \
  X(device_uuid, "cuDeviceGetUuid_v2", unsigned char*, int)   \
  X(device_memory, "cuDeviceTotalMem_v2", std::size_t*, int)  \
  X(device_attribute, "cuDeviceGetAttribute", int*, int, int)

template <class... Arguments>
using Function = std::atomic<int (*)(Arguments...)>;

struct Driver {
#define LLMPROF_DRIVER_MEMBER(member, name, ...) Function<__VA_ARGS__> member{nullptr};
  LLMPROF_DRIVER_FUNCTIONS(LLMPROF_DRIVER_MEMBER)
#undef LLMPROF_DRIVER_MEMBER
  std::atomic<bool> searched{false};
};
constinit Driver driver;

template <class... Arguments>
void find(void* library, Function<Arguments...>& function, const char* name) {
  void* found = dlsym(library, name);
  char older[64];
  const std::size_t length = strlen(name);
  if (found == nullptr && length > 3 && strcmp(name + length - 3, "_v2") == 0) {
    memcpy(older, name, length - 3);
    older[length - 3] = '\0';
    found = dlsym(library, older);
  }
  function.store(reinterpret_cast<int (*)(Arguments...)>(found), std::memory_order_relaxed);
}

// The program has it loaded: we are called from it, or after it was. Twice at once does no harm.
void search() {
  if (driver.searched.load(std::memory_order_acquire)) return;
  if (void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
#define LLMPROF_DRIVER_FIND(member, name, ...) find(library, driver.member, name);
    LLMPROF_DRIVER_FUNCTIONS(LLMPROF_DRIVER_FIND)
#undef LLMPROF_DRIVER_FIND
  }
  driver.searched.store(true, std::memory_order_release);
}

template <class... Arguments>
int call(const Function<Arguments...>& function, std::type_identity_t<Arguments>... arguments) {
  const auto pointer = function.load(std::memory_order_relaxed);
  return pointer != nullptr ? pointer(arguments...) : kMissing;
}

// While it lives, callbacks of what this thread asks the driver are not the program's.
class OwnCall {
 public:
  OwnCall() : before_(tl.measuring) { tl.measuring = true; }
  ~OwnCall() { tl.measuring = before_; }

 private:
  bool before_;
};

const char* ask_name(const Function<const char**, void*>& ask, void* handle) {
  const char* name = nullptr;
  return handle != nullptr && call(ask, &name, handle) == 0 ? name : nullptr;
}

// A driver that cannot tell counts as yes: to ask a stream that is being captured would end the capture.
bool may_be_captured(void* stream) {
  int capture = 0;
  return call(driver.is_capturing, stream, &capture) != 0 || capture != 0;
}

// Asks in the mode that does not disturb captures of other threads.
StreamState ask_relaxed(const Function<void*>& ask, void* handle) {
  constexpr int kRelaxed = 2;
  int mode = kRelaxed;
  if (call(driver.exchange_mode, &mode) != 0) return StreamState::kUnknown;
  const int result = call(ask, handle);
  call(driver.exchange_mode, &mode);  // as it was
  return result == 0 ? StreamState::kIdle : result == kNotReady ? StreamState::kBusy : StreamState::kUnknown;
}

std::uint64_t big_endian(const unsigned char* bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

std::uint32_t attribute(int which, int device) {
  int value = 0;
  return call(driver.device_attribute, &value, which, device) == 0 && value > 0 ? static_cast<std::uint32_t>(value) : 0;
}

void state_device(int ordinal) {
  constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;
  int device = 0;
  if (call(driver.device, &device, ordinal) != 0) return;
  wire::Record record = wire::blank(wire::RecordKind::kDevice);
  wire::DeviceRecord& out = record.device;
  out.device = static_cast<std::uint32_t>(ordinal);
  char name[256] = {};
  if (call(driver.device_name, name, sizeof(name) - 1, device) == 0) out.name = intern(name);
  unsigned char uuid[16] = {};
  if (call(driver.device_uuid, uuid, device) == 0) {
    out.uuid_high = big_endian(uuid);
    out.uuid_low = big_endian(uuid + 8);
  }
  std::size_t bytes = 0;
  if (call(driver.device_memory, &bytes, device) == 0) out.memory_bytes = bytes;
  out.units = attribute(kMultiprocessors, device);
  out.compute_capability = attribute(kMajor, device) * 10 + attribute(kMinor, device);
  state_fact(record);
}

}  // namespace

void* current_context() {
  search();
  void* context = nullptr;
  return call(driver.get_current, &context) == 0 ? context : nullptr;
}

void wait_for_device() {
  search();
  const OwnCall own;
  call(driver.synchronize);  // what it says of the program's work it will say to the program as well
}

const char* name_of_kernel(void* function, void* kernel) {
  search();
  const OwnCall own;
  if (function == nullptr) return ask_name(driver.kernel_name, kernel);
  const char* name = ask_name(driver.function_name, function);
  return name != nullptr ? name : ask_name(driver.kernel_name, function);
}

StreamState state_of_stream(void* stream) {
  search();
  const OwnCall own;
  return may_be_captured(stream) ? StreamState::kUnknown : ask_relaxed(driver.query, stream);
}

void* context_of_stream(void* stream) {
  search();
  const OwnCall own;
  void* context = nullptr;
  return !may_be_captured(stream) && call(driver.context_of, stream, &context) == 0 ? context : nullptr;
}

void* mark_stream(void* stream, void* event) {
  static constinit std::atomic<std::uint32_t> made;
  constexpr std::uint32_t kMostEvents = 256;  // they are never given back: their contexts may be gone
  constexpr unsigned kWithoutTime = 2;
  search();
  const OwnCall own;
  if (may_be_captured(stream)) return nullptr;
  if (event != nullptr && call(driver.record_event, event, stream) == 0) return event;
  if (made.fetch_add(1, std::memory_order_relaxed) >= kMostEvents) return nullptr;
  return call(driver.make_event, &event, kWithoutTime) == 0 && call(driver.record_event, event, stream) == 0 ? event
                                                                                                             : nullptr;
}

StreamState state_of_event(void* event) {
  const OwnCall own;
  return ask_relaxed(driver.query_event, event);
}

void state_devices() {
  constexpr int kMaxDevices = 64;
  search();
  int count = 0;
  if (call(driver.device_count, &count) != 0) return;
  for (int i = 0; i < count && i < kMaxDevices; ++i) state_device(i);
}

}  // namespace llmprof::collect
