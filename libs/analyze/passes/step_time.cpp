#include "analyze/passes/step_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "analyze/names/range_words.h"

namespace llmprof::analyze {

std::string_view owner_name(Owner owner) {
  static constexpr std::array<std::string_view, kOwners> kNames = {"kernel", "copy", "other_kernel", "queued",
                                                                   "wait",   "host", "gap",          "between"};
  return kNames[static_cast<std::size_t>(owner)];
}

void set_turns(std::vector<Step>& steps) {
  std::unordered_map<std::int64_t, std::int64_t> busy_until_ns;  // by thread
  for (Step& step : steps) {
    std::int64_t& until_ns = busy_until_ns.try_emplace(step.thread_id, step.begin_ns).first->second;
    if (until_ns > step.begin_ns) step.turn_ns = until_ns;
    until_ns = std::max(until_ns, step.end_ns);
  }
}

StepTimes::StepTimes(const Ranges& ranges, const Classified& classified, const ProcessOfThread& process_of_thread,
                     Devices devices, trace::Strings& strings, Emit emit, IdleTime* idle)
    : ranges_(ranges),
      classified_(classified),
      process_of_thread_(process_of_thread),
      devices_(std::move(devices)),
      emit_(std::move(emit)),
      idle_(idle),
      timelines_(ranges),
      operators_(strings) {
  for (std::size_t i = 0; i < kOwners; ++i) owner_names_[i] = strings.intern(owner_name(static_cast<Owner>(i)));
  make_lanes(strings.intern("decode"), strings.intern("prefill"));
}

// A TPOT sample goes from the turn of a decode step to that of the next step of its thread, if that is a decode step of
// the same batch. A prefill begins when it is asked for, whatever the device still does.
void StepTimes::make_lanes(const trace::Name decode, const trace::Name prefill) {
  const std::vector<Step>& steps = classified_.steps;       // sorted by begin
  std::unordered_map<std::int64_t, std::int32_t> previous;  // step of each thread
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const auto [found, fresh] = lane_of_thread_.try_emplace(step.thread_id, lanes_.size());
    if (fresh) {
      lanes_of_process_[step.process_id].push_back(lanes_.size());
      lanes_.push_back({.thread_id = step.thread_id, .process_id = step.process_id});
    }
    Lane& lane = lanes_[found->second];
    const auto index = static_cast<std::int32_t>(i);
    const std::int64_t begin_ns = step.stage == prefill ? step.begin_ns : step.turn();
    if (!fresh) {
      const std::int32_t before = previous[step.thread_id];
      const Step& last = steps[before];
      const bool sample = last.stage == decode && step.stage == decode && last.size.batch == step.size.batch;
      if (sample && last.host_end() <= step.begin_ns) {
        accounts_[before].sample = true;
        ++accounts_[before].windows;
        lane.spans.push_back({{lane.spans.back().window.end_ns, begin_ns}, before, true});
      }
    }
    previous[step.thread_id] = index;
    ++accounts_[index].windows;
    lane.spans.push_back({{begin_ns, std::max(begin_ns, step.end_ns)}, index, false});
  }
  for (Lane& lane : lanes_) {
    lane.alone = lanes_of_process_[lane.process_id].size() == 1;
    std::ranges::stable_sort(lane.spans, {}, [](const Span& span) { return span.window.begin_ns; });
  }
}

std::size_t StepTimes::lane_of_step(std::int64_t step_id) {
  if (step_id != last_step_id_) {
    last_step_id_ = step_id;
    last_lane_ = lane_of_thread_.at(classified_.steps[step_id - 1].thread_id);
  }
  return last_lane_;
}

void StepTimes::add(const Work& work) {
  std::size_t own = lanes_.size();
  const bool on_cpu = devices_.is_cpu(work.device_id);
  if (work.step_id != 0) {
    own = lane_of_step(work.step_id);
    Lane& lane = lanes_[own];
    lane.kernels.add(work.window, work.op, work.mix);
    if (!on_cpu && work.launch_begin_ns != kNull) lane.queued.add({work.launch_begin_ns, work.window.begin_ns}, {});
    if (lane.alone) return;  // a step's kernels are of its process: nobody else there to see them
  }
  if (on_cpu) return;
  const std::vector<std::size_t>* lanes = lanes_beside(work.thread_id);
  if (lanes == nullptr) return;
  for (const std::size_t lane : *lanes) {
    if (lane != own) lanes_[lane].others.add(work.window, {});
  }
}

void StepTimes::add_kernels(const Kernels& kernels, const std::vector<trace::AttributionRow>& rows) {
  add_work(kernels, rows, {}, {}, {});
}

void StepTimes::add_work(const Kernels& kernels, const std::vector<trace::AttributionRow>& rows,
                         const GraphLaunches& launches, const std::vector<trace::LaunchPlaceRow>& launch_rows,
                         const std::unordered_map<std::int64_t, Mix>& mixes) {
  std::size_t k = 0, l = 0;
  while (k < kernels.size() || l < launches.size()) {
    if (l < launches.size() && launches.nodes_recorded[l] > 0) {
      ++l;
    } else if (l == launches.size() || (k < kernels.size() && kernels.begin_ns[k] <= launches.begin_ns[l])) {
      add({.window = {kernels.begin_ns[k], kernels.end_ns[k]},
           .device_id = kernels.device_id[k],
           .thread_id = kernels.thread_id[k],
           .launch_begin_ns = kernels.launch_begin_ns[k],
           .step_id = rows[k].step_id.value_or(0),
           .op = rows[k].op});
      ++k;
    } else {
      const auto mix = mixes.find(launches.graph[l]);
      add({.window = {launches.begin_ns[l], launches.end_ns[l]},
           .device_id = launches.device_id[l],
           .thread_id = launches.thread_id[l],
           .launch_begin_ns = launches.launch_begin_ns[l],
           .step_id = launch_rows[l].step_id.value_or(0),
           .mix = mix == mixes.end() ? nullptr : &mix->second});
      ++l;
    }
  }
}

const std::vector<std::size_t>* StepTimes::lanes_beside(std::int64_t thread_id) const {
  const auto process = process_of_thread_.find(thread_id);
  if (process == process_of_thread_.end()) return nullptr;
  const auto lanes = lanes_of_process_.find(process->second);
  return lanes == lanes_of_process_.end() ? nullptr : &lanes->second;
}

void StepTimes::add_copy(std::int64_t thread_id, Window window) {
  const std::vector<std::size_t>* lanes = lanes_beside(thread_id);
  if (lanes == nullptr) return;
  for (const std::size_t lane : *lanes) lanes_[lane].copies.add(window, {});
}

void StepTimes::add_wait(std::int64_t thread_id, Window window) {
  if (const auto lane = lane_of_thread_.find(thread_id); lane != lane_of_thread_.end())
    lanes_[lane->second].waits.add(window, {});
}

void StepTimes::advance(std::int64_t until_ns) {
  for (Lane& lane : lanes_) {
    for (; lane.next < lane.spans.size() && lane.spans[lane.next].window.begin_ns < until_ns; ++lane.next)
      lane.open.push_back(lane.spans[lane.next]);
    std::vector<Span> still_open;
    for (Span span : lane.open) {
      const std::int64_t end_ns = span.window.end_ns;
      span.window.end_ns = std::min(end_ns, until_ns);
      divide(lane, span);
      if (end_ns <= until_ns) {
        close(span.step);
      } else {
        span.window = {until_ns, end_ns};
        still_open.push_back(span);
      }
    }
    lane.open = std::move(still_open);
    for (Stretches* stretches : {&lane.kernels, &lane.copies, &lane.others, &lane.queued, &lane.waits})
      stretches->forget(until_ns);
  }
}

// Each kind of owner takes what those before it left.
void StepTimes::divide(Lane& lane, const Span& span) {
  Account& account = accounts_[span.step];
  const auto owned = [&](Owner owner) {
    return [&account, &span, owner](std::int64_t ns, const Stretch& stretch) {
      stretch.mix != nullptr ? put_mix(account, span, *stretch.mix, ns) : put(account, span, owner, stretch.op, ns);
    };
  };
  const auto host = [&](Window window) { divide_host(lane, window, span, account); };
  const auto wait = [&](Window window) { lane.waits.divide(window, owned(Owner::kWait), host); };
  const auto queued = [&](Window window) { lane.queued.divide(window, owned(Owner::kQueued), wait); };
  const auto other = [&](Window window) { lane.others.divide(window, owned(Owner::kOtherKernel), queued); };
  const auto copy = [&](Window window) { lane.copies.divide(window, owned(Owner::kCopy), other); };
  if (span.window.end_ns <= span.window.begin_ns) return;
  if (lane.copies.empty() && lane.others.empty() && lane.queued.empty() && lane.waits.empty()) {
    lane.kernels.divide(span.window, owned(Owner::kKernel), host);
  } else {
    lane.kernels.divide(span.window, owned(Owner::kKernel), copy);
  }
}

void StepTimes::divide_host(const Lane& lane, Window window, const Span& span, Account& account) {
  if (idle_ != nullptr)
    idle_->add({window, lane.thread_id, lane.process_id, span.step, span.after, !devices_.busiest_is_cpu}, timelines_);
  if (span.after) return put(account, span, Owner::kBetween, {}, window.end_ns - window.begin_ns);
  if (!devices_.busiest_is_cpu) return put(account, span, Owner::kGap, {}, window.end_ns - window.begin_ns);
  timelines_.divide(lane.thread_id, window.begin_ns, window.end_ns, [&](std::int64_t ns, std::int32_t range) {
    const trace::Name op = range == kNone ? trace::Name{} : operators_.of(classified_.places[range].module);
    put(account, span, op.id != 0 ? Owner::kHost : Owner::kGap, op, ns);
  });
}

void StepTimes::put(Account& account, const Span& span, Owner owner, trace::Name op, std::int64_t ns) {
  std::vector<Part>& parts = account.parts;
  const auto is_it = [&](const Part& part) { return part.owner == owner && part.op == op; };
  std::size_t& next = account.next[static_cast<std::size_t>(owner)];
  std::size_t at = next;
  if (at >= parts.size() || !is_it(parts[at])) {
    at = static_cast<std::size_t>(std::find_if(parts.begin(), parts.end(), is_it) - parts.begin());
    if (at == parts.size()) parts.push_back({owner, op});
  }
  next = at + 1;
  (span.after ? parts[at].after_ns : parts[at].time_ns) += ns;
}

// Whole nanoseconds that add up to `ns`.
void StepTimes::put_mix(Account& account, const Span& span, const Mix& mix, std::int64_t ns) {
  static constexpr std::array<Owner, 3> kOwnerOf = {Owner::kKernel, Owner::kCopy, Owner::kQueued};  // by NodeKind
  double share = 0;
  std::int64_t given = 0;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    share += mix[i].share;
    const std::int64_t until = i + 1 == mix.size() ? ns : std::llround(share * static_cast<double>(ns));
    put(account, span, kOwnerOf[static_cast<std::size_t>(mix[i].kind)], mix[i].op, until - given);
    given = until;
  }
}

void StepTimes::close(std::int32_t step) {
  Account& account = accounts_[step];
  if (--account.windows > 0) return;
  for (const Part& part : account.parts) {
    trace::StepTimeRow row{.step_id = step + 1,
                           .owner = owner_names_[static_cast<std::size_t>(part.owner)],
                           .op = part.op,
                           .time_ns = part.time_ns};
    if (account.sample) row.after_ns = part.after_ns;
    emit_(row);
  }
  accounts_.erase(step);
}

namespace {

constexpr std::int64_t kMuchLonger = 2;  // times the usual time
constexpr std::size_t kManySteps = 8, kNormalAgain = 3;

// How many steps at the begin are warming up.
std::size_t warming(const std::vector<std::int64_t>& lasted, bool prefill) {
  const std::size_t steps = lasted.size();
  if (steps < kManySteps) {
    if (!prefill || steps < 2) return 0;
    return lasted[0] > kMuchLonger * quantile(std::vector(lasted.begin() + 1, lasted.end()), 0.5) ? 1 : 0;
  }
  const std::vector<std::int64_t> later(lasted.begin() + static_cast<std::ptrdiff_t>(steps / 2), lasted.end());
  const std::int64_t usual = quantile(later, 0.5);
  const std::int64_t longest = std::max(usual + usual / 4, quantile(later, 0.98));
  std::size_t warm = 0, normal = 0;
  for (std::size_t i = 0; i < steps / 4 && normal < kNormalAgain; ++i) {
    normal = lasted[i] > longest ? 0 : normal + 1;
    if (normal == 0) warm = i + 1;
  }
  return warm;
}

}  // namespace

std::vector<bool> warm_up_steps(const std::vector<Step>& steps, const trace::Strings& strings) {
  using Size = std::tuple<std::int64_t, std::int64_t>;
  std::map<std::tuple<std::int64_t, std::uint32_t, Size>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (const std::string_view stage = strings.text(step.stage); stage == "compile" || stage == "load") continue;
    const Size size{step.size.batch.value_or(0), step.size.tokens.value_or(step.size.rows.value_or(0))};
    alike[{step.thread_id, step.stage.id, size}].push_back(i);
  }
  std::vector<bool> out(steps.size());
  for (const auto& [kind, places] : alike) {
    const bool prefill = strings.text(steps[places.front()].stage) == "prefill";
    std::vector<std::int64_t> lasted;
    for (const std::size_t i : places)
      lasted.push_back(std::max<std::int64_t>(0, steps[i].end_ns - (prefill ? steps[i].begin_ns : steps[i].turn())));
    // A prefill of unknown size may be longer because its prompt is.
    const bool sized = std::get<1>(std::get<2>(kind)) > 0;
    for (std::size_t i = 0; i < warming(lasted, prefill && sized); ++i) out[places[i]] = true;
  }
  return out;
}

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
