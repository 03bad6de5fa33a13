#pragma once
// Size and checksum of a file, as run.json keeps them.

#include <cstdint>
#include <string>

#include "base/result.h"

namespace llmprof::trace {

struct FileStamp {
  std::int64_t bytes = 0;
  std::uint32_t crc32c = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

Result<FileStamp> stamp_file(const std::string& path);

}  // namespace llmprof::trace
