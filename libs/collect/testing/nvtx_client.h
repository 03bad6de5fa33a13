#pragma once
// The NVTX C interface for test clients: the real header where LLMPROF_REAL_NVTX3 says so, else the same names with the
// injection handshake written out here. The clients are built both ways, so that a machine without the CUDA headers
// tests the same scenarios.

#if LLMPROF_REAL_NVTX3

#include <nvtx3/nvToolsExt.h>

#else

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

#include "collect/nvtx_abi.h"

enum { NVTX_VERSION = 3, NVTX_MESSAGE_TYPE_ASCII = 1, NVTX_MESSAGE_TYPE_UNICODE = 2, NVTX_MESSAGE_TYPE_REGISTERED = 3 };
enum {
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
  NVTX_PAYLOAD_TYPE_INT64 = 2,
  NVTX_PAYLOAD_TYPE_DOUBLE = 3,
  NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4,
  NVTX_PAYLOAD_TYPE_INT32 = 5,
  NVTX_PAYLOAD_TYPE_FLOAT = 6
};
using nvtxDomainHandle_t = llmprof::collect::nvtx::Domain;
using nvtxStringHandle_t = llmprof::collect::nvtx::String;
using nvtxRangeId_t = std::uint64_t;

struct nvtxEventAttributes_t {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t colorType;
  std::uint32_t color;
  std::int32_t payloadType, reserved0;
  union {
    std::uint64_t ullValue;
    std::int64_t llValue;
    double dValue;
    std::uint32_t uiValue;
    std::int32_t iValue;
    float fValue;
  } payload;
  std::int32_t messageType;
  union {
    const char* ascii;
    const wchar_t* unicode;
    nvtxStringHandle_t registered;
  } message;
};
static_assert(sizeof(nvtxEventAttributes_t) == 48);
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE static_cast<std::uint16_t>(sizeof(nvtxEventAttributes_t))

namespace nvtx_client {

using namespace llmprof::collect;

inline nvtx::Function core[nvtx::kCoreSize], core2[nvtx::kCore2Size];
inline nvtx::Function* core_table[nvtx::kCoreSize];
inline nvtx::Function* core2_table[nvtx::kCore2Size];

inline int get_table(nvtx::Module module, nvtx::FunctionTable* table, unsigned int* size) {
  for (unsigned i = 0; i < nvtx::kCoreSize; ++i) core_table[i] = &core[i];
  for (unsigned i = 0; i < nvtx::kCore2Size; ++i) core2_table[i] = &core2[i];
  if (module != nvtx::kCore && module != nvtx::kCore2) return 0;
  *table = module == nvtx::kCore ? core_table : core2_table;
  *size = module == nvtx::kCore ? unsigned{nvtx::kCoreSize} : unsigned{nvtx::kCore2Size};
  return 1;
}

inline const void* get_export_table(std::uint32_t id) {
  static const nvtx::CallbackTable callbacks{sizeof(nvtx::CallbackTable), get_table};
  return id == nvtx::kCallbacks ? &callbacks : nullptr;
}

inline bool initialize() {
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_LAZY) : nullptr;
  if (library == nullptr) return false;
  const auto entry = reinterpret_cast<int (*)(nvtx::GetExportTable)>(dlsym(library, "InitializeInjectionNvtx2"));
  return entry != nullptr && entry(get_export_table) == 1;
}

inline bool ready() {
  static const bool answer = initialize();
  return answer;
}

template <class Result, class... Arguments>
Result call(nvtx::Function (&table)[16], std::uint32_t callback, Arguments... arguments) {
  static_assert(nvtx::kCoreSize == 16 && nvtx::kCore2Size == 16);
  using Function = Result (*)(Arguments...);
  if (!ready() || table[callback] == nullptr) return Result();
  return reinterpret_cast<Function>(table[callback])(arguments...);
}

}  // namespace nvtx_client

#define CORE(result, callback, ...) \
  return nvtx_client::call<result>(nvtx_client::core, llmprof::collect::nvtx::callback __VA_OPT__(, ) __VA_ARGS__)
#define CORE2(result, callback, ...) \
  return nvtx_client::call<result>(nvtx_client::core2, llmprof::collect::nvtx::callback __VA_OPT__(, ) __VA_ARGS__)
using EventPointer = const nvtxEventAttributes_t*;
inline void nvtxMarkEx(EventPointer e) { CORE(void, kMarkEx, e); }
inline void nvtxMarkA(const char* s) { CORE(void, kMarkA, s); }
inline void nvtxMarkW(const wchar_t* s) { CORE(void, kMarkW, s); }
inline nvtxRangeId_t nvtxRangeStartEx(EventPointer e) { CORE(nvtxRangeId_t, kRangeStartEx, e); }
inline nvtxRangeId_t nvtxRangeStartA(const char* s) { CORE(nvtxRangeId_t, kRangeStartA, s); }
inline nvtxRangeId_t nvtxRangeStartW(const wchar_t* s) { CORE(nvtxRangeId_t, kRangeStartW, s); }
inline void nvtxRangeEnd(nvtxRangeId_t id) { CORE(void, kRangeEnd, id); }
inline int nvtxRangePushEx(EventPointer e) { CORE(int, kRangePushEx, e); }
inline int nvtxRangePushA(const char* s) { CORE(int, kRangePushA, s); }
inline int nvtxRangePushW(const wchar_t* s) { CORE(int, kRangePushW, s); }
inline int nvtxRangePop() { CORE(int, kRangePop); }
inline void nvtxNameCategoryA(std::uint32_t c, const char* s) { CORE(void, kNameCategoryA, c, s); }
inline void nvtxNameCategoryW(std::uint32_t c, const wchar_t* s) { CORE(void, kNameCategoryW, c, s); }
inline void nvtxNameOsThreadA(std::uint32_t t, const char* s) { CORE(void, kNameOsThreadA, t, s); }
inline void nvtxDomainMarkEx(nvtxDomainHandle_t d, EventPointer e) { CORE2(void, kDomainMarkEx, d, e); }
inline nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t d, EventPointer e) {
  CORE2(nvtxRangeId_t, kDomainRangeStartEx, d, e);
}
inline void nvtxDomainRangeEnd(nvtxDomainHandle_t d, nvtxRangeId_t id) { CORE2(void, kDomainRangeEnd, d, id); }
inline int nvtxDomainRangePushEx(nvtxDomainHandle_t d, EventPointer e) { CORE2(int, kDomainRangePushEx, d, e); }
inline int nvtxDomainRangePop(nvtxDomainHandle_t d) { CORE2(int, kDomainRangePop, d); }
inline void nvtxDomainNameCategoryA(nvtxDomainHandle_t d, std::uint32_t c, const char* s) {
  CORE2(void, kDomainNameCategoryA, d, c, s);
}
inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t d, const char* s) {
  CORE2(nvtxStringHandle_t, kDomainRegisterStringA, d, s);
}
inline nvtxStringHandle_t nvtxDomainRegisterStringW(nvtxDomainHandle_t d, const wchar_t* s) {
  CORE2(nvtxStringHandle_t, kDomainRegisterStringW, d, s);
}
inline nvtxDomainHandle_t nvtxDomainCreateA(const char* s) { CORE2(nvtxDomainHandle_t, kDomainCreateA, s); }
inline nvtxDomainHandle_t nvtxDomainCreateW(const wchar_t* s) { CORE2(nvtxDomainHandle_t, kDomainCreateW, s); }
inline void nvtxDomainDestroy(nvtxDomainHandle_t d) { CORE2(void, kDomainDestroy, d); }
#undef CORE
#undef CORE2

#endif
