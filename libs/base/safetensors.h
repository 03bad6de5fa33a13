#pragma once
// The header of .safetensors files: eight bytes of length, a JSON header, then the tensors without gaps. The file is a
// stranger's: every rule of the format is checked before anything is allocated from it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/regular_file.h"
#include "base/result.h"

namespace llmprof::base {

struct SafetensorsEntry {
  std::string name;
  std::string type;  // "F32", "BF16", …; unknown ones are kept, their size is what the offsets say
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes in the data part
  std::int64_t count() const;        // product of the shape; checked not to overflow
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // sorted by offset
  std::uint64_t data_offset = 0;          // where the data part begins in the file
};

inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
inline constexpr std::size_t kMostSafetensors = 1'000'000;

// Reads the header only, never the data; offsets are checked against the size of the file. Errors name the tensor and
// the rule.
Result<SafetensorsHeader> read_safetensors_header(const RegularFile& file);

// The header's entries, sorted by offset. `data_bytes`: what follows the header.
Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes,
                                                               std::string_view where,
                                                               std::size_t most_tensors = kMostSafetensors);

}  // namespace llmprof::base
