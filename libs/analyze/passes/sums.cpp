#include "analyze/passes/sums.h"

#include <algorithm>
#include <array>

#include "analyze/names/range_words.h"
#include "analyze/passes/classify.h"

namespace llmprof::analyze {

namespace {

constexpr std::size_t kMostKinds = 1u << 18;  // at once: some 80 MB

std::uint64_t both(trace::Name high, std::uint64_t low) { return static_cast<std::uint64_t>(high.id) << 32 | low; }

trace::OptionalId known(std::int64_t id) { return id == kNull ? std::nullopt : trace::OptionalId(id); }

}  // namespace

void KernelSums::add(const Kernels& kernels, const std::vector<trace::AttributionRow>& places) {
  std::vector<trace::Name> names(kernels.texts.size());  // code 0 is NULL
  for (std::size_t i = 1; i < names.size(); ++i) names[i] = strings_.intern(kernels.texts[i]);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const trace::AttributionRow& place = places[i];
    const trace::Name name = names[kernels.name[i]];
    const bool in_step = place.step_id.has_value();
    const bool estimated = !kernels.estimated.empty() && kernels.estimated[i] == 1;
    const Kind kind{both(place.stage, (in_step ? 1 : 0) | (estimated ? 2 : 0)),
                    both(place.module, name.id),
                    both(place.op, place.module_source.id),
                    static_cast<std::uint64_t>(kernels.device_id[i]),
                    static_cast<std::uint64_t>(place.gemm_id.value_or(kNull)),
                    static_cast<std::uint64_t>(kernels.node(i)),
                    static_cast<std::uint64_t>(kernels.stack_id[i])};
    const auto [found, first] = places_.try_emplace(kind, rows_.size());
    if (first) {
      rows_.push_back({.stage = place.stage,
                       .in_step = in_step,
                       .module = place.module,
                       .op = place.op,
                       .module_source = place.module_source,
                       .name = name,
                       .device_id = kernels.device_id[i],
                       .gemm_id = place.gemm_id,
                       .graph_node_id = known(kernels.node(i)),
                       .stack_id = known(kernels.stack_id[i]),
                       .estimated = estimated});
    }
    trace::KernelSumRow& row = rows_[found->second];
    ++row.kernels;
    row.gemm_calls += place.gemm_call ? 1 : 0;
    row.time_ns += kernels.end_ns[i] - kernels.begin_ns[i];
    if (kernels.stream[i] != kNull && kernels.graph_launch_id[i] == kNull) {
      ++row.launches;
      if (kernels.launch_end_ns[i] != kNull) ++row.timed_launches;
      if (kernels.launch_end_ns[i] != kNull && kernels.launch_begin_ns[i] != kNull)
        row.launch_ns += kernels.launch_end_ns[i] - kernels.launch_begin_ns[i];
    }
    if (rows_.size() == kMostKinds) finish();
  }
}

void KernelSums::finish() {
  for (const trace::KernelSumRow& row : rows_) sink_(row);
  rows_.clear();
  places_.clear();
}

void RangeSums::add(const trace::RangeTimeRow& range) {
  const std::optional<std::int64_t> step = range.step_id;
  const auto place = static_cast<std::size_t>(step.value_or(0) - 1);
  const std::optional<std::int64_t> pass = step && place < pass_of_step_.size() ? pass_of_step_[place] : std::nullopt;
  const Kind kind{both(range.kind, step ? 1 : 0), both(range.stage, range.module.id),
                  static_cast<std::uint64_t>(pass.value_or(INT64_MIN))};
  const auto [found, first] = places_.try_emplace(kind, sums_.size());
  if (first) {
    sums_.push_back({.row = {.kind = range.kind,
                             .stage = range.stage,
                             .in_step = step.has_value(),
                             .pass_id = pass,
                             .module = range.module,
                             .op = range.op,  // follows from the module
                             .first_range = range.range_id},
                     .steps = {}});
  }
  Sum& sum = sums_[found->second];
  ++sum.row.ranges;
  sum.row.total_ns += range.total_ns;
  sum.row.self_ns += range.self_ns;
  sum.row.first_range = std::min(sum.row.first_range, range.range_id);
  if (step && (sum.steps.empty() || sum.steps.back() != *step)) sum.steps.push_back(*step);
}

std::vector<trace::RangeSumRow> RangeSums::finish() {
  std::vector<trace::RangeSumRow> rows;
  for (Sum& sum : sums_) {
    std::ranges::sort(sum.steps);
    sum.row.steps = std::ranges::unique(sum.steps).begin() - sum.steps.begin();
    rows.push_back(sum.row);
  }
  sums_.clear();
  places_.clear();
  return rows;
}

RangeTree::RangeTree(const Ranges& ranges, const Classified& classified, trace::Strings& strings)
    : ranges_(ranges),
      classified_(classified),
      strings_(strings),
      rest_(strings.intern("(further names)")),
      shapes_(ranges.texts.size()),
      place_of_(ranges.size(), kNone) {}

std::int32_t RangeTree::place(std::int32_t parent, std::uint32_t name) {
  const std::uint64_t key = static_cast<std::uint64_t>(parent + 1) << 32 | name;
  const auto found = places_.find(key);
  if (found != places_.end()) return found->second;
  if (rows_.size() >= kMostPlaces && name != rest_.id) return parent != kNone ? parent : place(kNone, rest_.id);
  const auto id = static_cast<std::int32_t>(rows_.size());
  places_[key] = id;
  rows_.push_back({.id = id + 1, .name = {name}});
  if (parent != kNone) rows_.back().parent_id = parent + 1;
  return id;
}

trace::Id RangeTree::add(std::size_t range, const trace::RangeTimeRow& time) {
  trace::Name& shape = shapes_[ranges_.name[range]];
  if (shape.id == 0) shape = strings_.intern(shape_of(ranges_.texts[ranges_.name[range]]));
  const std::int32_t outer = classified_.places[range].parent;
  const std::int32_t parent = outer == kNone ? kNone : place_of_[outer];
  const std::int32_t here = place_of_[range] = place(parent, shape.id);
  trace::RangeTreeRow& row = rows_[here];
  row.kernel_ns += time.kernel_ns;
  if (here == parent) return here + 1;  // too many places: its time is that of the one around it
  const bool first = row.ranges++ == 0;
  row.kind = first || row.kind == time.kind ? time.kind : trace::Name{};
  row.stage = first || row.stage == time.stage ? time.stage : trace::Name{};
  row.total_ns += time.total_ns;
  row.self_ns += time.self_ns;
  return here + 1;
}

std::vector<trace::RangeTreeRow> RangeTree::finish() {
  for (std::size_t i = rows_.size(); i-- > 0;) {
    if (rows_[i].parent_id) rows_[*rows_[i].parent_id - 1].kernel_ns += rows_[i].kernel_ns;
  }
  return std::move(rows_);
}

namespace {

// Of each range, the time that ranges directly inside it cover; start_end ranges beside each other may overlap.
std::vector<std::int64_t> time_inside(const Ranges& ranges, const Classified& classified) {
  std::vector<std::int64_t> inside_ns(ranges.size());
  std::vector<std::int64_t> covered_until_ns = ranges.begin_ns;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::int32_t parent = classified.places[i].parent;
    if (parent == kNone) continue;
    std::int64_t& covered = covered_until_ns[parent];
    inside_ns[parent] += std::max<std::int64_t>(0, ranges.end_ns[i] - std::max(ranges.begin_ns[i], covered));
    covered = std::max(covered, ranges.end_ns[i]);
  }
  return inside_ns;
}

}  // namespace

void for_each_range_time(const Ranges& ranges, const Classified& classified, const std::vector<std::int64_t>& kernel_ns,
                         trace::Strings& strings, const std::function<void(const trace::RangeTimeRow&)>& emit) {
  const std::array<trace::Name, 4> kinds{trace::Name{}, strings.intern("stage"), strings.intern("step"),
                                         strings.intern("module")};
  const std::vector<std::int64_t> inside_ns = time_inside(ranges, classified);
  OperatorNames operators(strings);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RangePlace& place = classified.places[i];
    trace::RangeTimeRow row{.range_id = ranges.id[i], .kind = kinds[static_cast<std::size_t>(place.kind)]};
    if (place.step != kNone) row.step_id = place.step + 1;
    row.stage = place.stage;
    row.module = place.module;
    row.op = operators.of(place.module);
    row.total_ns = ranges.end_ns[i] - ranges.begin_ns[i];
    row.self_ns = row.total_ns - inside_ns[i];
    row.kernel_ns = kernel_ns[i];
    emit(row);
  }
}

}  // namespace llmprof::analyze
