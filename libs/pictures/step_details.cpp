#include <algorithm>

#include "pictures/page_data.h"

namespace llmprof::pictures {
namespace {

constexpr std::size_t kMostStages = 8;
constexpr int kDetailWidth = 20000;

struct Chosen {
  std::string which;
  const StepWindow* step;
};

// Nearest rank: a step that really happened.
std::vector<Chosen> choose(std::vector<const StepWindow*> steps) {
  const StepWindow* first = steps.front();
  std::sort(steps.begin(), steps.end(), [](const StepWindow* a, const StepWindow* b) {
    return a->window.end_ns - a->window.begin_ns < b->window.end_ns - b->window.begin_ns;
  });
  std::vector<Chosen> chosen{{"median", steps[(steps.size() - 1) / 2]}};
  for (const Chosen& also : {Chosen{"slowest", steps.back()}, Chosen{"first", first}}) {
    const bool is_new =
        std::none_of(chosen.begin(), chosen.end(), [&](const Chosen& c) { return c.step == also.step; });
    if (is_new) chosen.push_back(also);
  }
  return chosen;
}

}  // namespace

Result<std::vector<StepDetail>> step_details(TimelineReader& reader, const std::vector<std::string>& stages) {
  const std::vector<StepWindow> all = reader.steps();
  std::vector<StepDetail> details;
  for (const std::string& stage : stages) {
    std::vector<const StepWindow*> steps;
    for (const StepWindow& step : all)
      if (step.stage == stage) steps.push_back(&step);
    if (steps.empty()) continue;
    for (const Chosen& chosen : choose(std::move(steps)))
      details.push_back({.stage = stage,
                         .which = chosen.which,
                         .step_id = chosen.step->id,
                         .timeline = {.window = chosen.step->window, .names = {}, .lanes = {}, .curves = {}}});
  }
  // The median of every stage comes first: what is cut off is then the least missed.
  const auto rank = [](const StepDetail& d) { return d.which == "median" ? 0 : d.which == "slowest" ? 1 : 2; };
  std::stable_sort(details.begin(), details.end(),
                   [&](const StepDetail& a, const StepDetail& b) { return rank(a) < rank(b); });
  if (details.size() > 3 * kMostStages) details.resize(3 * kMostStages);
  for (StepDetail& detail : details) {
    const Window window = detail.timeline.window;
    const std::int64_t margin = (window.end_ns - window.begin_ns) / 20;
    LLMPROF_LET(detail.timeline, reader.read({.window = Window{window.begin_ns - margin, window.end_ns + margin},
                                              .width = kDetailWidth,
                                              .stage = ""}));
    detail.timeline.curves.clear();
  }
  return details;
}

}  // namespace llmprof::pictures
