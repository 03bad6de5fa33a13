#pragma once
// Which kinds of activity and which callbacks are on, and switching them.

#include <cstdint>

namespace llmprof::collect {

// Inside cuInit: everything that was asked for, or as little as possible if the program decides when to record.
void start_recording();

// Makes it so, now, on this thread. One thread at a time does the switching; another one's wish is fulfilled by it.
void apply_recording(bool on);

void fulfil_wish();  // of set_gpu_recording()
bool is_recording();

// After another client has ended: what it may have taken or switched off.
void resume_recording();

// The callbacks for buffers are ours again.
bool register_buffers();

// Whether work that began at this time on the device was to be recorded.
bool was_recording(std::uint64_t begin_ns);

}  // namespace llmprof::collect
