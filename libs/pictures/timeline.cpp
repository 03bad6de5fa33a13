#include "pictures/timeline.h"

#include <algorithm>

#include "pictures/timeline_lanes.h"

namespace llmprof::pictures {
namespace {

// Bounds of a request that can be drawn: inside no bounds, not empty, a width of at least one pixel.
Window checked(const TimelineRequest& request, Window whole) {
  Window window = request.window.value_or(whole);
  if (window.end_ns <= window.begin_ns) window.end_ns = window.begin_ns + 1;
  return window;
}

Result<Timeline> from_rows(const trace::Run& run, TimelineFacts& facts, const TimelineRequest& request) {
  Timeline out{.run = facts.bounds, .window = checked(request, facts.bounds), .names = {}, .lanes = {}, .curves = {}};
  Lanes lanes(facts, out.window, request);
  LLMPROF_TRY(add_host_work(run, lanes));
  LLMPROF_TRY(add_device_work(run, lanes));
  add_idle(lanes);
  lanes.finish(out);
  LLMPROF_LET(out.curves, read_curves(run, facts, out.window, request.width));
  keep_used_names(out, facts.names.all());
  return out;
}

}  // namespace

void keep_used_names(Timeline& timeline, const std::vector<std::string>& all) {
  std::vector<std::int32_t> numbers(all.size(), -1);
  std::vector<std::string> used;
  const auto renumber = [&](std::int32_t& name) {
    if (name < 0) return;
    std::int32_t& number = numbers[static_cast<std::size_t>(name)];
    if (number == -1) {
      number = static_cast<std::int32_t>(used.size());
      used.push_back(all[static_cast<std::size_t>(name)]);
    }
    name = number;
  };
  for (Lane& lane : timeline.lanes) {
    for (Slice& slice : lane.slices) {
      renumber(slice.name);
      renumber(slice.stage);
    }
  }
  timeline.names = std::move(used);
}

Curve thinned_curve(const Curve& fine, Window window, std::int64_t pixel_ns) {
  Curve out{.group = fine.group, .name = fine.name, .unit = fine.unit, .ts_ns = {}, .low = {}, .high = {}};
  std::int64_t last = -1;
  auto i = static_cast<std::size_t>(std::lower_bound(fine.ts_ns.begin(), fine.ts_ns.end(), window.begin_ns) -
                                    fine.ts_ns.begin());
  for (; i < fine.ts_ns.size() && fine.ts_ns[i] <= window.end_ns; ++i) {
    const std::int64_t pixel = (fine.ts_ns[i] - window.begin_ns) / pixel_ns;
    if (pixel == last) {
      out.low.back() = std::min(out.low.back(), fine.low[i]);
      out.high.back() = std::max(out.high.back(), fine.high[i]);
      continue;
    }
    last = pixel;
    out.ts_ns.push_back(fine.ts_ns[i]);
    out.low.push_back(fine.low[i]);
    out.high.push_back(fine.high[i]);
  }
  return out;
}

Timeline thinned(const Timeline& fine, const TimelineRequest& request) {
  Timeline out{.run = fine.run, .window = checked(request, fine.window), .names = {}, .lanes = {}, .curves = {}};
  out.lanes_left_out = fine.lanes_left_out;
  const auto wanted = std::find(fine.names.begin(), fine.names.end(), request.stage) - fine.names.begin();
  std::int64_t pixel_ns = 1;
  for (const Lane& lane : fine.lanes) {
    Merger merger(out.window, request.width);
    pixel_ns = merger.pixel_ns();
    // Slices do not overlap, so their ends are in order too.
    auto slice = std::lower_bound(lane.slices.begin(), lane.slices.end(), out.window.begin_ns,
                                  [](const Slice& a, std::int64_t at) { return a.end_ns < at; });
    for (; slice != lane.slices.end() && slice->begin_ns <= out.window.end_ns; ++slice)
      if (request.stage.empty() || slice->stage == wanted) merger.add(Piece::of(*slice));
    if (merger.added() == 0) continue;
    if (lane.kind != Lane::Kind::kIdle) out.slices_in_window += merger.added();
    out.lanes.push_back({lane.kind, lane.group, lane.name, lane.table, std::move(in_rows(merger.pieces(), 1).front())});
  }
  for (const Curve& curve : fine.curves) out.curves.push_back(thinned_curve(curve, out.window, pixel_ns));
  std::erase_if(out.curves, [](const Curve& curve) { return curve.ts_ns.empty(); });
  keep_used_names(out, fine.names);
  return out;
}

struct TimelineReader::State {
  const trace::Run& run;
  TimelineFacts facts;
};

TimelineReader::TimelineReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TimelineReader::TimelineReader(TimelineReader&&) noexcept = default;
TimelineReader& TimelineReader::operator=(TimelineReader&&) noexcept = default;
TimelineReader::~TimelineReader() = default;

Result<TimelineReader> TimelineReader::open(const trace::Run& run) {
  LLMPROF_LET(TimelineFacts facts, TimelineFacts::load(run));
  return TimelineReader(std::unique_ptr<State>(new State{run, std::move(facts)}));
}

Result<Timeline> TimelineReader::read(const TimelineRequest& request) {
  return from_rows(state_->run, state_->facts, request);
}

std::vector<StepWindow> TimelineReader::steps() const {
  std::vector<StepWindow> steps;
  for (const Step& step : state_->facts.drawn_steps())
    steps.push_back({step.id,
                     step.stage < 0 ? "" : state_->facts.names.all()[static_cast<std::size_t>(step.stage)],
                     {step.begin_ns, step.end_ns}});
  return steps;
}

Result<Timeline> timeline(const trace::Run& run, const TimelineRequest& request) {
  LLMPROF_LET(TimelineReader reader, TimelineReader::open(run));
  return reader.read(request);
}

}  // namespace llmprof::pictures
