#pragma once
// CUPTI, found at run time: one table of its functions. A copy that the program has loaded already comes first, since a
// second instance in one process would compete with it.

#include "collect/cuda/cupti_abi.h"
#include "wire/cupti_calls.h"

namespace llmprof::collect::cupti {

using Call = wire::CuptiCall;

// One row a function: member, its row in wire/cupti_calls.h, whether we need it, what it is given.
#define LLMPROF_CUPTI_FUNCTIONS(X)                                                              \
  X(get_version, kGetVersion, true, std::uint32_t*)                                             \
  X(subscribe, kSubscribe, true, void**, Callback, void*)                                       \
  X(enable_callback, kEnableCallback, true, std::uint32_t, void*, std::uint32_t, std::uint32_t) \
  X(activity_enable, kActivityEnable, true, std::uint32_t)                                      \
  X(activity_disable, kActivityDisable, true, std::uint32_t)                                    \
  X(register_callbacks, kRegisterCallbacks, true, BufferRequested, BufferCompleted)             \
  X(get_next_record, kGetNextRecord, true, std::uint8_t*, std::size_t, Activity**)              \
  X(flush_all, kFlushAll, true, std::uint32_t)                                                  \
  X(subscribe_named, kSubscribeNamed, false, void**, Callback, void*, SubscriberParams*)        \
  X(register_timestamp, kRegisterTimestamp, false, Timestamp)                                   \
  X(set_attribute, kSetAttribute, false, std::uint32_t, std::size_t*, void*)                    \
  X(get_dropped, kGetDropped, false, void*, std::uint32_t, std::size_t*)                        \
  X(get_graph_node_id, kGetGraphNodeId, false, void*, std::uint64_t*)                           \
  X(get_graph_exec_id, kGetGraphExecId, false, void*, std::uint32_t*)                           \
  X(get_graph_id, kGetGraphId, false, void*, std::uint32_t*)                                    \
  X(get_device_id, kGetDeviceId, false, void*, std::uint32_t*)                                  \
  X(enable_domain, kEnableDomain, false, std::uint32_t, void*, std::uint32_t)

struct Library {
#define LLMPROF_CUPTI_MEMBER(member, call, needed, ...) Result (*member)(__VA_ARGS__);
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
