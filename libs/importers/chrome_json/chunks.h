#pragma once
// A trace cut into chunks of whole events, and what stands around the events.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/chrome_json/block.h"
#include "importers/chrome_json/event.h"
#include "importers/chrome_json/parser.h"
#include "importers/input.h"

namespace llmprof::importers::chrome_json {

inline constexpr int kMaxDepth = 256;
inline constexpr std::uint64_t kMaxStringBytes = std::uint64_t{64} << 20;
inline constexpr std::size_t kMaxHeaderBytes = 1 << 20;  // of all members together

Error too_deep(std::uint64_t offset);
Error too_long(std::uint64_t offset);

// What stands around the events: finds where they begin and keeps the small members of the top-level object. Reads byte
// by byte, in whatever portions the content comes.
class Outline {
 public:
  enum class State : std::uint8_t {
    kMore,    // all of the text was used
    kEvents,  // the bracket that begins the events was the last byte used
    kEnd,     // the document ends with the last byte used
  };
  struct Step {
    State state = State::kMore;
    std::size_t used = 0;
  };
  // `offset`: of the first byte of `text` in the content.
  Result<Step> take(std::string_view text, std::uint64_t offset);
  // The closing bracket of the events was read; kEnd if nothing stands around them.
  State events_closed();

  Header header() const;                      // valid until the next take()
  bool array_form() const { return array_; }  // the events are the document
  const Tally& repaired() const { return repaired_; }
  std::int64_t members_left_out() const { return left_out_; }

 private:
  Result<bool> take_bracket(char c, std::uint64_t offset);
  bool close_bracket();
  bool all_objects() const;
  void end_member();
  void keep(std::string_view key, std::string_view value);

  std::vector<char> kinds_;  // open brackets
  bool started_ = false, array_ = false, in_string_ = false, escaped_ = false, capturing_ = false;
  std::uint64_t string_bytes_ = 0;
  std::string token_, key_;     // the last string, and the last key
  std::string member_, value_;  // of the top-level object
  bool value_cut_ = false;
  std::string base_time_, device_properties_, distributed_info_, other_ = "{}";
  Tally repaired_;
  std::int64_t left_out_ = 0;
};

// Cuts a trace into chunks of whole events, in one pass over the bytes and in the memory of a chunk. An event whose
// quotes or brackets do not fit together is blanked out and reading goes on with what looks like the next one.
//
// Text that may be read a block beyond its end.
class Chunk {
 public:
  std::string_view text;     // whole events, and what stands between them
  std::uint64_t offset = 0;  // of its first byte in the content
  bool unclean = false;      // bytes that are not ASCII, NUL, or control bytes in strings

  char* data() { return bytes_.get(); }
  std::size_t capacity() const { return capacity_; }
  void reserve(std::size_t bytes, std::size_t keep);  // keeps the first `keep` bytes
  void shrink(std::size_t bytes);                     // gives memory back if there is more than this

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
};

class Splitter {
 public:
  Splitter(Input& input, std::size_t chunk_bytes) : input_(input), chunk_bytes_(chunk_bytes) {}

  // The next events; false: that was all. Refused: no trace, too deep, too long.
  Result<bool> next(Chunk& chunk);

  const Outline& outline() const { return outline_; }
  const Tally& damaged() const { return damaged_; }    // events that were blanked out
  bool events_found() const { return events_found_; }  // an array of events began
  bool truncated() const { return !truncated_why_.empty(); }
  const std::string& truncated_why() const { return truncated_why_; }
  bool second_document() const { return second_document_; }
  std::uint64_t offset() const { return offset_; }

 private:
  enum class Mode : std::uint8_t { kStart, kOutline, kEvents, kTail, kDone };
  Result<void> start();
  Result<void> read_outline();
  Result<void> read_events(Chunk& chunk);
  Result<void> read_tail();
  Result<void> read_more();  // to rest_
  Result<std::size_t> read(char* out, std::size_t most);
  void hand_over(Chunk& chunk, std::size_t bytes);
  void end_in_events();

  void scan(char* data);
  std::size_t scan_block(char* data, const char* bytes);
  bool take_bracket(const char* data, std::size_t at);
  void damage(char* data, std::size_t at);
  bool resume(char* data);

  Input& input_;
  const std::size_t chunk_bytes_;
  Mode mode_ = Mode::kStart;
  Outline outline_;
  std::string rest_;          // read, but not used yet
  std::uint64_t offset_ = 0;  // of rest_ in the content, or of the chunk that is being filled
  bool ended_ = false;        // the input
  bool events_found_ = false, second_document_ = false;
  std::string truncated_why_;
  Tally damaged_;

  // The chunk that is being filled.
  std::size_t size_ = 0, scanned_ = 0, event_begin_ = 0;
  std::optional<std::size_t> closed_at_;
  std::optional<Error> refused_;
  bool unclean_ = false, resuming_ = false;
  Strings strings_;
  std::uint64_t gap_before_ = 1, string_ended_ = 0;  // carried from block to block
  int depth_ = 0;
  std::array<char, kMaxDepth> kinds_{};
};

// Where in `text`, not before `from`, something begins that looks like an event behind a comma; npos: nowhere.
std::size_t find_event(std::string_view text, std::size_t from);

}  // namespace llmprof::importers::chrome_json
