#pragma once
// Can a shared library be loaded? Tried in a short-lived child process: constructors of foreign libraries never run in
// ours, and one that hangs costs a time-out. Call while this process has one thread.

#include <string>
#include <string_view>

namespace llmprof::hw {

struct LibraryProbe {
  bool loaded = false;
  std::string detail;  // what `ask` answered; if not loaded, the loader's reason
};

// `ask` gets the handle and may call into the library for its version; may be null.
LibraryProbe probe_library(const std::string& path, std::string (*ask)(void* handle) = nullptr);

}  // namespace llmprof::hw
