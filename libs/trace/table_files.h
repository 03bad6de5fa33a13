#pragma once
// The list of table files in run.json ("files") and in derived/<key>/index.json: written, read, checked.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "trace/run_info.h"
#include "trace/schema.h"

namespace llmprof::trace {

inline constexpr const char* kDerivedIndex = "index.json";

base::Json table_files_to_json(const std::vector<TableFile>& files);
// File names must be <prefix><known table>[.N].parquet and numbers in range; tables of newer versions are left out.
Result<std::vector<TableFile>> table_files_from_json(const base::Json& json, std::string_view prefix,
                                                     std::string_view where);

std::string format_table_files(const std::vector<TableFile>& files);
Result<std::vector<TableFile>> parse_table_files(std::string_view text, std::string_view where);

// Size and checksum of a file, as run.json keeps them.
struct FileStamp {
  std::int64_t bytes = 0;
  std::uint32_t crc32c = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

Result<FileStamp> stamp_file(const std::string& path);
// Sizes and checksums as listed.
Result<void> check_table_file(const std::string& folder, const TableFile& file);

}  // namespace llmprof::trace
