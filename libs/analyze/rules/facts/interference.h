#pragma once
// Decode steps that had to wait for, or share the device with, the prefill of other requests.

#include <cstdint>
#include <vector>

#include "trace/run.h"

namespace llmprof::analyze {

struct InterferenceFacts {
  std::int64_t prefills = 0;     // steps of stage prefill or mixed
  std::int64_t intervals = 0;    // end to end of two steps of a thread that each make a token (decode, mixed)
  std::int64_t interrupted = 0;  // of these, the later step is mixed, or a prefill lay between or beside it
  std::int64_t clean_p50_ns = 0, interrupted_p50_ns = 0, p99_ns = 0;  // of the others; of these; of all
  std::int64_t all_ns = 0;                                            // of all intervals
  std::int64_t extra_ns = 0;                                          // of the interrupted ones, above clean_p50_ns
};

struct PassStep {  // one step of a thread; by thread and begin
  std::int64_t thread_id = 0, begin_ns = 0, end_ns = 0, batch = 0, context = 0;  // 0: unknown
  enum class Kind : std::uint8_t { kDecode, kMixed, kPrefill, kOther } kind = Kind::kOther;
};

InterferenceFacts interference_of(const std::vector<PassStep>& steps);
Result<InterferenceFacts> interference(const trace::Run& run);

}  // namespace llmprof::analyze
