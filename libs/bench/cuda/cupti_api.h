#pragma once
// The functions of CUPTI that are called, by names that CUDA 12 and 13 export.

#include <cupti.h>

#include <cstddef>

namespace llmprof::bench::cuda {

struct CuptiApi {
  CUptiResult (*version)(std::uint32_t*) = nullptr;
  CUptiResult (*result_string)(CUptiResult, const char**) = nullptr;
  CUptiResult (*subscribe)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) = nullptr;
  CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc) = nullptr;
  CUptiResult (*enable)(CUpti_ActivityKind) = nullptr;
  CUptiResult (*disable)(CUpti_ActivityKind) = nullptr;
  CUptiResult (*flush_all)(std::uint32_t) = nullptr;
  CUptiResult (*next_record)(std::uint8_t*, std::size_t, CUpti_Activity**) = nullptr;
  CUptiResult (*dropped)(CUcontext, std::uint32_t, std::size_t*) = nullptr;
  CUptiResult (*set_attribute)(CUpti_ActivityAttribute, std::size_t*, void*) = nullptr;  // optional
};

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
