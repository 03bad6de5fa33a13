#include "trace/table_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/file.h"
#include "base/json.h"
#include "wire/primitives.h"

namespace llmprof::trace {
namespace {

using base::Json;

Error broken(std::string_view where, std::string_view what) {
  return Error{ErrorCode::kCorruptInput, fmt::format("{}: {}", where, what),
               "the run is damaged; record or import it again"};
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "kernel.parquet" or "kernel.12.parquet" for table "kernel", and nothing else: no folders, no dots, no links out.
bool is_part_name(std::string_view name, std::string_view table) {
  if (!name.starts_with(table)) return false;
  name.remove_prefix(table.size());
  if (!name.ends_with(".parquet")) return false;
  name.remove_suffix(8);
  return name.empty() || (name.front() == '.' && is_number(name.substr(1)));
}

// 0 or more, else -1.
std::int64_t count_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return -1;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) return -1;
  return std::max<std::int64_t>(-1, found->get<std::int64_t>());
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

bool parse_hex(const std::string& text, std::uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return text.size() == 8 && error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Json table_files_to_json(const std::vector<TableFile>& files) {
  Json out = Json::array();
  for (const TableFile& file : files) {
    out.push_back({{"table", file.table},
                   {"file", file.file},
                   {"rows", file.rows},
                   {"bytes", file.bytes},
                   {"crc32c", fmt::format("{:08x}", file.crc32c)}});
  }
  return out;
}

Result<std::vector<TableFile>> table_files_from_json(const Json& json, std::string_view prefix,
                                                     std::string_view where) {
  if (!json.is_array()) return broken(where, "files is not a list");
  std::vector<TableFile> files;
  for (const Json& entry : json) {
    if (!entry.is_object()) return broken(where, "an entry of files is not an object");
    TableFile file{text_of(entry, "table"), text_of(entry, "file"), count_of(entry, "rows"), count_of(entry, "bytes")};
    if (find_table(file.table) == nullptr) continue;  // of a newer llmprof with the same format version
    const std::string_view path = file.file;
    if (!path.starts_with(prefix) || !is_part_name(path.substr(prefix.size()), file.table)) {
      return broken(where, fmt::format("\"{}\" is not a file of table {}", file.file, file.table));
    }
    if (std::ranges::find(files, file.file, &TableFile::file) != files.end())
      return broken(where, file.file + " is listed twice");
    if (file.rows < 0 || file.bytes < 0) return broken(where, file.file + " has no row count or size");
    if (!parse_hex(text_of(entry, "crc32c"), file.crc32c)) return broken(where, file.file + " has no checksum");
    files.push_back(std::move(file));
  }
  return files;
}

std::string format_table_files(const std::vector<TableFile>& files) {
  return base::to_text(Json{{"format_version", kRunFormatVersion}, {"files", table_files_to_json(files)}});
}

Result<std::vector<TableFile>> parse_table_files(std::string_view text, std::string_view where) {
  LLMPROF_LET(const Json json, base::parse_json(text, where));
  if (!json.is_object() || count_of(json, "format_version") != kRunFormatVersion || !json.contains("files")) {
    return broken(where, "not a list of table files");
  }
  return table_files_from_json(json["files"], "", where);
}

Result<FileStamp> stamp_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return base::errno_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path, errno);
  struct stat info {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  void* bytes = regular && info.st_size > 0
                    ? ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0)
                    : MAP_FAILED;
  const int error = errno;
  ::close(fd);
  if (!regular) return Error{ErrorCode::kCorruptInput, path + ": not a regular file", ""};
  if (info.st_size == 0) return FileStamp{};
  if (bytes == MAP_FAILED) return base::errno_error(ErrorCode::kIo, path, error);
  const auto size = static_cast<std::size_t>(info.st_size);
  ::madvise(bytes, size, MADV_SEQUENTIAL);
  const FileStamp stamp{info.st_size, wire::crc32c(bytes, size)};
  ::munmap(bytes, size);
  return stamp;
}

Result<void> check_table_file(const std::string& folder, const TableFile& file) {
  const std::string path = folder + "/" + file.file;
  LLMPROF_LET(const FileStamp stamp, stamp_file(path));
  if (stamp.bytes != file.bytes) {
    return broken(path, fmt::format("has {} bytes, its list says {}", stamp.bytes, file.bytes));
  }
  if (stamp.crc32c != file.crc32c) return broken(path, "its bytes do not match their checksum");
  return {};
}

}  // namespace llmprof::trace
