// What threads did: steps, ranges, framework operators, calls of a device's API.
#include <fmt/format.h>

#include <algorithm>

#include "pictures/timeline_lanes.h"

namespace llmprof::pictures {
namespace {

constexpr std::int64_t kDepths = 7;  // what lies deeper is not drawn

void add_steps(Lanes& lanes) {
  for (const Step& step : lanes.facts().drawn_steps())
    lanes.add(Source::kSteps, step.thread_id, 0,
              Piece::of({.begin_ns = step.begin_ns,
                         .end_ns = step.end_ns,
                         .name = step.stage,
                         .stage = step.stage,
                         .id = step.id}));
}

// thread_id, begin_ns, end_ns, name, id, depth.
Result<void> add_spans(const trace::Run& run, Lanes& lanes, Source source, const std::string& sql) {
  TextColumn names(lanes.facts().names);
  return run.column_chunks(sql, [&](const trace::ColumnChunk& chunk) {
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const auto value = [&](std::size_t column) { return chunk.values[column][i]; };
      const std::int64_t begin = value(1);
      lanes.add(source, value(0), value(5),
                Piece::of({.begin_ns = begin,
                           .end_ns = std::max(begin, value(2)),
                           .name = names.number(chunk, 3, i),
                           .stage = lanes.facts().stage_at(value(0), begin),
                           .id = value(4)}));
    }
    return true;
  });
}

// Operators say no depth: those that contain one another, by begin, tell it.
Result<void> add_operators(const trace::Run& run, Lanes& lanes) {
  TextColumn names(lanes.facts().names);
  std::vector<std::int64_t> open;  // ends of those around
  std::int64_t thread = INT64_MIN;
  const std::string sql = fmt::format(
      "SELECT thread_id, begin_ns, greatest(begin_ns, end_ns) AS until_ns, name, id FROM op WHERE {} ORDER BY "
      "thread_id, begin_ns, "
      "until_ns DESC",
      touching(lanes));
  return run.column_chunks(sql, [&](const trace::ColumnChunk& chunk) {
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const auto value = [&](std::size_t column) { return chunk.values[column][i]; };
      if (value(0) != thread) open.clear();
      thread = value(0);
      while (!open.empty() && open.back() <= value(1)) open.pop_back();
      const auto depth = static_cast<std::int64_t>(open.size());
      open.push_back(value(2));
      if (depth >= kDepths) continue;
      lanes.add(Source::kOps, thread, depth,
                Piece::of({.begin_ns = value(1),
                           .end_ns = value(2),
                           .name = names.number(chunk, 3, i),
                           .stage = lanes.facts().stage_at(thread, value(1)),
                           .id = value(4)}));
    }
    return true;
  });
}

}  // namespace

Result<void> add_host_work(const trace::Run& run, Lanes& lanes) {
  add_steps(lanes);
  const std::string where = touching(lanes);
  LLMPROF_TRY(
      add_spans(run, lanes, Source::kRanges,
                fmt::format("SELECT thread_id, begin_ns, end_ns, name, id, coalesce(depth, 0) FROM \"range\" WHERE {} "
                            "AND kind IS DISTINCT FROM 'mark' AND coalesce(depth, 0) < {}",
                            where, kDepths)));
  LLMPROF_TRY(add_operators(run, lanes));
  return add_spans(run, lanes, Source::kApi,
                   fmt::format("SELECT thread_id, begin_ns, end_ns, name, id, 0 FROM api WHERE {}", where));
}

}  // namespace llmprof::pictures
