#pragma once
// The header of GGUF files, versions 2 and 3: metadata and the list of tensors. The file is untrusted: every length
// and count is checked before anything is allocated from it, and the data is never read.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/regular_file.h"
#include "base/result.h"

namespace llmprof::model {

// Little-endian values one after the other out of a file, through a buffer. The first failure is kept and everything
// read after it is 0 or empty, so a parser reads line by line and asks once. Nothing is allocated that the rest of the
// file could not fill.

class ByteReader {
 public:
  explicit ByteReader(const base::RegularFile& file) : file_(file) {}  // must outlive this

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  std::uint64_t unsigned_of(unsigned bytes);  // 1, 2, 4 or 8
  std::string text(std::uint64_t bytes);
  void skip(std::uint64_t bytes);

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return file_.bytes() - position_; }
  bool ok() const { return !error_; }
  // "PATH: byte 24: <rule>"
  void reject(std::string_view rule, std::string hint = "");
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  T number();
  bool take(void* out, std::uint64_t bytes);
  bool fill();

  const base::RegularFile& file_;
  std::string buffer_;
  std::uint64_t buffer_begin_ = 0;  // of the buffer in the file
  std::uint64_t position_ = 0;
  std::optional<Error> error_;
};

// The types of GGUF tensors: blocks of values with their scales.

struct GgmlType {
  std::uint32_t id;       // in the file
  std::string_view name;  // "Q4_K"
  std::uint32_t values;   // of a block; rows hold whole blocks
  std::uint32_t bytes;    // of a block
};

std::span<const GgmlType> ggml_types();
const GgmlType* find_ggml_type(std::uint32_t id);  // nullptr if unknown

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
