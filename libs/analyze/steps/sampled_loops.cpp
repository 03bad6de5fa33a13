#include "analyze/steps/sampled_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "analyze/names/range_words.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

struct StackTells {  // by a stack: its outermost function that says something
  LoopPart part = LoopPart::kNothing;
  std::string function, caller, inside;  // inside: what the function calls there; itself if nothing
};

struct ToldSample {
  std::int64_t id = 0, at_ns = 0, weight_ns = 0;
  const StackTells* told = nullptr;
};

using ToldSamples = std::map<std::int64_t, std::vector<ToldSample>>;  // by thread, each by time

// OpenMP and compilers give parts of a function names of their own: "matmul_forward._omp_fn.0".
std::string plain_name(std::string name) {
  for (const std::string_view tail : {" [clone", "._omp_fn", ".part.", ".constprop.", ".isra.", ".cold"}) {
    if (const std::size_t at = name.find(tail); at != std::string::npos && at > 0) name.resize(at);
  }
  return name;
}

Result<std::map<std::int64_t, StackTells>> read_telling_stacks(const trace::Run& run,
                                                               const std::vector<RangePattern>& patterns) {
  LLMPROF_LET(const trace::Columns stacks, ask_columns(run, "pass_sampled_stacks"));
  std::map<std::int64_t, LoopPart> says;  // by code of the function
  std::map<std::int64_t, StackTells> told;
  for (std::size_t i = 0; i < stacks.rows();) {
    const std::int64_t stack = stacks.values[0][i];
    const std::size_t outermost = i;
    std::size_t end = i;
    while (end < stacks.rows() && stacks.values[0][end] == stack) ++end;
    const auto name = [&](std::size_t at) { return plain_name(stacks.names[stacks.values[2][at]]); };
    for (; i < end; ++i) {
      const auto [entry, fresh] = says.try_emplace(stacks.values[2][i]);
      if (fresh) entry->second = loop_part(name(i), patterns);
      if (entry->second == LoopPart::kNothing) continue;
      told[stack] = {entry->second, name(i), i > outermost ? name(i - 1) : "", i + 1 < end ? name(i + 1) : name(i)};
      break;
    }
    i = end;
  }
  return told;
}

Result<ToldSamples> read_told_samples(const trace::Run& run, const std::map<std::int64_t, StackTells>& told) {
  LLMPROF_LET(const trace::Columns columns,
              run.columns("SELECT id, thread_id, ts_ns, weight_ns, stack_id FROM sample WHERE stack_id IS NOT NULL "
                          "ORDER BY ts_ns, id"));
  ToldSamples samples;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    const auto found = told.find(columns.values[4][i]);
    if (found == told.end()) continue;
    samples[columns.values[1][i]].push_back(
        {columns.values[0][i], columns.values[2][i], columns.values[3][i], &found->second});
  }
  return samples;
}

// The function that calls forward and backward functions, with most samples in them; "" if none calls both.
std::string function_with_loop(const std::vector<ToldSample>& samples) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> calls;  // forward, backward
  for (const ToldSample& sample : samples) {
    if (sample.told->caller.empty()) continue;
    auto& [forward, backward] = calls[sample.told->caller];
    if (sample.told->part == LoopPart::kForward) ++forward;
    if (sample.told->part == LoopPart::kBackward) ++backward;
  }
  std::string best;
  std::int64_t most = 0;
  for (const auto& [caller, count] : calls) {
    const auto& [forward, backward] = count;
    if (forward == 0 || backward == 0 || forward + backward <= most) continue;
    most = forward + backward;
    best = caller;
  }
  return best;
}

struct ThreadLoop {
  std::int64_t thread_id = 0, process_id = 0;
  std::string caller;
  std::vector<LoopSample> samples;  // as those of the thread
  SampledLoop loop;
};

std::optional<ThreadLoop> loop_of(std::int64_t thread_id, std::int64_t process_id,
                                  const std::vector<ToldSample>& samples) {
  ThreadLoop out{.thread_id = thread_id, .process_id = process_id, .caller = function_with_loop(samples)};
  if (out.caller.empty()) return std::nullopt;
  std::set<std::string> own;  // functions that the loop calls: also known where the outer frames of a stack are missing
  for (const ToldSample& sample : samples) {
    if (sample.told->caller == out.caller) own.insert(sample.told->function);
  }
  for (const ToldSample& sample : samples) {
    const StackTells& told = *sample.told;
    LoopPart part = told.part;
    // The same function called by another one than the loop serves something else: sampling text, or measuring.
    if (!told.caller.empty() && told.caller != out.caller && part == LoopPart::kForward) part = LoopPart::kForwardOnly;
    if (told.caller.empty() && !own.contains(told.function)) part = LoopPart::kNothing;
    out.samples.push_back({.at_ns = sample.at_ns, .weight_ns = sample.weight_ns, .part = part});
  }
  std::optional<SampledLoop> found = find_loop(out.samples);
  if (!found) return std::nullopt;
  out.loop = std::move(*found);
  return out;
}

void add_steps_of(const ThreadLoop& thread, trace::Strings& strings, std::vector<Step>& steps) {
  if (!thread.loop.countable) return;
  std::map<LoopPart, std::int64_t> count;
  for (const LoopPass& pass : thread.loop.passes) {
    if (pass.part == LoopPart::kForwardOnly) continue;  // how many they are is not known
    Step step{.begin_ns = pass.begin_ns,
              .end_ns = pass.end_ns,
              .thread_id = thread.thread_id,
              .process_id = thread.process_id,
              .stage = strings.intern(loop_stage(pass.part))};
    step.number = count[pass.part]++;
    step.confidence = kSampledConfidence;
    steps.push_back(step);
  }
}

void add_rows_of(const ThreadLoop& thread, const std::vector<ToldSample>& samples, trace::Strings& strings,
                 std::vector<trace::SampledStageRow>& rows) {
  std::map<std::pair<LoopPart, std::string>, std::pair<std::int64_t, std::int64_t>> sums;  // samples, time
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (thread.samples[i].part == LoopPart::kNothing) continue;
    auto& [count, time_ns] = sums[{thread.samples[i].part, samples[i].told->function}];
    ++count;
    time_ns += samples[i].weight_ns;
  }
  for (const auto& [key, sum] : sums) {
    trace::SampledStageRow row{.process_id = thread.process_id, .thread_id = thread.thread_id};
    row.function = strings.intern(key.second);
    row.caller = strings.intern(thread.caller);
    row.stage = strings.intern(loop_stage(key.first));
    row.samples = sum.first;
    row.time_ns = sum.second;
    row.passes = thread.loop.counted[static_cast<std::size_t>(key.first)];
    row.changes = thread.loop.changes;
    rows.push_back(row);
  }
}

// Worker threads know which way they go, not what for: that is what the loop did then.
LoopPart part_of_worker(const SampledLoop& loop, LoopPart part, std::int64_t at_ns) {
  if (part != LoopPart::kForward) return part;
  const auto after = std::ranges::upper_bound(loop.passes, at_ns, {}, &LoopPass::begin_ns);
  const bool only = after != loop.passes.begin() && std::prev(after)->part == LoopPart::kForwardOnly;
  return only ? LoopPart::kForwardOnly : part;
}

Result<std::int64_t> works_on_gpu(const trace::Run& run) {
  return ask_number(run,
                    "SELECT EXISTS (SELECT 1 FROM kernel AS k JOIN device AS d ON d.id = k.device_id WHERE d.kind <> "
                    "'cpu')::BIGINT + EXISTS (SELECT 1 FROM graph_launch)::BIGINT");
}

struct PartOfStage {
  std::string stage, part;
  std::int64_t samples = 0, time_ns = 0;
};

}  // namespace

Result<SampledLoops> find_sampled_loops(const trace::Run& run, const std::vector<RangePattern>& patterns,
                                        const ProcessOfThread& process_of_thread, trace::Strings& strings) {
  SampledLoops out;
  LLMPROF_LET(const std::int64_t gpu, works_on_gpu(run));
  if (gpu > 0) return out;
  LLMPROF_LET(const auto told, read_telling_stacks(run, patterns));
  if (told.empty()) return out;
  LLMPROF_LET(const ToldSamples samples, read_told_samples(run, told));
  std::map<std::int64_t, ThreadLoop> loops;  // by process: the thread with most passes goes through it
  for (const auto& [thread, of_thread] : samples) {
    const auto process = process_of_thread.find(thread);
    if (process == process_of_thread.end()) continue;
    std::optional<ThreadLoop> found = loop_of(thread, process->second, of_thread);
    if (!found) continue;
    const auto known = loops.find(process->second);
    if (known == loops.end() || known->second.loop.changes < found->loop.changes)
      loops.insert_or_assign(process->second, std::move(*found));
  }
  for (const auto& [process, loop] : loops) {
    add_steps_of(loop, strings, out.steps);
    add_rows_of(loop, samples.at(loop.thread_id), strings, out.rows);
  }
  for (const auto& [thread, of_thread] : samples) {
    const auto process = process_of_thread.find(thread);
    const auto loop = process == process_of_thread.end() ? loops.end() : loops.find(process->second);
    if (loop == loops.end()) continue;
    for (std::size_t i = 0; i < of_thread.size(); ++i) {
      const bool own = thread == loop->second.thread_id;
      const LoopPart part = own ? loop->second.samples[i].part
                                : part_of_worker(loop->second.loop, of_thread[i].told->part, of_thread[i].at_ns);
      if (part == LoopPart::kNothing) continue;
      out.places[of_thread[i].id] = {strings.intern(loop_stage(part)), strings.intern(of_thread[i].told->inside)};
    }
  }
  std::ranges::stable_sort(out.steps, {}, &Step::begin_ns);
  return out;
}

Result<void> fill_sampled_stages(const trace::Run& run, Host& host) {
  LLMPROF_LET(host.sampled_stages, ask_rows<SampledStage>(run, "sampled_stages"));
  if (host.sampled_stages.empty()) return {};
  LLMPROF_LET(const std::vector<PartOfStage> parts, ask_rows<PartOfStage>(run, "sampled_parts"));
  for (const PartOfStage& row : parts) {
    const auto stage = std::ranges::find(host.sampled_stages, row.stage, &SampledStage::stage);
    if (stage != host.sampled_stages.end()) stage->parts.push_back({row.part, row.samples, row.time_ns});
  }
  return {};
}

namespace {

constexpr std::int64_t kLeastSamples = 10;  // of the forward and of the backward functions
constexpr std::int64_t kLeastChanges = 3;
// A pass that lasts n samples and a bit has n or n + 1 of them: where nine of ten have two, a pass lasts 1.9, and none
// can have fallen between two samples.
constexpr std::size_t kLeastOfPass = 2;
constexpr double kSharePlain = 0.9;
// Twice as long as the short ones: two passes that samples do not separate.
constexpr double kTooLong = 1.6, kShareTooLong = 0.05;
constexpr double kTwoPasses = 1.9;

struct Streak {  // samples of one part in a row
  LoopPart part = LoopPart::kNothing;
  std::size_t first = 0, last = 0;  // of the samples
  std::size_t size = 0;
};

std::vector<Streak> streaks_of(std::span<const LoopSample> samples) {
  std::vector<Streak> out;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].part == LoopPart::kNothing) continue;
    if (out.empty() || out.back().part != samples[i].part) out.push_back({samples[i].part, i, i, 0});
    out.back().last = i;
    ++out.back().size;
  }
  return out;
}

std::vector<std::size_t> sizes_of(std::span<const Streak> streaks, LoopPart part) {
  std::vector<std::size_t> sizes;
  for (const Streak& streak : streaks) {
    if (streak.part == part) sizes.push_back(streak.size);
  }
  return sizes;
}

double share_of(const std::vector<std::size_t>& sizes, double more_than) {
  const auto more = std::ranges::count_if(sizes, [&](std::size_t n) { return static_cast<double>(n) > more_than; });
  return static_cast<double>(more) / static_cast<double>(sizes.size());
}

// A forward pass that no backward pass follows learns nothing: validation or generation. Where several such passes
// come before one that does, samples show one long streak; its end is as long as a forward pass usually is.
void find_forward_only(std::vector<LoopSample>& samples, bool by_length) {
  const std::vector<Streak> streaks = streaks_of(samples);
  const std::size_t usual = quantile(sizes_of(streaks, LoopPart::kForward), 0.5);
  for (std::size_t i = 0; i < streaks.size(); ++i) {
    const Streak& streak = streaks[i];
    if (streak.part != LoopPart::kForward) continue;
    const bool learns = i + 1 < streaks.size() && streaks[i + 1].part == LoopPart::kBackward;
    std::size_t others = learns ? 0 : streak.size;
    // At least a whole pass more: a pass that others disturb is longer, too.
    if (by_length && streak.size >= kTwoPasses * usual && streak.size > usual + 2)
      others = std::max(others, streak.size - usual);
    for (std::size_t at = streak.first; others > 0; ++at) {
      if (samples[at].part != LoopPart::kForward) continue;
      samples[at].part = LoopPart::kForwardOnly;
      --others;
    }
  }
}

bool can_be_counted(std::span<const Streak> streaks, LoopPart part) {
  const std::vector<std::size_t> sizes = sizes_of(streaks, part);
  if (sizes.empty() || share_of(sizes, kLeastOfPass - 1) < kSharePlain) return false;
  return share_of(sizes, kTooLong * static_cast<double>(quantile(sizes, 0.25)) + 1) <= kShareTooLong;
}

// A sample tells that the part was there at this moment. Between two of them the change is somewhere: in the middle, on
// average.
std::vector<LoopPass> passes_of(std::span<const LoopSample> samples, std::span<const Streak> streaks) {
  std::vector<LoopPass> passes;
  for (const Streak& streak : streaks) {
    const LoopSample &first = samples[streak.first], &last = samples[streak.last];
    passes.push_back({.part = streak.part,
                      .begin_ns = first.at_ns - first.weight_ns / 2,
                      .end_ns = last.at_ns + last.weight_ns / 2,
                      .samples = static_cast<std::int64_t>(streak.size)});
    if (passes.size() < 2) continue;
    LoopPass& before = passes[passes.size() - 2];
    const std::int64_t last_before_ns = samples[streaks[passes.size() - 2].last].at_ns;
    const std::int64_t middle_ns = last_before_ns + (first.at_ns - last_before_ns) / 2;
    constexpr std::int64_t kNear = 2;  // periods: nothing else was there in between
    if (first.at_ns - last_before_ns <= kNear * first.weight_ns || before.end_ns > passes.back().begin_ns)
      before.end_ns = passes.back().begin_ns = middle_ns;
  }
  return passes;
}

}  // namespace

std::string_view loop_stage(LoopPart part) {
  static constexpr std::array<std::string_view, kLoopParts> kNames{"", "forward", "backward", "optimizer",
                                                                   "forward only"};
  return kNames[static_cast<std::size_t>(part)];
}

LoopPart loop_part(std::string_view function, const std::vector<RangePattern>& patterns) {
  if (function.starts_with("std::") || function.starts_with("__gnu_cxx::")) return LoopPart::kNothing;
  // The class and the method: "gpt2::GPT2::Forward" is a pass whatever its namespaces are called.
  if (const std::size_t method = function.rfind("::"); method != std::string_view::npos && method > 0) {
    const std::size_t scope = function.rfind("::", method - 1);
    if (scope != std::string_view::npos) function.remove_prefix(scope + 2);
  }
  const Meaning meaning = meaning_of(function, "", "", patterns);
  if (meaning.kind == RangeKind::kStep) {
    if (meaning.stage == "forward") return LoopPart::kForward;
    if (meaning.stage == "backward") return LoopPart::kBackward;
    if (meaning.stage == "optimizer" || meaning.stage == "update") return LoopPart::kOptimizer;
    if (meaning.stage == "validation" || meaning.stage == "generation") return LoopPart::kForwardOnly;
    return LoopPart::kNothing;
  }
  // Parts have a direction, too, for loops that call them one by one, and for threads that work for them alone.
  switch (direction_of(function)) {
    case Direction::kForward:
      return LoopPart::kForward;
    case Direction::kBackward:
      return LoopPart::kBackward;
    case Direction::kNeither:
      break;
  }
  return LoopPart::kNothing;
}

std::optional<SampledLoop> find_loop(std::vector<LoopSample>& samples) {
  const auto of = [&](LoopPart part) { return std::ranges::count(samples, part, &LoopSample::part); };
  if (of(LoopPart::kForward) < kLeastSamples || of(LoopPart::kBackward) < kLeastSamples) return std::nullopt;
  SampledLoop loop;
  const std::vector<Streak> seen = streaks_of(samples);
  for (std::size_t i = 1; i < seen.size(); ++i) {
    if (seen[i - 1].part == LoopPart::kForward && seen[i].part == LoopPart::kBackward) ++loop.changes;
  }
  if (loop.changes < kLeastChanges) return std::nullopt;
  const std::vector<LoopSample> as_seen = samples;
  find_forward_only(samples, true);
  // The length of a stretch tells nothing where passes are uneven, nor where few are longer: others disturbed them.
  if (!can_be_counted(streaks_of(samples), LoopPart::kForward) || of(LoopPart::kForwardOnly) < kLeastSamples) {
    samples = as_seen;
    find_forward_only(samples, false);
  }
  const std::vector<Streak> streaks = streaks_of(samples);
  loop.passes = passes_of(samples, streaks);
  const auto count = [&](LoopPart part) {
    loop.counted[static_cast<std::size_t>(part)] = std::ranges::count(streaks, part, &Streak::part);
  };
  if (!can_be_counted(streaks, LoopPart::kForward) || !can_be_counted(streaks, LoopPart::kBackward)) return loop;
  count(LoopPart::kForward);
  count(LoopPart::kBackward);
  const bool updates = of(LoopPart::kOptimizer) > 0;
  const bool updates_counted = updates && can_be_counted(streaks, LoopPart::kOptimizer);
  if (updates_counted) count(LoopPart::kOptimizer);
  loop.countable = updates_counted || !updates;
  return loop;
}

}  // namespace llmprof::analyze
