#include "host/stacks/stack_table.h"

namespace llmprof::host {
namespace {

// Bounds for hour-long recordings of programs that never repeat themselves: about 100 MB.
constexpr std::size_t kMaxDistinctFrames = 262144, kMaxStacks = 1 << 20;

}  // namespace

std::uint32_t StackTable::define(wire::FrameKind kind, std::string_view function, std::string_view file,
                                 std::uint32_t line) {
  if (frames_ >= kMaxDistinctFrames) return 0;
  wire::Record record = HostLog::make(wire::RecordKind::kFrame);
  record.frame = {++frames_, log_.name(function), log_.name(file), line, kind, 0};
  log_.add(record);
  return frames_;
}

std::uint32_t StackTable::native(const Module& module, const NativeFunction& function) {
  const auto known = native_.find(&function);
  if (known != native_.end()) return known->second;
  return native_[&function] = define(wire::FrameKind::kNative, function.name, module.path(), 0);
}

std::uint32_t StackTable::python(const PythonFrame& frame) {
  key_.assign(frame.function).append(1, '\0').append(frame.file).append(1, '\0').append(std::to_string(frame.line));
  const auto known = by_text_.find(key_);
  if (known != by_text_.end()) return known->second;
  return by_text_[key_] = define(wire::FrameKind::kPython, frame.function, frame.file, frame.line);
}

std::uint32_t StackTable::other(wire::FrameKind kind, std::string_view name) {
  const auto known = by_text_.find(name);
  if (known != by_text_.end()) return known->second;
  return by_text_[std::string(name)] = define(kind, name, "", 0);
}

std::uint32_t StackTable::stack(std::span<const std::uint32_t> frames) {
  std::uint32_t parent = 0;
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (frames[i] == 0) return 0;
    const std::uint64_t key = std::uint64_t{parent} << 32 | frames[i];
    const auto known = stacks_.find(key);
    if (known != stacks_.end()) {
      parent = known->second;
      continue;
    }
    if (stacks_.size() >= kMaxStacks) return 0;
    const auto id = static_cast<std::uint32_t>(stacks_.size() + 1);
    wire::Record record = HostLog::make(wire::RecordKind::kStack);
    record.stack = {id, parent, frames[i]};
    log_.add(record);
    parent = stacks_[key] = id;
  }
  return parent;
}

}  // namespace llmprof::host
