#pragma once
// Events of a trace in the order of the file, of any size, in bounded memory: an own splitter finds where events begin
// and end, chunks of them are parsed on several threads, and handed over in order on the caller's. What is no valid
// JSON is read leniently, event by event; what cannot be read is counted and skipped.

#include "importers/chrome_json/event.h"
#include "importers/input.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

class EventTaker {
 public:
  virtual ~EventTaker() = default;
  // Before the first event if the file has these in front (Kineto does), and again at the end with what stood behind.
  virtual void take_header(const Header& header) = 0;
  virtual void take(const Event& event) = 0;
};

struct ReaderOptions {
  std::size_t chunk_bytes = 512 << 10;  // read and parsed at a time; larger where an event is
  int threads = 0;                      // with the caller's; 0: one for each core, at most 4
};

// Errors: not a trace at all, deeper than 256, a string of more than 64 MiB. Everything else is counted in `sink`.
Result<void> read_events(Input& input, Sink& sink, EventTaker& taker, const ReaderOptions& options = {});

}  // namespace llmprof::importers::chrome_json
