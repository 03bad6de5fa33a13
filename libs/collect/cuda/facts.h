#pragma once
// What is said about the collection itself: devices, notes, gaps. Few, from any thread, and in every log of the
// process.

#include "wire/format.h"

namespace llmprof::collect {

// A kDevice, kNote or kGap record. The first 4096 are kept, others counted.
void state_fact(const wire::Record& record);

// GPU activity between these times is missing.
void state_gap(std::uint64_t begin_ns, std::uint64_t end_ns, const char* why);

// A kNote.
void note(const char* subject, const char* text);

}  // namespace llmprof::collect
