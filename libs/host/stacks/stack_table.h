#pragma once
// Frames and stacks that were seen, numbered and written to the log at their first use. Stacks share their outer parts.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/host_log.h"
#include "host/stacks/module.h"
#include "host/stacks/python_process.h"

namespace llmprof::host {

class StackTable {
 public:
  explicit StackTable(HostLog& log) : log_(log) {}

  std::uint32_t native(const Module& module, const NativeFunction& function);
  std::uint32_t python(const PythonFrame& frame);
  std::uint32_t other(wire::FrameKind kind, std::string_view name);

  // Frames innermost first. 0 for an empty stack, or when there are too many different ones.
  std::uint32_t stack(std::span<const std::uint32_t> frames);

 private:
  std::uint32_t define(wire::FrameKind kind, std::string_view function, std::string_view file, std::uint32_t line);

  HostLog& log_;
  std::unordered_map<const NativeFunction*, std::uint32_t> native_;
  std::map<std::string, std::uint32_t, std::less<>> by_text_;
  std::string key_;
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;  // parent and frame
  std::uint32_t frames_ = 0;
};

}  // namespace llmprof::host
