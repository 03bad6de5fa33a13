#pragma once
// What goes through the pipe between the counter child and its parent: a head, then text and values.

#include <string>
#include <string_view>

#include "record/counter_child.h"

namespace llmprof::record {

void append(std::string& bytes, const CounterEvent& event);
// The first event of `bytes`, which then begins behind it. False: there is no whole one (yet).
bool take(std::string_view& bytes, CounterEvent& event);

// The child's side, until it is told to stop.
void run_counter_child(const CounterChild::Open& open, const CounterPace& pace, int events, int orders);

}  // namespace llmprof::record
