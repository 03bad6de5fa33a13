#include "view/run_index.h"

#include <algorithm>
#include <charconv>

namespace llmprof::view {
namespace {

using pictures::Piece;
using pictures::Slice;
using pictures::Source;
using pictures::Window;

constexpr int kCurveWidth = 1 << 18;  // readings come every few milliseconds at most
constexpr std::int64_t kFinerBy = 2;  // slices are merged to so much less than a pixel of the picture
constexpr std::string_view kGraph = "graph ";

}  // namespace

// Takes the pieces of the whole run. One pixel as wide as the run keeps the launches of graphs whole: their nodes are
// put in when somebody looks so closely that they show.
class IndexedLanes : public pictures::Lanes {
 public:
  IndexedLanes(pictures::TimelineFacts& facts, RunIndex& index)
      : pictures::Lanes(facts, {facts.bounds.begin_ns, facts.bounds.end_ns + 1},
                        {.window = {}, .width = 1, .stage = ""}),
        index_(index) {}

  void add(Source source, std::int64_t owner, std::int64_t place, const Piece& piece) override {
    const Slice& slice = piece.slice;
    if (source == Source::kGraphs) graph_ = graph_of(slice.name);
    const bool launch = source == Source::kKernels && slice.estimated;
    LaneIndex& lane = lane_of({source, owner, place, slice.stage, launch});
    lane.add({slice.begin_ns, slice.end_ns, launch ? label_of(graph_) : static_cast<std::uint32_t>(slice.name),
              slice.id, piece.launch_ns});
  }
  RunIndex::Lanes take() { return std::move(lanes_); }

 private:
  LaneIndex& lane_of(const RunIndex::Key& key) {
    if (last_ == nullptr || key != last_key_) last_ = &lanes_[key], last_key_ = key;
    return *last_;
  }
  // A launch's own slice, "graph 7", comes right before that of its nodes.
  std::int64_t graph_of(std::int32_t name) {
    const auto [found, is_new] = graph_of_name_.try_emplace(name, -1);
    if (is_new) {
      const std::string& text = facts().names.all()[static_cast<std::size_t>(name)];
      if (text.starts_with(kGraph))
        std::from_chars(text.data() + kGraph.size(), text.data() + text.size(), found->second);
    }
    return found->second;
  }
  std::uint32_t label_of(std::int64_t graph) {
    const auto [found, is_new] = labels_.try_emplace(graph, static_cast<std::uint32_t>(labels_.size()));
    if (is_new) index_.graphs_.push_back(graph);
    return found->second;
  }

  RunIndex& index_;
  RunIndex::Lanes lanes_;
  RunIndex::Key last_key_{};
  LaneIndex* last_ = nullptr;
  std::int64_t graph_ = -1;
  std::unordered_map<std::int32_t, std::int64_t> graph_of_name_;
  std::unordered_map<std::int64_t, std::uint32_t> labels_;
};

Result<RunIndex> RunIndex::build(const trace::Run& run, const base::Progress& progress) {
  LLMPROF_LET(pictures::TimelineFacts facts, pictures::TimelineFacts::load(run));
  RunIndex index(std::make_unique<pictures::TimelineFacts>(std::move(facts)));
  IndexedLanes lanes(*index.facts_, index);
  const auto report = [&](std::string_view what, double done) { return progress({what, done, 3, "parts"}); };
  const Error stopped{ErrorCode::kInterrupted, "interrupted", ""};
  if (!report("reading what devices did", 0)) return stopped;
  LLMPROF_TRY(pictures::add_device_work(run, lanes));
  if (!report("reading what threads did", 1)) return stopped;
  LLMPROF_TRY(pictures::add_host_work(run, lanes));
  if (!report("sorting", 2)) return stopped;
  LLMPROF_LET(index.curves_, pictures::read_curves(run, *index.facts_, index.facts_->bounds, kCurveWidth));
  index.take(lanes.take());
  return index;
}

void RunIndex::take(Lanes lanes) {
  while (!lanes.empty()) {
    auto lane = lanes.extract(lanes.begin());  // freed one by one: memory is needed only once
    for (LaneIndex& row : LaneIndex::in_rows(std::move(lane.mapped()))) lanes_.emplace_back(lane.key(), std::move(row));
  }
}

// The nodes of a launch where they are wide enough to be seen, else one slice for all of them.
void RunIndex::add_nodes(const Key& key, const MergedSlice& launch, pictures::Lanes& out) const {
  const auto graph = facts_->graphs.find(graphs_[launch.label]);
  if (graph == facts_->graphs.end()) return;
  const std::int64_t length = launch.end_ns - launch.begin_ns;
  Slice slice{.begin_ns = launch.begin_ns, .end_ns = launch.end_ns, .name = graph->second.heaviest, .stage = key.stage};
  slice.estimated = true;
  if (launch.count > 1 || length < out.pixel_ns()) {
    slice.count = static_cast<std::int32_t>(
        std::min<std::int64_t>(launch.count * static_cast<std::int64_t>(graph->second.nodes.size()), INT32_MAX));
    const double busy = static_cast<double>(launch.busy_ns) * std::min(1.0, graph->second.covered_share);
    out.add(key.source, key.owner, key.place, {slice, static_cast<std::int64_t>(busy), launch.launch_ns});
    return;
  }
  const auto at = [&](double share) {
    return launch.begin_ns + static_cast<std::int64_t>(share * static_cast<double>(length) + 0.5);
  };
  for (const pictures::GraphNodes::Node& node : graph->second.nodes) {
    slice.begin_ns = at(node.begin_share);
    slice.end_ns = at(node.end_share);
    slice.name = node.name;
    out.add(key.source, key.owner, key.place, Piece::of(slice, launch.launch_ns));
  }
}

void RunIndex::add_lane(const Key& key, const LaneIndex& lane, pictures::Lanes& out) const {
  lane.merge(out.window(), power_of_two(std::max<std::int64_t>(1, out.pixel_ns() / kFinerBy)),
             [&](const MergedSlice& merged) {
               if (key.launches) return add_nodes(key, merged, out);
               Slice slice{.begin_ns = merged.begin_ns,
                           .end_ns = merged.end_ns,
                           .name = static_cast<std::int32_t>(merged.label),
                           .stage = key.stage,
                           .count = static_cast<std::int32_t>(std::min<std::int64_t>(merged.count, INT32_MAX))};
               slice.id = merged.id;
               out.add(key.source, key.owner, key.place, {slice, merged.busy_ns, merged.launch_ns});
             });
}

pictures::Timeline RunIndex::timeline(const pictures::TimelineRequest& request) {
  Window window = request.window.value_or(facts_->bounds);
  window.end_ns = std::max(window.end_ns, window.begin_ns + 1);
  pictures::Timeline out{.run = facts_->bounds, .window = window, .names = {}, .lanes = {}, .curves = {}};
  pictures::Lanes lanes(*facts_, window, request);
  for (const auto& [key, lane] : lanes_) add_lane(key, lane, lanes);
  pictures::add_idle(lanes);
  lanes.finish(out);
  pictures::keep_used_names(out, facts_->names.all());
  for (const pictures::Curve& curve : curves_) {
    pictures::Curve thin = pictures::thinned_curve(curve, window, lanes.pixel_ns());
    if (!thin.ts_ns.empty()) out.curves.push_back(std::move(thin));
  }
  return out;
}

bool RunIndex::has_stage(const std::string& stage) const {
  return std::ranges::any_of(lanes_, [&](const auto& lane) {
    return lane.first.stage >= 0 && facts_->names.all()[static_cast<std::size_t>(lane.first.stage)] == stage;
  });
}

std::size_t RunIndex::slices() const {
  std::size_t count = 0;
  for (const auto& [key, lane] : lanes_) count += lane.size();
  return count;
}

std::size_t RunIndex::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [key, lane] : lanes_) bytes += lane.bytes() + sizeof(LaneIndex);
  return bytes;
}

}  // namespace llmprof::view
