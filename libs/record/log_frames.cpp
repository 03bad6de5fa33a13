#include "record/log_frames.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "host/stacks/elf.h"
#include "host/stacks/module.h"

namespace llmprof::record {
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
