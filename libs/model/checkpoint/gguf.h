#pragma once
// The header of GGUF files, versions 2 and 3: metadata and the list of tensors. The file is a stranger's: every length
// and count is checked before anything is allocated from it, and the data is never read.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/regular_file.h"
#include "base/result.h"
#include "model/checkpoint/ggml_types.h"

namespace llmprof::model {

// Of arrays the numbers are kept, if they are whole and not too many; of texts only how many there are.
struct GgufArray {
  std::uint64_t count = 0;
  std::vector<std::int64_t> numbers;  // empty, or `count` of them
};
// monostate: a text that is too long to keep.
using GgufValue = std::variant<std::monostate, std::int64_t, double, bool, std::string, GgufArray>;

struct GgufTensor {
  std::string name;
  const GgmlType* type = nullptr;    // never nullptr in a header that was read
  std::vector<std::uint64_t> sizes;  // the fastest running one first
  std::uint64_t values = 0, bytes = 0;
  std::uint64_t offset = 0;  // in the data part
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;
  std::uint64_t data_offset = 0;    // where the data part begins in the file
  std::uint64_t beyond_bytes = 0;   // after the last tensor and its padding
  std::uint64_t empty_tensors = 0;  // with a size of 0: allowed, and strange
};

inline constexpr std::uint64_t kMostGgufTensors = 100'000;
inline constexpr std::uint64_t kMostGgufKeys = 100'000;
inline constexpr std::uint64_t kMostGgufKeyBytes = 64 << 10;
inline constexpr std::uint64_t kMostGgufKeptText = 1 << 20;
inline constexpr std::uint64_t kMostGgufArray = 1 << 24;
inline constexpr std::uint64_t kMostGgufKeptNumbers = 100'000;  // one per layer is what they are for

// Errors name the place and the rule: "PATH: byte 24: …" or "PATH: TENSOR: …".
Result<GgufHeader> read_gguf_header(const base::RegularFile& file);

}  // namespace llmprof::model
