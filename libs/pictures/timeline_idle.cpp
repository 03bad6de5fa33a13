// When a GPU executed no kernel inside steps, and why as far as the launch of what came next tells. Made from the
// merged work, so gaps shorter than a pixel are one slice with the share of time that they take.
#include <algorithm>

#include "pictures/timeline_lanes.h"

namespace llmprof::pictures {
namespace {

constexpr std::int64_t kAnyPlace = 0;
constexpr float kShortGaps = 0.02F;  // less idle time than this inside merged slices is not drawn

struct Causes {
  std::int32_t cpu, synchronisation, not_begun, copying, unknown, short_gaps;
};

struct Stretch {
  Window window;
  std::int32_t stage;
};

// Steps of all threads by begin, each from where the ones before it end.
std::vector<Stretch> time_in_steps(const TimelineFacts& facts) {
  std::vector<Stretch> all;
  for (const Step& step : facts.steps) all.push_back({{step.begin_ns, step.end_ns}, step.stage});
  std::sort(all.begin(), all.end(),
            [](const Stretch& a, const Stretch& b) { return a.window.begin_ns < b.window.begin_ns; });
  std::int64_t until = INT64_MIN;
  for (Stretch& stretch : all) {
    stretch.window.begin_ns = std::max(stretch.window.begin_ns, until);
    until = std::max(until, stretch.window.end_ns);
  }
  std::erase_if(all, [](const Stretch& stretch) { return stretch.window.begin_ns >= stretch.window.end_ns; });
  return all;
}

// Why the device idled before `next` began: the longer part of the gap, before or after the launch of `next`. Before it
// the device waits for the CPU; where the CPU itself had waited for the device when the gap began, for that.
std::int32_t cause_of(Window gap, const Piece* next, const std::vector<Window>& waits, const Causes& causes) {
  if (next == nullptr || next->launch_ns == Piece::kNoLaunch) return causes.unknown;
  const std::int64_t launched = std::clamp(next->launch_ns, gap.begin_ns, gap.end_ns);
  if (launched - gap.begin_ns <= gap.end_ns - launched) return causes.not_begun;
  const auto wait = std::lower_bound(waits.begin(), waits.end(), gap.begin_ns,
                                     [](const Window& a, std::int64_t at) { return a.end_ns < at; });
  return wait != waits.end() && wait->begin_ns <= gap.begin_ns ? causes.synchronisation : causes.cpu;
}

class IdleTime {
 public:
  IdleTime(Lanes& lanes, std::int64_t device_id, const std::vector<Stretch>& steps, const Causes& causes)
      : lanes_(lanes), device_id_(device_id), steps_(steps), causes_(causes) {}

  void add_all() {
    add_copies();
    const std::vector<Piece> work = lanes_.work_of(device_id_);
    std::int64_t until = lanes_.window().begin_ns;
    for (const Piece& piece : work) {
      add_gap({until, piece.slice.begin_ns}, &piece);
      const bool alone = piece.slice.begin_ns >= until;
      until = std::max(until, piece.slice.end_ns);
      if (alone && piece.slice.count > 1 && piece.slice.busy < 1 - kShortGaps) add_inside(piece.slice);
    }
    add_gap({until, lanes_.window().end_ns}, nullptr);
  }

 private:
  void add_inside(const Slice& merged) {
    Slice slice{
        .begin_ns = merged.begin_ns, .end_ns = merged.end_ns, .name = causes_.short_gaps, .stage = merged.stage};
    slice.count = merged.count;
    slice.busy = 1 - merged.busy;
    if (merged.stage != -1) add(slice);
  }
  void add_gap(Window gap, const Piece* next) {
    in_steps(gap, [&](Window part, std::int32_t stage) {
      const std::int32_t cause = cause_of(part, next, lanes_.facts().waits, causes_);
      add({.begin_ns = part.begin_ns, .end_ns = part.end_ns, .name = cause, .stage = stage});
    });
  }
  // Time in which copies are all that the device does.
  void add_copies() {
    const std::vector<Window> kernels = covered(lanes_.work_of(device_id_, Source::kKernels));
    std::int64_t until = INT64_MIN;  // copies of several streams count once
    for (const Piece& copy : lanes_.work_of(device_id_, Source::kCopies)) {
      const std::int64_t end = copy.slice.end_ns;
      std::int64_t from = std::max(copy.slice.begin_ns, until);
      until = std::max(until, end);
      auto kernel = std::lower_bound(kernels.begin(), kernels.end(), from,
                                     [](const Window& a, std::int64_t at) { return a.end_ns <= at; });
      while (from < end) {
        const bool last = kernel == kernels.end() || kernel->begin_ns >= end;
        in_steps({from, last ? end : kernel->begin_ns}, [&](Window part, std::int32_t stage) {
          add({.begin_ns = part.begin_ns,
               .end_ns = part.end_ns,
               .name = causes_.copying,
               .stage = stage,
               .busy = copy.slice.busy});
        });
        from = last ? end : (kernel++)->end_ns;
      }
    }
  }
  // Pieces of all streams, by begin, as intervals that do not overlap.
  static std::vector<Window> covered(const std::vector<Piece>& pieces) {
    std::vector<Window> out;
    for (const Piece& piece : pieces) {
      if (!out.empty() && piece.slice.begin_ns <= out.back().end_ns)
        out.back().end_ns = std::max(out.back().end_ns, piece.slice.end_ns);
      else
        out.push_back({piece.slice.begin_ns, piece.slice.end_ns});
    }
    return out;
  }
  void add(const Slice& slice) { lanes_.add(Source::kIdle, device_id_, kAnyPlace, Piece::of(slice)); }
  template <class Take>
  void in_steps(Window gap, Take&& take) {
    if (gap.begin_ns >= gap.end_ns) return;  // work of several streams at once
    auto step = std::lower_bound(steps_.begin(), steps_.end(), gap.begin_ns,
                                 [](const Stretch& a, std::int64_t at) { return a.window.end_ns <= at; });
    for (; step != steps_.end() && step->window.begin_ns < gap.end_ns; ++step)
      take(Window{std::max(gap.begin_ns, step->window.begin_ns), std::min(gap.end_ns, step->window.end_ns)},
           step->stage);
  }

  Lanes& lanes_;
  std::int64_t device_id_;
  const std::vector<Stretch>& steps_;
  const Causes& causes_;
};

}  // namespace

void add_idle(Lanes& lanes) {
  Names& names = lanes.facts().names;
  // web/src/pictures/timeline/gaps.ts colours them by these names.
  const Causes causes{.cpu = names.number("GPU idle, waiting for CPU"),
                      .synchronisation = names.number("GPU idle after synchronization"),
                      .not_begun = names.number("GPU idle, launched but not started"),
                      .copying = names.number("copy only, no kernel"),
                      .unknown = names.number("GPU idle, cause unknown"),
                      .short_gaps = names.number("GPU idle, gaps shorter than a pixel")};
  const std::vector<Stretch> steps = time_in_steps(lanes.facts());
  for (const std::int64_t device : lanes.gpus()) IdleTime(lanes, device, steps, causes).add_all();
}

}  // namespace llmprof::pictures
