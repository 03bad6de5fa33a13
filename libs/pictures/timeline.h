#pragma once
// A run as lanes of slices over time, in the resolution of a picture: what is shorter than a pixel is merged, so that a
// window of 10 M kernels costs no more than one of ten thousand.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "trace/run.h"

namespace llmprof::pictures {

struct Window {
  std::int64_t begin_ns = 0, end_ns = 0;
};

// One slice, or several of a lane that lie closer than a pixel and became one.
struct Slice {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t name = -1;   // into Timeline::names; of merged slices the one with most time
  std::int32_t stage = -1;  // into Timeline::names; -1 none
  std::int32_t count = 1;   // slices that it stands for
  float busy = 1;           // of its time, covered by them
  std::int64_t id = 0;      // of a single one: id of its row; 0 merged, or it has none
  bool estimated = false;   // a graph's node that was not recorded by itself; of merged slices most of them
};

struct Lane {
  enum class Kind : std::uint8_t { kStages, kRanges, kApi, kStream, kCopies, kIdle, kGraphs };
  Kind kind = Kind::kStream;
  std::string group;          // "GPU 0: NVIDIA H200", "python3 4242"
  std::string name;           // "stream 7", "thread 4242, depth 1"
  std::string table;          // whose id a slice has: "kernel", "range", "op", "step", "copy", "graph_launch", "api"
  std::vector<Slice> slices;  // by begin, not overlapping
};

// Readings over time: power, clocks, memory, activity.
struct Curve {
  std::string group, name, unit;
  std::vector<std::int64_t> ts_ns;
  std::vector<double> low, high;  // of the readings in each pixel
};

struct Timeline {
  Window run;     // first to last event
  Window window;  // what the lanes show
  std::vector<std::string> names;
  std::vector<Lane> lanes;
  std::vector<Curve> curves;
  std::int64_t slices_in_window = 0;  // before merging
  std::int64_t lanes_left_out = 0;    // those with the least in them, where there are very many
};

struct TimelineRequest {
  std::optional<Window> window;  // none: the whole run
  int width = 1500;              // pixels: slices shorter than window / width are merged
  std::string stage;             // only slices of this stage; "" all
};

// A step as it is drawn: where it begins while the one before it on its thread still runs (the host ran ahead of the
// device), it is drawn from that one's end on.
struct StepWindow {
  std::int64_t id = 0;
  std::string stage;
  Window window;
};

// Answers several requests about one run, with what all of them need read once. The run must outlive it. Not
// thread-safe.
class TimelineReader {
 public:
  // The derived tables of the run must be in use (analyze::summarise).
  static Result<TimelineReader> open(const trace::Run& run);
  TimelineReader(TimelineReader&&) noexcept;
  TimelineReader& operator=(TimelineReader&&) noexcept;
  ~TimelineReader();

  Result<Timeline> read(const TimelineRequest& request);
  std::vector<StepWindow> steps() const;  // by thread and begin; without those that lie inside others

 private:
  struct State;
  explicit TimelineReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One request.
Result<Timeline> timeline(const trace::Run& run, const TimelineRequest& request);

// A window of a timeline in a coarser resolution than its own. Slices are then of the stage that has most of them.
Timeline thinned(const Timeline& fine, const TimelineRequest& request);
// Of a curve, the lowest and highest reading of each pixel in the window.
Curve thinned_curve(const Curve& fine, Window window, std::int64_t pixel_ns);
// Names of slices are numbers into `all`; afterwards into timeline.names, which holds only what is used.
void keep_used_names(Timeline& timeline, const std::vector<std::string>& all);

}  // namespace llmprof::pictures
