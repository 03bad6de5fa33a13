#pragma once
// What collectors say about losses of GPU capture, in words.

#include <cstdint>
#include <string>

namespace llmprof::record {

// The detail of wire::LossKind::kCuptiError: "cuptiActivityEnable failed with error 15 (not initialised)".
std::string cupti_error_text(std::uint64_t detail);

// The same of wire::LossKind::kCountersFailed: a call of CUPTI's profilers.
std::string profiler_error_text(std::uint64_t detail);

}  // namespace llmprof::record
