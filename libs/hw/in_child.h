#pragma once
// Asking something that may hang, such as a driver: in a child process, which is left alone when it takes too long.

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"

namespace llmprof::hw {

// The text that `work` returns, at most 1 MiB of it. kUnsupported: it did not return within `patience`, or died.
Result<std::string> in_child(const std::function<std::string()>& work, std::chrono::milliseconds patience);

}  // namespace llmprof::hw
