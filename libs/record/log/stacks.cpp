#include "record/log/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "host/stacks/elf.h"
#include "host/stacks/module.h"
#include "record/log/ingest.h"

namespace llmprof::record {

LogStacks::LogStacks(RunRows& rows, LogNames& names) : rows_(rows), names_(names) {
  constexpr const char* kKinds[] = {"native", "python", "kernel", "unknown"};
  for (std::size_t i = 0; i < std::size(kinds_); ++i) kinds_[i] = rows.writer.strings().intern(kKinds[i]);
}

void LogStacks::next_log() {
  frames_.clear();
  stacks_.clear();
}

void LogStacks::take(const wire::FrameRecord& record) {
  if (frames_.size() >= kMost) return;
  Frame frame;
  frame.row.kind = kinds_[std::min<std::size_t>(static_cast<std::size_t>(record.kind), 3)];
  frame.row.function = names_.name(record.function);
  frame.row.file = names_.name(record.file);
  if (record.line != 0) frame.row.line = static_cast<std::int32_t>(std::min<std::uint32_t>(record.line, INT32_MAX));
  frame.offset = record.offset;
  frames_[record.id] = frame;
}

// Only what leads to known frames is kept: the definitions of a stack stand before it, so it cannot lead to itself.
void LogStacks::take(const wire::StackRecord& record) {
  if (stacks_.size() >= kMost) return;
  const bool known = frames_.contains(record.frame) && (record.parent == 0 || stacks_.contains(record.parent));
  if (!known || record.id == record.parent || record.id == 0 || stacks_.contains(record.id)) return;
  const std::uint32_t depth = record.parent == 0 ? 1 : stacks_[record.parent].depth + 1;
  if (depth <= kDeepest) stacks_[record.id] = {record.parent, record.frame, depth};
}

trace::Id LogStacks::frame_id(Frame& frame) {
  if (frame.id == 0) frame.id = rows_.frames.id(frame.row, frame.offset, rows_.next_id);
  return frame.id;
}

// A number for the stack that is the same whenever a log defines it again. Outermost first, without recursion.
trace::Id LogStacks::place_of(std::uint32_t number) {
  std::vector<Stack*> path;
  for (std::uint32_t at = number; at != 0; at = path.back()->parent) {
    path.push_back(&stacks_[at]);
    if (path.back()->place != 0) break;
  }
  trace::Id place = path.back()->place;
  for (auto stack = path.rbegin(); stack != path.rend(); ++stack) {
    if ((*stack)->place == 0) {
      const std::pair<trace::Id, trace::Id> key{place, frame_id(frames_[(*stack)->frame])};
      const auto [found, added] = places_.try_emplace(key, static_cast<trace::Id>(places_.size() + 1));
      (*stack)->place = found->second;
    }
    place = (*stack)->place;
  }
  return place;
}

trace::Id LogStacks::write(std::uint32_t number, trace::Id place) {
  const trace::Id id = rows_.next_id++;
  written_.emplace(place, id);
  std::int32_t depth = 0;
  for (std::uint32_t at = number; at != 0; at = stacks_[at].parent) {
    rows_.writer.add(trace::StackRow{id, depth++, frame_id(frames_[stacks_[at].frame])});
  }
  return id;
}

trace::OptionalId LogStacks::id(std::uint32_t number) {
  if (number == 0) return {};
  const auto found = stacks_.find(number);
  if (found == stacks_.end() || places_.size() >= kMost) {
    ++lost_;
    return {};
  }
  Stack& stack = found->second;
  if (stack.id != 0) return stack.id;
  const trace::Id place = place_of(number);
  const auto written = written_.find(place);
  return stack.id = written != written_.end() ? written->second : write(number, place);
}

namespace {

// The functions of the files that frames are in, each read once.
class Files {
 public:
  std::optional<std::string> function(const std::string& path, std::uint64_t offset) {
    const auto [found, first] = files_.try_emplace(path);
    File& file = found->second;
    if (first && files_.size() <= kMostFiles) open(file, path);
    if (file.symbols == nullptr) return std::nullopt;
    const auto place = file.symbols->containing(offset);
    if (!place) return std::nullopt;
    return host::readable_function(place->name);
  }

 private:
  static constexpr std::size_t kMostFiles = 4096;
  struct File {
    std::optional<host::ElfFile> elf;
    std::unique_ptr<host::Symbols> symbols;
  };

  static void open(File& file, const std::string& path) {
    auto bytes = host::open_file(path, 0);
    if (bytes == nullptr) return;
    file.elf = host::ElfFile::parse(std::move(bytes));
    if (file.elf) file.symbols = std::make_unique<host::Symbols>(*file.elf);
  }

  std::map<std::string, File> files_;
};

}  // namespace

trace::Id LogFrames::id(trace::FrameRow row, std::uint64_t offset, trace::Id& next_id) {
  const Key key{row.kind.id, row.function.id, row.file.id, row.line.value_or(0), offset};
  const auto found = ids_.find(key);
  if (found != ids_.end()) return found->second;
  if (frames_.size() == kMost) return 0;
  row.id = next_id++;
  frames_.push_back({row, offset});
  ids_.emplace(key, row.id);
  return row.id;
}

void LogFrames::finish(trace::RunWriter& writer, bool open_files) {
  Files files;
  for (Frame& frame : frames_) {
    if (frame.row.function.id == 0 && frame.offset != 0) {
      std::optional<std::string> function;
      if (open_files) function = files.function(std::string(writer.strings().text(frame.row.file)), frame.offset);
      frame.row.function = writer.strings().intern(function ? *function : fmt::format("{:#x}", frame.offset));
    }
    writer.add(frame.row);
  }
  frames_.clear();
  ids_.clear();
}

}  // namespace llmprof::record
