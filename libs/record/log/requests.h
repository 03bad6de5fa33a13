#pragma once
// Requests as engines mark them (annotate.h, llmprof_request): every mark is a row of request_event; what is known of a
// request in the end is a row of request. One request may be marked by several processes and threads, whose logs come in
// any order.

#include <cstdint>
#include <unordered_map>

#include "trace/rows.h"

namespace llmprof::trace {
class RunWriter;
}

namespace llmprof::record {

class RequestMarks {
 public:
  // A mark: `id` as the program named the request (empty: of the engine), `payload` as annotate.h lays it out.
  // False: no event that is known.
  bool take(trace::RunWriter& writer, const trace::RequestEventRow& place, trace::Name id, std::uint64_t payload,
            trace::Id& next_id);
  // Writes the requests; all logs were read.
  void finish(trace::RunWriter& writer);

 private:
  struct Known {
    trace::RequestRow row;
    std::int64_t first_ns = INT64_MAX;   // of what was seen of it
    std::int64_t queued_ns = INT64_MAX;  // INT64_MAX: not seen
    std::int64_t delivered = 0;          // tokens, by events
  };
  std::unordered_map<std::uint32_t, Known> requests_;  // by the number of their name
};

}  // namespace llmprof::record
