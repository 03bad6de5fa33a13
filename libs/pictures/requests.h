#pragma once
// Requests over time: a lane for each, divided by what it waited for or what was computed for it, in the resolution of
// a picture; and what a reader asks about one of them: the steps that it was part of, and who else was.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/requests/requests.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "pictures/timeline.h"
#include "trace/run.h"

namespace llmprof::pictures {

enum class RequestState : std::uint8_t {
  kClient,     // its client has not sent it yet, though its schedule wanted it
  kQueued,     // arrived, in no step yet
  kAwaited,    // has no token yet, and its first step is not known: queue and prompt together
  kPrefill,    // a step for its prompt, or for what it had lost
  kDecode,     // a step for an output token
  kStalled,    // the same, longer because prompts of others were in the step
  kPreempted,  // lost its KV cache, until its next step
  kDelivered,  // its tokens arrive; nobody but its client saw it
};
inline constexpr std::array kRequestStates = {"client",  "queued",  "awaited",   "prefill",
                                              "decode", "stalled", "preempted", "delivered"};

struct RequestPart {
  std::int64_t begin_ns = 0, end_ns = 0;
  RequestState state = RequestState::kQueued;  // of merged ones the one with most time
  std::int32_t steps = 0;                      // that it stands for; 0: no step says so, only moments
  std::int64_t stalled_ns = 0;                 // of all of them
};

struct RequestBlame {  // whose prompts held a request up
  std::int64_t id = 0;
  std::string name;
  std::int64_t ns = 0;
};

// A request of the server; with what its client saw of it, where a request of that name is there.
struct RequestLane {
  analyze::RequestFigures figures;
  std::optional<analyze::RequestFigures> client;
  std::array<std::int64_t, analyze::kWorkKinds.size()> work_ns{};  // its part of steps
  std::vector<RequestBlame> stalled_by;                            // most first
  std::vector<RequestPart> parts;                                  // by begin
  struct InState {
    std::int64_t ns = 0, steps = 0;
  };
  std::array<InState, kRequestStates.size()> in_states{};  // the parts added up
  std::int64_t begin_ns() const {
    return client ? std::min(client->arrival_ns, figures.arrival_ns) : figures.arrival_ns;
  }
  std::int64_t end_ns() const;  // the last that is known of it
};

struct RequestLimits {
  std::size_t requests = 2000, parts = 30000, member_rows = 8000;
};

class RequestPicture {
 public:
  // The derived tables must be in use. Empty where the run has no requests.
  static Result<RequestPicture> open(const trace::Run& run, const analyze::Requests& requests);

  bool empty() const { return lanes_.empty(); }
  Window span() const { return span_; }  // first arrival to last end
  const std::vector<RequestLane>& lanes() const { return lanes_; }

  // docs/format/page.md, requests: those that overlap the window, merged to its pixels. Times count from span().
  base::Json window(Window window, int width, const RequestLimits& limits) const;
  // The same of the whole, with curves and distributions, and the steps of some requests one by one.
  Result<base::Json> overview(const trace::Run& run, const RequestLimits& limits) const;

 private:
  Window span_;
  std::vector<RequestLane> lanes_;  // by begin
};

// Parts merged to pixels; those that end before the window or begin after it are left out.
std::vector<RequestPart> merged_parts(const std::vector<RequestPart>& parts, Window window, std::int64_t pixel_ns);

// Rows of step_member with their steps, those of m.`column` in `ids` (a number or a SELECT). Times count from
// `origin_ns`.
std::string members_sql(std::string_view column, std::string_view ids, std::int64_t origin_ns);

// Requests that run and wait, use of the KV cache, tokens per second.
Result<std::vector<Curve>> request_curves(const trace::Run& run, const std::vector<RequestLane>& lanes, Window span);

}  // namespace llmprof::pictures
