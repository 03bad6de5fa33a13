#include "record/log/requests.h"

#include <llmprof/annotate.h>

#include <algorithm>
#include <vector>

#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

// By event - LLMPROF_REQUEST_QUEUED.
constexpr const char* kEvents[] = {"queued", "scheduled", "member", "preempted", "output", "finished", "padded", "blocks"};
constexpr const char* kStatuses[] = {"finished", "length", "aborted", "error"};

void earliest(trace::OptionalInt& least, std::int64_t ts_ns) { least = std::min(least.value_or(ts_ns), ts_ns); }
void latest(trace::OptionalInt& most, std::int64_t ts_ns) { most = std::max(most.value_or(ts_ns), ts_ns); }

}  // namespace

bool RequestMarks::take(trace::RunWriter& writer, const trace::RequestEventRow& place, trace::Name id,
                        std::uint64_t payload, trace::Id& next_id) {
  const auto event = static_cast<std::uint32_t>(payload & 0xFF);
  if (event < LLMPROF_REQUEST_QUEUED || event > LLMPROF_ENGINE_BLOCKS) return false;
  trace::RequestEventRow row = place;
  row.event = writer.strings().intern(kEvents[event - LLMPROF_REQUEST_QUEUED]);
  row.tokens = static_cast<std::int64_t>(payload >> 8 & 0xFFFFFF);
  row.context = static_cast<std::int64_t>(payload >> 32 & 0xFFFFFFF);
  if (event >= LLMPROF_ENGINE_PADDED || writer.strings().text(id).empty()) {
    writer.add(row);
    return true;
  }
  const auto [found, fresh] = requests_.try_emplace(id.id);
  Known& known = found->second;
  if (fresh) {
    known.row.id = next_id++;
    known.row.name = id;
    known.row.source = writer.strings().intern("server");
    known.row.process_id = row.process_id;
    known.row.cached_tokens = 0, known.row.preemptions = 0;
  }
  row.request_id = known.row.id;
  writer.add(row);
  known.first_ns = std::min(known.first_ns, row.ts_ns);
  switch (event) {
    case LLMPROF_REQUEST_QUEUED:
      known.queued_ns = std::min(known.queued_ns, row.ts_ns);
      known.row.prompt_tokens = row.tokens;
      break;
    case LLMPROF_REQUEST_SCHEDULED:
      // What a preempted request finds again is not the prefix that others had left.
      if (!known.row.scheduled_ns || row.ts_ns < *known.row.scheduled_ns) known.row.cached_tokens = row.tokens;
      earliest(known.row.scheduled_ns, row.ts_ns);
      break;
    case LLMPROF_REQUEST_MEMBER:
      known.row.process_id = row.process_id;  // that of the engine's steps, whoever else knows the request
      break;
    case LLMPROF_REQUEST_PREEMPTED:
      known.row.preemptions = *known.row.preemptions + 1;
      break;
    case LLMPROF_REQUEST_OUTPUT:
      if (row.tokens == 0) break;
      earliest(known.row.first_token_ns, row.ts_ns);
      latest(known.row.last_token_ns, row.ts_ns);
      known.delivered += row.tokens;
      break;
    case LLMPROF_REQUEST_FINISHED:
      latest(known.row.end_ns, row.ts_ns);
      known.row.output_tokens = row.context;
      known.row.status = writer.strings().intern(kStatuses[std::min<std::int64_t>(row.tokens, LLMPROF_FAILED)]);
      break;
    default:
      break;
  }
  return true;
}

void RequestMarks::finish(trace::RunWriter& writer) {
  std::vector<Known*> by_id;
  by_id.reserve(requests_.size());
  for (auto& [name, known] : requests_) by_id.push_back(&known);
  std::ranges::sort(by_id, {}, [](const Known* known) { return known->row.id; });
  for (Known* known : by_id) {
    known->row.arrival_seen = known->queued_ns != INT64_MAX;
    known->row.arrival_ns = known->row.arrival_seen ? known->queued_ns : known->first_ns;
    if (!known->row.end_ns) known->row.output_tokens = known->delivered;
    writer.add(known->row);
  }
  requests_.clear();
}

}  // namespace llmprof::record
