#pragma once
// The Python interpreters of this machine that llmprof can read: those named in LLMPROF_TEST_PYTHONS (joined by ':'),
// or those found in the usual places.

#include <string>
#include <vector>

namespace llmprof::host::testing {

std::vector<std::string> supported_pythons();     // from outside
std::vector<std::string> launch_stack_pythons();  // from within, by the collector
std::vector<std::string> older_pythons();         // not at all

}  // namespace llmprof::host::testing
