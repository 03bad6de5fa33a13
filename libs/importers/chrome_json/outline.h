#pragma once
// What stands around the events: finds where they begin and keeps the small members of the top-level object. Reads byte
// by byte, in whatever portions the content comes.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/chrome_json/event.h"
#include "importers/chrome_json/parser.h"

namespace llmprof::importers::chrome_json {

inline constexpr int kMaxDepth = 256;
inline constexpr std::uint64_t kMaxStringBytes = std::uint64_t{64} << 20;
inline constexpr std::size_t kMaxHeaderBytes = 1 << 20;  // of all members together

Error too_deep(std::uint64_t offset);
Error too_long(std::uint64_t offset);

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

}  // namespace llmprof::importers::chrome_json
