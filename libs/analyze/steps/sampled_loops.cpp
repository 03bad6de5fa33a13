#include "analyze/steps/sampled_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "analyze/passes/sampled_training.h"
#include "analyze/questions.h"
#include "analyze/rows_of.h"

namespace llmprof::analyze {

namespace {

using ProcessOfThread = std::unordered_map<std::int64_t, std::int64_t>;

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
  LLMPROF_LET(const trace::Columns stacks, ask_columns(run, "sql/pass_sampled_stacks"));
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

Result<bool> works_on_gpu(const trace::Run& run) {
  LLMPROF_LET(const trace::ResultTable found,
              run.query("SELECT EXISTS (SELECT 1 FROM kernel AS k JOIN device AS d ON d.id = k.device_id WHERE d.kind "
                        "<> 'cpu')::BIGINT + EXISTS (SELECT 1 FROM graph_launch)::BIGINT"));
  return found.rows[0][0].as_int() > 0;
}

}  // namespace

Result<SampledLoops> find_sampled_loops(const trace::Run& run, const std::vector<RangePattern>& patterns,
                                        const ProcessOfThread& process_of_thread, trace::Strings& strings) {
  SampledLoops out;
  LLMPROF_LET(const bool gpu, works_on_gpu(run));
  if (gpu) return out;
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
  LLMPROF_LET(const trace::ResultTable table, ask(run, "sql/sampled_stages"));
  if (table.rows.empty()) return {};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RowView row{table, i};
    host.sampled_stages.push_back({.function = row.text("function"),
                                   .caller = row.text("caller"),
                                   .stage = row.text("stage"),
                                   .samples = row.integer("samples"),
                                   .time_ns = row.integer("time_ns"),
                                   .passes = row.maybe_integer("passes"),
                                   .changes = row.integer("changes"),
                                   .parts = {}});
  }
  LLMPROF_LET(const trace::ResultTable parts, ask(run, "sql/sampled_parts"));
  for (std::size_t i = 0; i < parts.rows.size(); ++i) {
    const RowView row{parts, i};
    const auto stage = std::ranges::find(host.sampled_stages, row.text("stage"), &SampledStage::stage);
    if (stage == host.sampled_stages.end()) continue;
    stage->parts.push_back({row.text("part"), row.integer("samples"), row.integer("time_ns")});
  }
  return {};
}

}  // namespace llmprof::analyze
