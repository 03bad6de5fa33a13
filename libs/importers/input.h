#pragma once
// The plain bytes of a file that somebody else wrote; gzip (several members too) and zstd are undone on the way, in
// bounded memory. Reads forward only. Not thread-safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trace/loss.h"

namespace llmprof::importers {

// Something about the file that its reader did not see; whoever made the Input puts it into the loss ledger.
struct InputRemark {
  trace::Loss loss;
  std::string what, where;  // as Sink::lose takes them
};

class Input {
 public:
  // Content may grow to this by decompression, or to 200 times the file, whichever is more.
  static constexpr std::uint64_t kMaxPlainBytes = std::uint64_t{64} << 30;

  // A FIFO, a device, a directory is an error that says what it is. A limit other than kMaxPlainBytes holds exactly.
  static Result<Input> open(const std::string& path, std::uint64_t max_plain_bytes = kMaxPlainBytes);
  // For tests and fuzzing; compressed content is undone as that of a file is.
  static Input of_text(std::string name, std::string content, std::uint64_t max_plain_bytes = kMaxPlainBytes);
  Input(Input&&) noexcept;
  Input& operator=(Input&&) = delete;
  ~Input();

  const std::string& name() const;      // as the user wrote it
  std::uint64_t file_bytes() const;     // as stored
  std::uint64_t stored_offset() const;  // of the stored bytes, how many were used: progress
  bool compressed() const;

  // The first bytes of the content, at most 64 KiB; reading starts before them all the same.
  Result<std::string_view> head();
  // The next bytes: fills `out` unless the content ends. 0: the end. A compressed stream that is cut or damaged ends
  // after its good part, as does a file that became shorter: remarks() tells. Errors: more plain bytes than allowed,
  // compressed data inside compressed data, and what the system says.
  Result<std::size_t> read(char* out, std::size_t most);
  // All of it, when it is at most `most` bytes.
  Result<std::string> read_all(std::uint64_t most);
  // Content at an offset, for formats that jump (SQLite); expands a compressed file first.
  Result<std::size_t> read_at(std::uint64_t offset, char* out, std::size_t most);
  Result<std::uint64_t> plain_bytes();  // size of the content; expands a compressed file first
  // Undoes the compression into a nameless temporary file, so that read_at() works.
  Result<void> expand();
  // Makes that file, in `folder` or ("") where temporary files go: a sandbox must not open one later.
  Result<void> prepare_expansion(const std::string& folder);

  // What read() failed with, if it did: a reader that made do with what came before is told of it here.
  const std::optional<Error>& refused() const;
  std::vector<InputRemark> remarks() const;  // complete once the content was read to its end
  std::vector<int> descriptors() const;      // what a sandbox must leave open

 private:
  struct State;
  explicit Input(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace llmprof::importers
