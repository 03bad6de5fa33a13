#include "predict/tables/borrow.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmprof::predict {
namespace {

bool same_work(const Part& a, const model::Config& of_a, const Part& b, const model::Config& of_b,
               std::span<const double> at) {
  const model::Costs one = costs_at(a, of_a, 0, at), other = costs_at(b, of_b, 0, at);
  return one.flops == other.flops && one.bytes() == other.bytes() &&
         a.ops.front().arithmetic == b.ops.front().arithmetic;
}

const Part* find_part(const std::vector<Part>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &Part::name);
  return found == parts.end() ? nullptr : &*found;
}

}  // namespace

std::string scaled_note(const std::vector<std::string>& scaled) {
  return fmt::format(
      "not measured in the changed shape or type: {}; their times are those of the measured one, scaled by the floors "
      "of "
      "both",
      fmt::join(scaled, ", "));
}

Result<BorrowedTables> borrow_tables(const OperatorTables& measured, const TablesOf& before, const TablesOf& after,
                                     Follows follows) {
  LLMPROF_LET(const model::Config old_shard, model::shard(before.config, before.parallel, {}));
  LLMPROF_LET(const model::Config new_shard, model::shard(after.config, after.parallel, {}));
  const model::Graph old_graph(old_shard), new_graph(new_shard);
  const std::vector<Part> old_parts = parts_of(old_graph), new_parts = parts_of(new_graph);
  BorrowedTables out;
  out.tables.source = measured.source;
  if (measured.source.tensor > 0) out.tables.source.tensor = after.parallel.tensor;
  for (const std::string& name : measured.operators()) {
    const Grid& grid = *measured.find(name);
    const Part *was = find_part(old_parts, name), *is = find_part(new_parts, name);
    // Links between ranks: of their own degree only.
    const bool link = was == nullptr && is == nullptr && before.parallel.tensor == after.parallel.tensor;
    if (!link && (was == nullptr || is == nullptr)) continue;
    const auto old_floor = link ? nullptr : floor_over_axes(*was, old_shard, before.roof);
    const auto new_floor = link ? nullptr : floor_over_axes(*is, new_shard, after.roof);
    bool scaled = false;
    for (const Grid::Point& point : grid.all()) {
      const auto at = std::span(point.at).first(grid.axes());
      double ns = point.ns;
      if (!link && !same_work(*was, old_shard, *is, new_shard, at)) {
        const double old_ns = old_floor->ns(at), new_ns = new_floor->ns(at);
        if (!(old_ns > 0) || !(new_ns > 0)) continue;
        ns = follows == Follows::kInProportion ? ns * new_ns / old_ns : std::max(new_ns, ns + new_ns - old_ns);
        scaled = true;
      }
      LLMPROF_TRY(out.tables.add(name, at, ns));
    }
    if (scaled) out.scaled.push_back(name);
  }
  return out;
}

}  // namespace llmprof::predict
