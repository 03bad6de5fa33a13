#pragma once
// The part of the NVTX v3 injection interface that we use, declared here so that building needs no CUDA headers.
// nvtx_abi_test.cpp holds every value against the real headers where they are installed.

#include <cstddef>
#include <cstdint>

namespace llmprof::collect::nvtx {

enum ExportTable : std::uint32_t { kCallbacks = 1 };
enum Module : std::int32_t { kCore = 1, kCore2 = 5 };

enum CoreCallback : std::uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW,
  kCoreSize,
};

enum Core2Callback : std::uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kInitialize,
  kCore2Size,
};

using Function = void (*)();
using FunctionTable = Function**;  // an array of pointers to the client's function pointers

struct CallbackTable {
  std::size_t struct_size;
  int (*get_module_function_table)(Module module, FunctionTable* table, unsigned int* size);
};

using GetExportTable = const void* (*)(std::uint32_t table_id);

enum MessageType : std::int32_t { kNoMessage = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };
enum PayloadType : std::int32_t {
  kNoPayload = 0,
  kUint64 = 1,
  kInt64 = 2,
  kDouble = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat = 6
};

using Domain = struct DomainHandle*;
using String = struct StringHandle*;
using RangeId = std::uint64_t;
inline constexpr int kNoPushPopTracking = -2;

struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  union {
    std::uint64_t u64;
    std::int64_t i64;
    double f64;
    std::uint32_t u32;
    std::int32_t i32;
    float f32;
  } payload;
  std::int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* unicode;
    String registered;
  } message;
};

}  // namespace llmprof::collect::nvtx
