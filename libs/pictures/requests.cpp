#include "pictures/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "trace/chunk_row.h"

namespace llmprof::pictures {
namespace {

using analyze::RequestFigures;
using Lanes = std::vector<RequestLane>;
using Places = std::unordered_map<std::int64_t, std::size_t>;  // of requests, by id

constexpr std::size_t kMostBlamed = 5;  // by request

RequestLane lane_of(RequestFigures figures) {
  RequestLane lane;
  lane.figures = std::move(figures);
  return lane;
}

// Lanes of the source that the report's figures are of; of other sources those that no lane has by name. A request of
// which nobody says when it was sent has no place in time.
Lanes lanes_of(const analyze::Requests& requests, std::vector<RequestFigures> all) {
  Lanes lanes;
  std::map<std::string, std::size_t> by_name;
  for (const RequestFigures& figures : requests.all) {
    if (!figures.placed) continue;
    if (!figures.name.empty()) by_name.try_emplace(figures.name, lanes.size());
    lanes.push_back(lane_of(figures));
  }
  for (RequestFigures& figures : all) {
    if (figures.source == requests.source || !figures.placed) continue;
    const auto found = by_name.find(figures.name);
    if (found != by_name.end() && figures.source == "client" && !lanes[found->second].client)
      lanes[found->second].client = std::move(figures);
    else
      lanes.push_back(lane_of(std::move(figures)));
  }
  std::ranges::stable_sort(lanes, {}, &RequestLane::begin_ns);
  return lanes;
}

Result<void> read_steps(const trace::Run& run, const Places& places, Lanes& lanes) {
  std::string work;
  for (const analyze::WorkKind& kind : analyze::kWorkKinds) work += fmt::format(", m.{}", kind.column);
  return trace::each_row(
      run,
      fmt::format("SELECT m.request_id, s.turn_ns, s.end_ns, m.prefill::INTEGER, coalesce(m.stalled_ns, 0){} FROM "
                  "step_member AS m JOIN step AS s ON s.id = m.step_id WHERE m.request_id IS NOT NULL ORDER BY 2, 1",
                  work),
      [&](const trace::ChunkRow& row) {
        const auto place = places.find(row[0]);
        if (place == places.end()) return;
        RequestLane& lane = lanes[place->second];
        const RequestState state = row[3] != 0   ? RequestState::kPrefill
                                   : row[4] > 0 ? RequestState::kStalled
                                                : RequestState::kDecode;
        lane.parts.push_back({row[1], row[2], state, 1, row[4]});
        for (std::size_t i = 0; i < lane.work_ns.size(); ++i) lane.work_ns[i] += row[5 + i];
      });
}

Result<void> read_blame(const trace::Run& run, const Places& places, Lanes& lanes) {
  return trace::each_row(
      run,
      "SELECT m.request_id, m.stalled_by, q.name, sum(m.stalled_ns)::BIGINT AS ns FROM step_member AS m LEFT JOIN "
      "request AS q ON q.id = m.stalled_by WHERE m.stalled_by IS NOT NULL AND m.request_id IS NOT NULL GROUP BY ALL "
      "ORDER BY m.request_id, ns DESC, m.stalled_by",
      [&](const trace::ChunkRow& row) {
        const auto place = places.find(row[0]);
        if (place == places.end()) return;
        auto& blamed = lanes[place->second].stalled_by;
        if (blamed.size() < kMostBlamed) blamed.push_back({row[1], row.text(2), row[3]});
      });
}

// From the mark to the next step of the request, or to its end.
Result<void> read_preemptions(const trace::Run& run, const Places& places, Lanes& lanes) {
  return trace::each_row(
      run,
      "SELECT request_id, ts_ns FROM request_event WHERE event = 'preempted' AND request_id IS NOT NULL ORDER BY 2",
      [&](const trace::ChunkRow& row) {
        const auto place = places.find(row[0]);
        if (place == places.end()) return;
        std::vector<RequestPart>& parts = lanes[place->second].parts;
        const std::int64_t at_ns = row[1];
        const auto next = std::ranges::find_if(parts, [&](const RequestPart& part) { return part.begin_ns >= at_ns; });
        const std::int64_t end_ns = next != parts.end() ? next->begin_ns : lanes[place->second].end_ns();
        if (end_ns > at_ns) parts.insert(next, {at_ns, end_ns, RequestState::kPreempted, 0, 0});
      });
}

// What moments tell where no step does, and what was before the first step.
void add_moments(RequestLane& lane) {
  const RequestFigures& own = lane.figures;
  std::vector<RequestPart> parts;
  const auto add = [&](std::optional<std::int64_t> from, std::optional<std::int64_t> to, RequestState state) {
    if (from && to && *from < *to) parts.push_back({*from, *to, state, 0, 0});
  };
  const auto step = std::ranges::find_if(lane.parts, [](const RequestPart& part) { return part.steps > 0; });
  const RequestFigures* client = lane.client ? &*lane.client : own.source == "client" ? &own : nullptr;
  const auto first_token = own.first_token_ns ? own.first_token_ns : own.end_ns;
  const auto last_token = own.last_token_ns ? own.last_token_ns : own.end_ns;
  if (client != nullptr) add(client->arrival_ns, client->sent_ns, RequestState::kClient);
  if (client == &own) {
    const auto sent = own.sent_ns ? own.sent_ns : std::optional(own.arrival_ns);
    add(sent, first_token, RequestState::kAwaited);
    add(own.first_token_ns, last_token, RequestState::kDelivered);
  } else if (step != lane.parts.end()) {
    add(own.arrival_ns, step->begin_ns, RequestState::kQueued);
  } else {
    add(own.arrival_ns, own.scheduled_ns, RequestState::kQueued);
    add(own.scheduled_ns, first_token, RequestState::kPrefill);
    if (!own.scheduled_ns) add(own.arrival_ns, first_token, RequestState::kAwaited);
    add(own.first_token_ns, last_token, RequestState::kDecode);
  }
  lane.parts.insert(lane.parts.begin(), parts.begin(), parts.end());
}

}  // namespace

std::int64_t RequestLane::end_ns() const {
  std::int64_t last_ns = figures.arrival_ns;
  for (const RequestFigures* each : {&figures, client ? &*client : &figures})
    for (const auto& moment :
         {each->end_ns, each->last_token_ns, each->first_token_ns, each->scheduled_ns, each->sent_ns})
      last_ns = std::max(last_ns, moment.value_or(last_ns));
  for (const RequestPart& part : parts) last_ns = std::max(last_ns, part.end_ns);
  return last_ns;
}

// Neighbours of a state become one where they are too short to be told apart; others where they share a pixel.
std::vector<RequestPart> merged_parts(const std::vector<RequestPart>& parts, Window window, std::int64_t pixel_ns) {
  constexpr std::int64_t kTold = 3;  // pixels: longer ones stay apart
  std::vector<RequestPart> out;
  std::array<std::int64_t, kRequestStates.size()> time_ns{};  // in the last of `out`, by state
  for (const RequestPart& part : parts) {
    if (part.end_ns < window.begin_ns || part.begin_ns > window.end_ns) continue;
    const std::int64_t length = part.end_ns - part.begin_ns;
    bool joined = false;
    if (!out.empty() && part.begin_ns - out.back().end_ns < pixel_ns) {
      RequestPart& last = out.back();
      const bool same = last.state == part.state && length < kTold * pixel_ns && (last.steps > 0) == (part.steps > 0);
      joined = same || (length < pixel_ns && last.end_ns - last.begin_ns < pixel_ns);
    }
    if (!joined) {
      out.push_back(part);
      time_ns.fill(0);
    } else {
      out.back().end_ns = std::max(out.back().end_ns, part.end_ns);
      out.back().steps += part.steps;
      out.back().stalled_ns += part.stalled_ns;
    }
    time_ns[static_cast<std::size_t>(part.state)] += length;
    out.back().state = static_cast<RequestState>(std::ranges::max_element(time_ns) - time_ns.begin());
  }
  return out;
}

std::string members_sql(std::string_view column, std::string_view ids, std::int64_t origin_ns) {
  std::string work;
  for (const analyze::WorkKind& kind : analyze::kWorkKinds) work += fmt::format(", m.{}", kind.column);
  return fmt::format(
      "SELECT m.step_id, s.turn_ns - ({1}) AS begin_ns, s.end_ns - ({1}) AS end_ns, s.stage, m.request_id, q.name AS "
      "request, m.tokens, m.context, m.prefill::INTEGER AS prefill, m.sampled::INTEGER AS sampled, m.time_ns, "
      "m.stalled_ns, b.name AS stalled_by, m.stalled_by AS stalled_by_id, n.requests AS members{2} FROM step_member AS "
      "m JOIN step AS s ON s.id = m.step_id JOIN (SELECT step_id, count(request_id) AS requests FROM step_member GROUP "
      "BY step_id) AS n ON n.step_id = m.step_id LEFT JOIN request AS q ON q.id = m.request_id LEFT JOIN request AS b ON "
      "b.id = m.stalled_by WHERE m.{0} IN ({3}) ORDER BY s.turn_ns, m.step_id, m.request_id NULLS LAST",
      column, origin_ns, work, ids);
}

Result<RequestPicture> RequestPicture::open(const trace::Run& run, const analyze::Requests& requests) {
  RequestPicture picture;
  if (requests.all.empty()) return picture;
  LLMPROF_LET(std::vector<RequestFigures> all, analyze::request_figures(run));
  picture.lanes_ = lanes_of(requests, std::move(all));
  Places places;
  for (std::size_t i = 0; i < picture.lanes_.size(); ++i) places.emplace(picture.lanes_[i].figures.id, i);
  LLMPROF_TRY(read_steps(run, places, picture.lanes_));
  LLMPROF_TRY(read_blame(run, places, picture.lanes_));
  LLMPROF_TRY(read_preemptions(run, places, picture.lanes_));
  picture.span_ = {picture.lanes_.front().begin_ns(), picture.lanes_.front().begin_ns() + 1};
  for (RequestLane& lane : picture.lanes_) {
    add_moments(lane);
    for (const RequestPart& part : lane.parts) {
      RequestLane::InState& state = lane.in_states[static_cast<std::size_t>(part.state)];
      state.ns += part.end_ns - part.begin_ns, state.steps += part.steps;
    }
    picture.span_.end_ns = std::max(picture.span_.end_ns, lane.end_ns());
  }
  return picture;
}

}  // namespace llmprof::pictures
