#pragma once
// CUPTI, found at run time: one table of its functions. A copy that the program has loaded already comes first, since a
// second instance in one process would compete with it.

#include "collect/cuda/cupti_abi.h"

namespace llmprof::collect::cupti {

// Which function a failure is of: the upper half of a kCuptiError detail. Stored in files: never renumber.
enum class Call : std::uint32_t {
  kNone = 0,
  kGetVersion = 1,
  kSubscribe = 2,
  kEnableCallback = 3,
  kActivityEnable = 4,
  kActivityDisable = 5,
  kRegisterCallbacks = 6,
  kGetNextRecord = 7,
  kFlushAll = 8,
  kRegisterTimestamp = 9,
  kSetAttribute = 10,
  kGetDropped = 11,
  kGetGraphNodeId = 12,
  kGetGraphExecId = 13,
  kGetGraphId = 14,
  kGetDeviceId = 15,
  kEnableDomain = 16,
  kFatal = 17,       // CUPTI itself said so
  kBufferPool = 18,  // no call: there was no memory for buffers; the number is an errno
};
const char* name_of(Call call);

// One row a function: member, its name in the library, whether we can do without it.
#define LLMPROF_CUPTI_FUNCTIONS(X)                                                                    \
  X(get_version, "cuptiGetVersion", true, std::uint32_t*)                                             \
  X(subscribe, "cuptiSubscribe", true, void**, Callback, void*)                                       \
  X(enable_callback, "cuptiEnableCallback", true, std::uint32_t, void*, std::uint32_t, std::uint32_t) \
  X(activity_enable, "cuptiActivityEnable", true, std::uint32_t)                                      \
  X(activity_disable, "cuptiActivityDisable", true, std::uint32_t)                                    \
  X(register_callbacks, "cuptiActivityRegisterCallbacks", true, BufferRequested, BufferCompleted)     \
  X(get_next_record, "cuptiActivityGetNextRecord", true, std::uint8_t*, std::size_t, Activity**)      \
  X(flush_all, "cuptiActivityFlushAll", true, std::uint32_t)                                          \
  X(subscribe_named, "cuptiSubscribe_v2", false, void**, Callback, void*, SubscriberParams*)          \
  X(register_timestamp, "cuptiActivityRegisterTimestampCallback", false, Timestamp)                   \
  X(set_attribute, "cuptiActivitySetAttribute", false, std::uint32_t, std::size_t*, void*)            \
  X(get_dropped, "cuptiActivityGetNumDroppedRecords", false, void*, std::uint32_t, std::size_t*)      \
  X(get_graph_node_id, "cuptiGetGraphNodeId", false, void*, std::uint64_t*)                           \
  X(get_graph_exec_id, "cuptiGetGraphExecId", false, void*, std::uint32_t*)                           \
  X(get_graph_id, "cuptiGetGraphId", false, void*, std::uint32_t*)                                    \
  X(get_device_id, "cuptiGetDeviceId", false, void*, std::uint32_t*)                                  \
  X(enable_domain, "cuptiEnableDomain", false, std::uint32_t, void*, std::uint32_t)

struct Library {
#define LLMPROF_CUPTI_MEMBER(member, name, needed, ...) Result (*member)(__VA_ARGS__);
  LLMPROF_CUPTI_FUNCTIONS(LLMPROF_CUPTI_MEMBER)
#undef LLMPROF_CUPTI_MEMBER
  std::uint32_t version;
  void* handle;            // for functions that not everybody needs
  char path[512];          // where it came from
  std::uintptr_t address;  // of one of its functions
};

inline constexpr std::size_t kTriedBytes = 640;

// Fills `library` with the first usable copy. False: none; `tried` says what there was, in words.
bool find_library(Library* library, char (&tried)[kTriedBytes]);

// How many copies the process has loaded; the path of one that is not `library`, if there is one.
std::uint32_t count_copies(const Library& library, char (&other)[512]);

// Whether `path` names a CUPTI library: libcupti.so, libcupti.so.13, libcupti.so.2025.3.0.
bool is_cupti(const char* path);

}  // namespace llmprof::collect::cupti
