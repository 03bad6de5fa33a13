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

bool fulfil_wish();  // of set_gpu_recording(), and what could not be done at once. False: not yet
bool is_recording();
bool records_kernels();

// Sampling of kernels (kernel_sampling.h). At the begin of a launch, on its thread: its number, 0 where all are
// recorded.
std::uint16_t kernel_launch_begins(const cupti::CallbackData& data, std::uint64_t now_ns);
bool notes_kernels();  // they are noted only, at the moment
// By our thread, every period: so many launches were made in it, and that long it was.
void look_at_kernels(std::uint32_t launches, std::uint64_t period_ms);
// All are recorded from now on.
void record_all_kernels(const char* why);
void finish_kernels();  // says why they were all recorded, if they were to be sampled

// After another client has ended: what it may have taken or switched off.
void resume_recording();

// The callbacks for buffers are ours again.
bool register_buffers();

}  // namespace llmprof::collect
