// The functions of the fake libcupti.so.13.
#include "cupti_state.h"

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace fake {

CuptiState& cupti() {
  static CuptiState* state = [] {
    auto* made = new CuptiState{};
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library != nullptr) {
      const auto driver = reinterpret_cast<const Driver* (*)()>(dlsym(library, "fake_cuda_driver"));
      if (driver != nullptr) made->driver = driver();
    }
    return made;
  }();
  return *state;
}

void note(Counter counter, std::uint64_t amount) {
  if (cupti().driver != nullptr) count(cupti().driver->ledger, counter, amount);
}

std::uint64_t timestamp_ns() {
  if (const TimestampFunction function = cupti().timestamp.load()) return function();
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

int begin_call(const char* function) {
  CuptiState& state = cupti();
  const std::uint64_t number = ++state.calls;
  note(k_cupti_calls);
  if (state.driver != nullptr) {
    state.driver->attach(&kTool);
    // Walking a buffer touches nothing but the buffer.
    const bool walks = std::strcmp(function, "cuptiActivityGetNextRecord") == 0;
    if (!walks && state.driver->fini->load()) note(k_bad_call_after_fini);
  }
  const Script& told = script();
  if (told.failing.empty()) return kSuccess;
  const bool any = told.failing == "*";
  if (!any && told.failing != function) return kSuccess;
  const std::uint64_t which = any ? number : ++state.calls_of_failing;
  if (which != told.fail_at && !(told.fail_on && which > told.fail_at)) return kSuccess;
  note(k_failed_calls);
  return told.error;
}

}  // namespace fake

using namespace fake;

#define BEGIN_CALL()                                                           \
  if (const int error = begin_call(__func__); error != kSuccess) return error; \
  const std::lock_guard hold(cupti().lock)

FAKE_EXPORT int cuptiGetVersion(std::uint32_t* version) {
  BEGIN_CALL();
  return *version = script().version, kSuccess;
}

FAKE_EXPORT int cuptiGetResultString(int, const char** text) { return *text = "an error of the fake", kSuccess; }
FAKE_EXPORT int cuptiGetErrorMessage(int, const char** text) { return *text = "an error of the fake", kSuccess; }

static int subscribe(void** subscriber, CallbackFunction callback, void* user_data) {
  CuptiState& state = cupti();
  if (state.callback != nullptr || !script().held.empty()) return kMultipleSubscribers;
  state.callback = callback;
  state.user_data = user_data;
  note(k_subscribed);
  *subscriber = &state;
  return kSuccess;
}

FAKE_EXPORT int cuptiSubscribe(void** subscriber, CallbackFunction callback, void* user_data) {
  BEGIN_CALL();
  return subscribe(subscriber, callback, user_data);
}

FAKE_EXPORT int cuptiSubscribe_v2(void** subscriber, CallbackFunction callback, void* user_data,
                                  SubscriberParams* parameters) {
  BEGIN_CALL();
  if (parameters == nullptr || parameters->struct_size != sizeof(SubscriberParams)) return kInvalidParameter;
  const int result = subscribe(subscriber, callback, user_data);
  if (result == kMultipleSubscribers && parameters->old_subscriber_name != nullptr) {
    if (parameters->old_subscriber_size < 64) return kInvalidParameter;
    std::strncpy(parameters->old_subscriber_name, script().held.c_str(), parameters->old_subscriber_size - 1);
  }
  return result;
}

FAKE_EXPORT int cuptiUnsubscribe(void*) {
  BEGIN_CALL();
  cupti().callback = nullptr;
  return kSuccess;
}

FAKE_EXPORT int cuptiEnableCallback(std::uint32_t enable, void*, int domain, std::uint32_t id) {
  BEGIN_CALL();
  if (domain <= 0 || domain >= kDomains || id >= kCallbackIds) return kInvalidParameter;
  CuptiState& state = cupti();
  // A thread may be inside of such a call. The real one may take all its later calls for calls inside of that.
  const bool is_used = state.driver != nullptr && state.driver->contexts->load() > 0;
  if (domain == kDriverApi && enable == 0 && state.enabled[domain][id] && is_used) note(k_bad_callback_off);
  state.enabled[domain][id] = enable != 0;
  return kSuccess;
}

FAKE_EXPORT int cuptiEnableDomain(std::uint32_t enable, void*, int domain) {
  BEGIN_CALL();
  if (domain <= 0 || domain >= kDomains) return kInvalidParameter;
  for (std::uint32_t id = 1; id < kCallbackIds; ++id) cupti().enabled[domain][id] = enable != 0;
  return kSuccess;
}

FAKE_EXPORT int cuptiGetCallbackState(std::uint32_t* enable, void*, int domain, std::uint32_t id) {
  BEGIN_CALL();
  return *enable = cupti().enabled[domain][id] ? 1 : 0, kSuccess;
}

FAKE_EXPORT int cuptiGetCallbackName(int, std::uint32_t, const char** name) {
  BEGIN_CALL();
  return *name = "aCallOfCuda", kSuccess;
}

FAKE_EXPORT int cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  BEGIN_CALL();
  CuptiState& state = cupti();
  if (state.with_thief) flush(true);
  state.requested = requested;
  state.completed = completed;
  state.with_thief = false;
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityRegisterTimestampCallback(TimestampFunction function) {
  BEGIN_CALL();
  note(k_timestamp_callbacks);
  if (cupti().driver != nullptr && cupti().driver->contexts->load() > 0) note(k_bad_late_timestamp);
  cupti().timestamp = function;
  return kSuccess;
}

// The real one crashes the program, then or at the next launch.
static void check_switch(std::uint32_t kind, bool on) {
  CuptiState& state = cupti();
  const bool node_by_node = state.graph_trace_before && !state.kinds[kGraphTrace];  // what kernels are switched for
  const bool of_graphs = kind == kGraphTrace || (node_by_node && (kind == kConcurrentKernel || kind == kMemcpy));
  if (!of_graphs || state.kinds[kind] == on || state.driver == nullptr) return;
  if (state.driver->graph_in_flight()) note(k_bad_switch_in_flight);
}

FAKE_EXPORT int cuptiActivityEnable(std::uint32_t kind) {
  BEGIN_CALL();
  if (kind < kActivityKinds) check_switch(kind, true);
  CuptiState& state = cupti();
  if (kind >= kActivityKinds) return kInvalidKind;
  if (kind == kGraphTrace && !state.graph_trace_before && state.driver != nullptr && state.driver->execs->load() > 0) {
    note(k_bad_late_graph_trace);  // the real one crashes at the next launch of a graph
  }
  if (kind == kGraphTrace) state.graph_trace_before = true;
  state.kinds[kind] = true;
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityDisable(std::uint32_t kind) {
  BEGIN_CALL();
  if (kind >= kActivityKinds) return kInvalidKind;
  check_switch(kind, false);
  cupti().kinds[kind] = false;
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityEnableDriverApi(std::uint32_t, std::uint8_t) {
  BEGIN_CALL();
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityEnableRuntimeApi(std::uint32_t, std::uint8_t) {
  BEGIN_CALL();
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityEnableAllSyncRecords(std::uint8_t) {
  BEGIN_CALL();
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityEnableAllocationSource(std::uint8_t) {
  BEGIN_CALL();
  return kSuccess;
}

FAKE_EXPORT int cuptiActivitySetAttribute(int attribute, std::size_t* bytes, void* value) {
  BEGIN_CALL();
  if (attribute > 10 || bytes == nullptr || value == nullptr) return kInvalidParameter;
  return attribute == 3 || attribute == 4 || attribute == 7 ? kNotSupported : kSuccess;
}

FAKE_EXPORT int cuptiActivityGetAttribute(int, std::size_t* bytes, void* value) {
  BEGIN_CALL();
  std::memset(value, 0, *bytes);
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityFlushPeriod(std::uint32_t) {
  BEGIN_CALL();
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityFlushAll(std::uint32_t flag) {
  BEGIN_CALL();
  if (cupti().requested == nullptr) return kInvalidOperation;
  flush((flag & 1) != 0);
  return kSuccess;
}

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  BEGIN_CALL();
  *dropped = cupti().dropped;
  note(k_dropped_told, cupti().dropped);
  cupti().dropped = 0;
  return kSuccess;
}

// Without the lock, as the real one: any thread may walk its buffer at any time.
FAKE_EXPORT int cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, std::uint8_t** record) {
  if (const int error = begin_call(__func__); error != kSuccess) return error;
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    std::uint32_t kind;
    std::memcpy(&kind, *record, sizeof(kind));
    if (record_bytes(kind) == 0) return kInvalidKind;
    next = *record + record_bytes(kind);
  }
  if (next + 8 > buffer + valid_bytes) return kMaxLimitReached;
  std::uint32_t kind;
  std::memcpy(&kind, next, sizeof(kind));
  if (record_bytes(kind) == 0) return kind == 0 ? kMaxLimitReached : kInvalidKind;
  *record = next;
  return kSuccess;
}

FAKE_EXPORT int cuptiGetTimestamp(std::uint64_t* now) {
  BEGIN_CALL();
  return *now = timestamp_ns(), kSuccess;
}

FAKE_EXPORT int cuptiGetContextId(void* context, std::uint32_t* id) {
  BEGIN_CALL();
  return *id = static_cast<Context*>(context)->id, kSuccess;
}

FAKE_EXPORT int cuptiGetDeviceId(void* context, std::uint32_t* id) {
  BEGIN_CALL();
  return *id = static_cast<std::uint32_t>(static_cast<Context*>(context)->device), kSuccess;
}

FAKE_EXPORT int cuptiGetStreamIdEx(void*, void* stream, std::uint8_t, std::uint32_t* id) {
  BEGIN_CALL();
  return *id = stream != nullptr ? static_cast<Stream*>(stream)->id : 0, kSuccess;
}

FAKE_EXPORT int cuptiGetGraphId(void* graph, std::uint32_t* id) {
  BEGIN_CALL();
  if (graph == nullptr) return kInvalidParameter;
  return *id = static_cast<Graph*>(graph)->id, kSuccess;
}

FAKE_EXPORT int cuptiGetGraphExecId(void* exec, std::uint32_t* id) {
  BEGIN_CALL();
  if (exec == nullptr) return kInvalidParameter;
  return *id = static_cast<Exec*>(exec)->id, kSuccess;
}

FAKE_EXPORT int cuptiGetGraphNodeId(void* node, std::uint64_t* id) {
  BEGIN_CALL();
  if (node == nullptr) return kInvalidParameter;
  return *id = static_cast<Node*>(node)->id, kSuccess;
}

FAKE_EXPORT int cuptiFinalize() {
  BEGIN_CALL();
  note(k_finalized);
  return kSuccess;
}
