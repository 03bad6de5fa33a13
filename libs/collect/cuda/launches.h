#pragma once
// CUDA calls as the program makes them, on its threads: launches, allocations, waits. Called by CUPTI around each call.

#include "collect/cuda/cupti_abi.h"

namespace llmprof::collect {

void on_driver_call(std::uint32_t id, const cupti::CallbackData& data);
void on_runtime_call(const cupti::CallbackData& data);  // only when all API calls are recorded

}  // namespace llmprof::collect
