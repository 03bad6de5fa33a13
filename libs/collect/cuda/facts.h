#pragma once
// What is said about the collection itself: devices, notes, gaps. Few, from any thread, and in every log of the
// process.

#include "wire/format.h"

namespace llmprof::collect {

// A kDevice, kNote or kGap record. The first 128 are kept.
void state_fact(const wire::Record& record);

// A kNote.
void note(const char* subject, const char* text);

}  // namespace llmprof::collect
