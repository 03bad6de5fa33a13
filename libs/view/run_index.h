#pragma once
// All that a run's timeline shows, in memory: any window of 10 M kernels is answered in milliseconds. It reads the run
// once, through the same code as the page of `llmprof report --html` (libs/pictures), and hands that code slices that
// are merged already.

#include <map>
#include <memory>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "pictures/timeline.h"
#include "pictures/timeline_facts.h"
#include "pictures/timeline_lanes.h"
#include "trace/run.h"
#include "view/lane_index.h"

namespace llmprof::view {

class RunIndex {
 public:
  // The derived tables must be in use. The run is not needed afterwards.
  static Result<RunIndex> build(const trace::Run& run, const base::Progress& progress);

  pictures::Timeline timeline(const pictures::TimelineRequest& request);
  bool has_stage(const std::string& stage) const;
  pictures::Window bounds() const { return facts_->bounds; }

  std::size_t slices() const;
  std::size_t bytes() const;

 private:
  friend class IndexedLanes;
  struct Key {
    pictures::Source source;
    std::int64_t owner, place;
    std::int32_t stage;
    bool launches;  // graph launches whose nodes are estimated: a label is a graph
    auto operator<=>(const Key&) const = default;
  };
  using Lanes = std::map<Key, LaneIndex>;

  explicit RunIndex(std::unique_ptr<pictures::TimelineFacts> facts) : facts_(std::move(facts)) {}
  void take(Lanes lanes);
  void add_lane(const Key& key, const LaneIndex& lane, pictures::Lanes& out) const;
  void add_nodes(const Key& key, const MergedSlice& launch, pictures::Lanes& out) const;

  std::unique_ptr<pictures::TimelineFacts> facts_;
  std::vector<std::pair<Key, LaneIndex>> lanes_;
  std::vector<std::int64_t> graphs_;  // by label of launches
  std::vector<pictures::Curve> curves_;
};

}  // namespace llmprof::view
