#pragma once
// The functions of CUPTI that are called, by names that CUDA 12 and 13 export.

#include <cupti.h>

#include <cstddef>

#include "base/dynlib.h"

namespace llmprof::bench::cuda {

// clang-format off
#define LLMPROF_CUPTI_CALLS(X) \
  X(version, cuptiGetVersion) X(result_string, cuptiGetResultString) X(subscribe, cuptiSubscribe) \
  X(register_callbacks, cuptiActivityRegisterCallbacks) X(enable, cuptiActivityEnable) \
  X(disable, cuptiActivityDisable) X(flush_all, cuptiActivityFlushAll) X(next_record, cuptiActivityGetNextRecord) \
  X(dropped, cuptiActivityGetNumDroppedRecords) X(set_attribute, cuptiActivitySetAttribute, base::Need::kOptional)
// clang-format on
LLMPROF_API(CuptiApi, LLMPROF_CUPTI_CALLS)

// What is read of a record: the beginning of its kind's struct, the same in every version since CUDA 11. Newer versions
// append. So records are read through these, wherever the library comes from.
using KernelRecord = CUpti_ActivityKernel4;
using MemcpyRecord = CUpti_ActivityMemcpy3;
using MemsetRecord = CUpti_ActivityMemset2;

template <class Old, class New>
constexpr bool same_times() {
  return offsetof(Old, start) == offsetof(New, start) && offsetof(Old, end) == offsetof(New, end) &&
         offsetof(Old, correlationId) == offsetof(New, correlationId);
}
static_assert(same_times<KernelRecord, CUpti_ActivityKernel9>() && same_times<MemcpyRecord, CUpti_ActivityMemcpy5>() &&
              same_times<MemsetRecord, CUpti_ActivityMemset4>());
static_assert(offsetof(KernelRecord, name) == offsetof(CUpti_ActivityKernel9, name));
#if CUPTI_API_VERSION >= 130000
static_assert(same_times<KernelRecord, CUpti_ActivityKernel10>() && same_times<MemcpyRecord, CUpti_ActivityMemcpy6>());
static_assert(offsetof(KernelRecord, name) == offsetof(CUpti_ActivityKernel10, name));
#endif

}  // namespace llmprof::bench::cuda
