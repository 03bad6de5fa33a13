// What threads did (steps, ranges, framework operators, calls of a device's API) and what devices did. Kernels of graph
// launches that were recorded as one interval are expanded only where a launch is wide enough to show them.
#include <fmt/format.h>

#include <algorithm>

#include "pictures/timeline_lanes.h"
#include "trace/chunk_row.h"

namespace llmprof::pictures {
namespace {

constexpr std::int64_t kNull = trace::Columns::kNull;

using Row = trace::ChunkRow;
using trace::each_row;

// The columns that kernels, copies and graph launches have in common, in this order.
constexpr const char* kCommon =
    "id, begin_ns, greatest(begin_ns, end_ns) AS end_ns, device_id, stream, thread_id, launch_begin_ns, launch_end_ns";
enum Column : std::size_t { kId, kBegin, kEnd, kDevice, kStream, kThread, kLaunchBegin, kLaunchEnd, kMore };

void add_launch(Lanes& lanes, const Row& row, std::int32_t name, std::int32_t stage) {
  const std::int64_t begin = row[kLaunchBegin];
  if (begin == kNull) return;
  const std::int64_t end = row[kLaunchEnd] == kNull ? begin : std::max(begin, row[kLaunchEnd]);
  lanes.add(Source::kApi, row[kThread], 0, Piece::of({.begin_ns = begin, .end_ns = end, .name = name, .stage = stage}));
}

Slice slice_of(const Row& row, std::int32_t name, std::int32_t stage) {
  return {.begin_ns = row[kBegin], .end_ns = row[kEnd], .name = name, .stage = stage, .id = row[kId]};
}

// Rows of a table that touch the window on the device, then those whose launch does; of the whole run both at once.
struct Part {
  bool device, launch;
  std::string where;
};
std::vector<Part> parts_of(Lanes& lanes) {
  const bool launches = !lanes.facts().calls_launch;
  if (lanes.is_whole()) return {{true, launches, "true"}};
  std::vector<Part> parts{{true, false, touching(lanes)}};
  if (launches) parts.push_back({false, true, touching(lanes, "launch_begin_ns", "launch_end_ns")});
  return parts;
}

Result<void> add_kernels(const trace::Run& run, Lanes& lanes) {
  TimelineFacts& facts = lanes.facts();
  const std::int32_t launching = facts.names.number("launch kernel");
  for (const Part& part : parts_of(lanes)) {
    TextColumn names(facts.names);
    LLMPROF_TRY(each_row(run, fmt::format("SELECT {}, name, graph_launch_id FROM kernel WHERE {}", kCommon, part.where),
                         [&](const Row& row) {
                           const std::int32_t stage = facts.stage_of_kernel(row[kId]);
                           if (part.device)
                             lanes.add(Source::kKernels, row[kDevice],
                                       Lanes::stream_or_thread(row[kStream], row[kThread]),
                                       Piece::of(slice_of(row, names.number(row, kMore), stage), row[kLaunchBegin]));
                           if (part.launch && row[kMore + 1] == kNull) add_launch(lanes, row, launching, stage);
                         }));
  }
  return {};
}

Result<void> add_copies(const trace::Run& run, Lanes& lanes) {
  TimelineFacts& facts = lanes.facts();
  const std::int32_t launching = facts.names.number("launch copy");
  for (const Part& part : parts_of(lanes)) {
    TextColumn names(facts.names);
    const std::string sql = fmt::format(
        "SELECT {}, CASE WHEN direction = 'fill' THEN 'fill' ELSE 'copy ' || replace(direction, '_', ' ') || "
        "coalesce(', ' "
        "|| host_memory, '') END, graph_launch_id FROM copy WHERE {}",
        kCommon, part.where);
    LLMPROF_TRY(each_row(run, sql, [&](const Row& row) {
      const std::int64_t asked = row[kLaunchBegin] != kNull ? row[kLaunchBegin] : row[kBegin];
      const std::int32_t stage = facts.stage_at(row[kThread], asked);
      if (part.device)
        lanes.add(Source::kCopies, row[kDevice], Lanes::stream_or_thread(row[kStream], row[kThread]),
                  Piece::of(slice_of(row, names.number(row, kMore), stage), row[kLaunchBegin]));
      if (part.launch && row[kMore + 1] == kNull) add_launch(lanes, row, launching, stage);
    }));
  }
  return {};
}

// The kernels of a launch that was recorded as one interval.
void add_nodes(Lanes& lanes, const Row& row, const GraphNodes& graph, std::int32_t stage) {
  const std::int64_t begin = row[kBegin], length = row[kEnd] - begin, stream = row[kStream];
  const auto add = [&](std::int64_t from, std::int64_t to, std::int32_t name, std::int64_t count, float busy) {
    lanes.add(Source::kKernels, row[kDevice], Lanes::stream_or_thread(stream, row[kThread]),
              Piece::of({.begin_ns = from,
                         .end_ns = to,
                         .name = name,
                         .stage = stage,
                         .count = static_cast<std::int32_t>(count),
                         .busy = busy,
                         .estimated = true},
                        row[kLaunchBegin]));
  };
  if (length < lanes.pixel_ns()) {
    return add(begin, row[kEnd], graph.heaviest, static_cast<std::int64_t>(graph.nodes.size()),
               static_cast<float>(std::min(1.0, graph.covered_share)));
  }
  for (const GraphNodes::Node& node : graph.nodes) {
    const auto at = [&](double share) {
      return begin + static_cast<std::int64_t>(share * static_cast<double>(length) + 0.5);
    };
    add(at(node.begin_share), at(node.end_share), node.name, 1, 1);
  }
}

Result<void> add_graphs(const trace::Run& run, Lanes& lanes) {
  TimelineFacts& facts = lanes.facts();
  const std::int32_t launching = facts.names.number("launch graph"),
                     unknown = facts.names.number("nodes of an unknown graph");
  for (const Part& part : parts_of(lanes)) {
    TextColumn stages(facts.names);
    const std::string sql = fmt::format(
        "SELECT {}, graph, coalesce(nodes_recorded, false), p.stage FROM (SELECT * FROM graph_launch WHERE {}) AS l "
        "LEFT JOIN "
        "(SELECT graph_launch_id, stage FROM launch_place) AS p ON p.graph_launch_id = l.id",
        kCommon, part.where);
    LLMPROF_TRY(each_row(run, sql, [&](const Row& row) {
      const std::int32_t stage = row[kMore + 2] == 0 ? -1 : stages.number(row, kMore + 2);
      if (part.launch) add_launch(lanes, row, launching, stage);
      if (!part.device) return;
      const std::int64_t stream = Lanes::stream_or_thread(row[kStream], row[kThread]);
      const std::int32_t name = facts.names.number(fmt::format("graph {}", row[kMore]));
      lanes.add(Source::kGraphs, row[kDevice], stream, Piece::of(slice_of(row, name, stage), row[kLaunchBegin]));
      if (row[kMore + 1] != 0) return;
      const auto graph = facts.graphs.find(row[kMore]);
      if (graph != facts.graphs.end()) return add_nodes(lanes, row, graph->second, stage);
      Slice slice = slice_of(row, unknown, stage);
      slice.id = 0;
      lanes.add(Source::kKernels, row[kDevice], stream, Piece::of(slice, row[kLaunchBegin]));
    }));
  }
  return {};
}

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
  return each_row(run, sql, [&](const Row& row) {
    lanes.add(source, row[0], row[5],
              Piece::of({.begin_ns = row[1],
                         .end_ns = std::max(row[1], row[2]),
                         .name = names.number(row, 3),
                         .stage = lanes.facts().stage_at(row[0], row[1]),
                         .id = row[4]}));
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
  return each_row(run, sql, [&](const Row& row) {
    if (row[0] != thread) open.clear();
    thread = row[0];
    while (!open.empty() && open.back() <= row[1]) open.pop_back();
    const auto depth = static_cast<std::int64_t>(open.size());
    open.push_back(row[2]);
    if (depth >= kDepths) return;
    lanes.add(Source::kOps, thread, depth,
              Piece::of({.begin_ns = row[1],
                         .end_ns = row[2],
                         .name = names.number(row, 3),
                         .stage = lanes.facts().stage_at(thread, row[1]),
                         .id = row[4]}));
  });
}

}  // namespace

Result<void> add_device_work(const trace::Run& run, Lanes& lanes) {
  LLMPROF_TRY(add_kernels(run, lanes));
  LLMPROF_TRY(add_copies(run, lanes));
  return add_graphs(run, lanes);
}

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
