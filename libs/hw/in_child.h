#pragma once
// Asking something that may hang, such as a driver: in a child process, which is left alone when it takes too long.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::hw {

// The text that `work` returns, at most 1 MiB of it. kUnsupported: it did not return within `patience`, or died.
Result<std::string> in_child(const std::function<std::string()>& work, std::chrono::milliseconds patience);

// Can a shared library be loaded? Tried in a short-lived child process: constructors of foreign libraries never run in
// ours, and one that hangs costs a time-out. Call while this process has one thread.

struct LibraryProbe {
  bool loaded = false;
  std::string detail;  // what `ask` answered; if not loaded, the loader's reason
};

// `ask` gets the handle and may call into the library for its version; may be null.
LibraryProbe probe_library(const std::string& path, std::string (*ask)(void* handle) = nullptr);

}  // namespace llmprof::hw
