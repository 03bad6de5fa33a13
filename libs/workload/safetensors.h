#pragma once
// Reads .safetensors files: eight bytes of header length, a JSON header, then the tensors without gaps. The file is a
// stranger's: every rule of the format is checked before anything is allocated from it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::workload {

struct SafetensorsEntry {
  std::string name;
  std::string type;  // "F32", "BF16", …; unknown ones are kept, and cannot be read
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes in the data part
  std::int64_t count() const;        // product of the shape; checked not to overflow
};

inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
inline constexpr std::size_t kMostTensors = 100'000;

// The header's entries, sorted by offset. `data_bytes`: what follows the header. Errors name the tensor and the rule.
Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes,
                                                               std::string_view where);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::string& path);
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  ~SafetensorsFile();

  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const SafetensorsEntry* find(std::string_view name) const;
  // Values as float: F32 as they are, F16 and BF16 widened. out: entry.count() floats.
  Result<void> read(const SafetensorsEntry& entry, float* out) const;

 private:
  SafetensorsFile() = default;
  std::string path_;
  int fd_ = -1;
  std::uint64_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace llmprof::workload
