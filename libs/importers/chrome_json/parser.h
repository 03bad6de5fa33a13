#pragma once
// A chunk of whole events to Event structs. One parser for good and for damaged text: what JSON does not allow is
// repaired or skipped and counted, so that there is no second way of reading that could differ.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "importers/chrome_json/event.h"

namespace llmprof::importers::chrome_json {

// How often something had to be repaired or left out, and where it was first.
struct Tally {
  std::int64_t count = 0;
  std::uint64_t first = 0;  // offset in the content
  void add(std::uint64_t offset) {
    if (count++ == 0) first = offset;
  }
};

struct Parsed {
  std::vector<Event> events;
  std::deque<std::string> texts;  // those that differ from what is written: escapes, repairs
  Tally damaged;                  // elements that could not be read
  Tally no_phase;                 // objects that are no events
  Tally texts_repaired, numbers_repaired, commas;

  void clear() { *this = {std::move(events), {}, {}, {}, {}, {}, {}}, events.clear(); }
};

inline constexpr std::size_t kPaddingBytes = 64;

// `text` has kPaddingBytes readable bytes behind it and, in front of or behind events, only white space and commas;
// its brackets are balanced (chunks.h). `unclean`: it holds bytes that are not ASCII, NUL, or control bytes in
// strings.
void parse_events(std::string_view text, std::uint64_t offset, bool unclean, Parsed& out);

}  // namespace llmprof::importers::chrome_json
