#pragma once
// Compression undone piece by piece, in bounded memory: gzip (several members) by ISA-L, zstd (several frames).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::importers {

class Unpacker {
 public:
  // The next stored bytes, at most `most` of them; 0 at the end of the file.
  using Source = std::function<Result<std::size_t>(char* out, std::size_t most)>;

  enum class End : std::uint8_t {
    kNotYet,
    kWhole,      // the compressed data ends where the file ends
    kTruncated,  // the file ends within the compressed data
    kDamaged,    // the data breaks its format or its checksum
    kTrailing,   // after whole data stands something else
  };

  virtual ~Unpacker() = default;
  // Fills `out` unless the content ends; then end() tells how. Errors are those of the source.
  virtual Result<std::size_t> read(char* out, std::size_t most) = 0;

  End end() const { return end_; }
  std::uint64_t used_bytes() const { return used_; }   // stored bytes that were understood
  const std::string& why() const { return why_; }      // what is damaged, in words
  std::string_view format() const { return format_; }  // "gzip"

 protected:
  explicit Unpacker(std::string_view format) : format_(format) {}
  std::string_view format_;
  End end_ = End::kNotYet;
  std::uint64_t used_ = 0;
  std::string why_;
};

// By the first bytes of the file; nullptr: it is not compressed.
std::unique_ptr<Unpacker> make_unpacker(std::string_view beginning, Unpacker::Source source);
std::string_view compression_of(std::string_view beginning);  // "gzip", "zstd", "" none

}  // namespace llmprof::importers
