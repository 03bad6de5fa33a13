#pragma once
// Which kinds of activity and which callbacks are on, and switching them.

#include <cstdint>

#include "collect/cuda/cupti_abi.h"

namespace llmprof::collect {

// The kinds of activity that are what a device did, graphs as a whole apart: those have rules of their own.
inline constexpr std::uint32_t kDeviceWork[] = {cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemcpyPeer,
                                                cupti::kMemset};

// Inside cuInit: everything that was asked for, or as little as possible if the program decides when to record.
// `kernels`: whether kernels and graphs may be.
void start_recording(bool kernels);

// Makes it so, now, on this thread. One thread at a time does the switching; another one's wish is fulfilled by it.
void apply_recording(bool on);

void fulfil_wish();  // of set_gpu_recording()
bool is_recording();
bool records_kernels();

// After another client has ended: what it may have taken or switched off.
void resume_recording();

// The callbacks for buffers are ours again.
bool register_buffers();

}  // namespace llmprof::collect
