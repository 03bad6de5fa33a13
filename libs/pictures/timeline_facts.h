#pragma once
// What every window of a run's timeline needs: who did something, which steps there are, the stage of each kernel, and
// the nodes of graphs whose launches were recorded as one interval. Internal to libs/pictures.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "exporters/tracks.h"
#include "pictures/timeline.h"

namespace llmprof::pictures {

// Texts by number.
class Names {
 public:
  std::int32_t number(std::string_view text);
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::int32_t> numbers_;
};

struct Step {
  std::int64_t id = 0, begin_ns = 0, end_ns = 0, process_id = 0, thread_id = 0;
  std::int32_t stage = -1;  // into TimelineFacts::names
};

struct GraphNodes {
  struct Node {
    double begin_share, end_share;
    std::int32_t name;
  };
  std::vector<Node> nodes;     // by begin
  double covered_share = 0;    // of a launch, with at least one of them executing
  std::int32_t heaviest = -1;  // name of the node that takes longest
};

struct TimelineFacts {
  Window bounds;  // first to last event
  exporters::Tracks tracks;
  Names names;
  std::vector<Step> steps;                                                                // by thread and begin
  std::unordered_map<std::int64_t, std::pair<std::size_t, std::size_t>> steps_of_thread;  // [first, behind last)
  std::vector<Window> waits;  // calls in which a thread waited for a device, by end; without those inside others
  std::unordered_map<std::int64_t, GraphNodes> graphs;
  std::int64_t kernels = 0;
  bool calls_launch = false;  // the calls that launched stand in the table api

  std::int32_t stage_of_kernel(std::int64_t kernel_id) const {
    const std::size_t at = place(kernel_id);
    return at < stages_.size() ? stage_names_[stages_[at]] : -1;
  }
  // The stage of the step that a thread had begun last, if it is not over.
  std::int32_t stage_at(std::int64_t thread_id, std::int64_t at_ns) const;

  // Steps of a thread that do not overlap: each from where the ones before it end.
  std::vector<Step> drawn_steps() const;

  static Result<TimelineFacts> load(const trace::Run& run);

 private:
  std::size_t place(std::int64_t kernel_id) const {  // of its stage; far behind the last where the id is odd
    return static_cast<std::size_t>(kernel_id) - static_cast<std::size_t>(first_kernel_);
  }
  Result<void> load_steps(const trace::Run& run);
  Result<void> load_stages(const trace::Run& run);
  Result<void> load_waits(const trace::Run& run);
  Result<void> load_graphs(const trace::Run& run);
  Result<void> load_bounds(const trace::Run& run);
  std::int64_t first_kernel_ = 0;
  std::vector<std::uint8_t> stages_;           // of the kernel with this id, less first_kernel_: into stage_names_
  std::vector<std::int32_t> stage_names_{-1};  // into names
};

}  // namespace llmprof::pictures
