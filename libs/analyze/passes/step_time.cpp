#include "analyze/passes/step_time.h"

#include <algorithm>
#include <cmath>

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

StepTimes::StepTimes(const Ranges& ranges, const Classified& classified,
                     const std::unordered_map<std::int64_t, std::int64_t>& process_of_thread, Devices devices,
                     trace::Strings& strings, Emit emit, IdleTime* idle)
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
    std::stable_sort(lane.spans.begin(), lane.spans.end(),
                     [](const Span& a, const Span& b) { return a.window.begin_ns < b.window.begin_ns; });
  }
}

std::size_t StepTimes::lane_of_step(std::int64_t step_id) {
  if (step_id != last_step_id_) {
    last_step_id_ = step_id;
    last_lane_ = lane_of_thread_.at(classified_.steps[static_cast<std::size_t>(step_id - 1)].thread_id);
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

}  // namespace llmprof::analyze
