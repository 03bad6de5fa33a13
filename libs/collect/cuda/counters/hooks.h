#pragma once
// Where the rest of the collector tells the counters what the program does. Everything returns at once while nothing
// is to be counted.

#include <cstdint>

#include "collect/cuda/cupti_abi.h"
#include "wire/format.h"

namespace llmprof::collect::counters {

// Inside cuInit, after the subscription: reads the plan. Whether kernels may be recorded as activity (not with stalls
// only).
bool start();

// A thread opens or closes a range; before its time is taken, after its time was taken.
void range_opens(wire::StringId name);
void range_closes();

// Around a driver call that gives the device work.
void launch_begins(const cupti::CallbackData& data, wire::LaunchOp op);
void launch_ended(const cupti::CallbackData& data, wire::LaunchOp op);

// Captures of streams: no profiler may be called while one is under way, anywhere in the process.
void capture_begins();
void capture_ended();
bool capture_is_open();

// Once in a period of the GPU thread: what can be read without disturbing.
void look();
// The process ends: what was measured is read, and CUPTI's profilers are left alone from here on.
void finish();

}  // namespace llmprof::collect::counters
