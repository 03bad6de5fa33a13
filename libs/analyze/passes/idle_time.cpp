#include "analyze/passes/idle_time.h"

#include <algorithm>

#include "analyze/names/range_words.h"

namespace llmprof::analyze {
namespace {

constexpr std::size_t kMostPlaces = 20'000;  // a program may give every range a name of its own

}  // namespace

IdleTime::IdleTime(const Ranges& ranges, const Classified& classified, const std::vector<bool>& warm_up,
                   trace::Strings& strings)
    : ranges_(ranges),
      classified_(classified),
      warm_up_(warm_up),
      strings_(strings),
      operators_(strings),
      gap_(strings.intern("gap")),
      between_(strings.intern("between")),
      shapes_(ranges.texts.size()) {}

void IdleTime::add_sample(std::int64_t process_id, std::int64_t at_ns, std::int64_t id) {
  samples_[process_id].all.emplace_back(at_ns, id);
}

void IdleTime::mark(const IdleStretch& stretch) {
  const auto found = samples_.find(stretch.process_id);
  if (found == samples_.end()) return;
  Samples& of = found->second;
  if (!of.sorted) std::sort(of.all.begin(), of.all.end());
  of.sorted = true;
  const auto before = [](const auto& sample, std::int64_t ns) { return sample.first < ns; };
  const auto at = of.all.begin() + static_cast<std::ptrdiff_t>(of.next);
  // Stretches come nearly in order: mostly the next sample lies far ahead.
  const bool here = (at == of.all.begin() || std::prev(at)->first < stretch.window.begin_ns) &&
                    (at == of.all.end() || at->first >= stretch.window.begin_ns);
  auto each = here ? at : std::lower_bound(of.all.begin(), of.all.end(), stretch.window.begin_ns, before);
  for (; each != of.all.end() && each->first < stretch.window.end_ns; ++each) step_of_[each->second] = stretch.step;
  of.next = static_cast<std::size_t>(each - of.all.begin());
}

trace::Name IdleTime::place_of(std::int32_t range) {
  if (range == kNone) return {};
  if (const trace::Name module = classified_.places[range].module; module.id != 0) return operators_.of(module);
  const auto code = static_cast<std::size_t>(ranges_.name[range]);
  if (shapes_[code].id == 0) shapes_[code] = strings_.intern(shape_of(ranges_.texts[code]));
  return shapes_[code];
}

void IdleTime::add(const IdleStretch& stretch, Timelines& timelines) {
  mark(stretch);
  if (!stretch.of_gpu) return;
  const trace::Name stage = classified_.steps[stretch.step].stage;
  const bool warm_up = warm_up_[stretch.step];
  timelines.divide(
      stretch.thread_id, stretch.window.begin_ns, stretch.window.end_ns, [&](std::int64_t ns, std::int32_t range) {
        const trace::Name place = rows_.size() < kMostPlaces ? place_of(range) : trace::Name{};
        const std::array<std::uint64_t, 2> kind{static_cast<std::uint64_t>(stage.id) << 32 | place.id,
                                                (warm_up ? 2u : 0u) | (stretch.after ? 1u : 0u)};
        const auto [found, first] = places_.try_emplace(kind, rows_.size());
        if (first)
          rows_.push_back(
              {.stage = stage, .warm_up = warm_up, .owner = stretch.after ? between_ : gap_, .place = place});
        trace::IdlePlaceRow& row = rows_[found->second];
        ++row.stretches;
        row.time_ns += ns;
      });
}

std::vector<trace::IdlePlaceRow> IdleTime::finish() { return std::move(rows_); }

trace::OptionalId IdleTime::step_of(std::int64_t sample_id) const {
  const auto found = step_of_.find(sample_id);
  return found == step_of_.end() ? std::nullopt : trace::OptionalId(found->second + 1);
}

}  // namespace llmprof::analyze
