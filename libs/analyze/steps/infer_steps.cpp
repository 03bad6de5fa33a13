#include "analyze/steps/infer_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>

#include "analyze/model/work_reader.h"
#include "analyze/passes/busy.h"
#include "analyze/passes/kernel_class.h"
#include "analyze/passes/match_stages.h"
#include "analyze/passes/repeated_products.h"
#include "analyze/questions.h"

namespace llmprof::analyze {

namespace {

constexpr double kTrainingConfidence = 0.8;
constexpr double kPeriodicConfidence = 0.4;  // of a sequence that repeats without exception

struct Repeated {
  std::vector<Step> steps;
  MatrixSize separator;
};

// By products: the largest one separates the passes.
Result<Repeated> from_products(const trace::Run& run, const ProcessOfThread& process_of_thread,
                               trace::Strings& strings) {
  LLMPROF_LET(RunCalls direct, read_calls(run, process_of_thread));
  LLMPROF_LET(const RunCalls captured, read_captured_calls(run));
  direct.calls.segment.assign(direct.calls.size(), 0);
  const std::optional<MatrixSize> separator = separating_matrix(direct.calls, captured.calls);
  if (!separator) return Repeated{};
  Matches matches = repeated_passes(direct.calls, *separator);
  LLMPROF_TRY(add_launched_passes(run, repeated_passes(captured.calls, *separator), {}, matches));
  return Repeated{infer_steps(matches, process_of_thread, strings).steps, *separator};
}

// What is between two steps of a loop belongs to the first, unless it is longer than that: nothing ends a step but the
// next one.
void fill_pauses(std::vector<Step>& steps) {
  std::map<std::int64_t, Step*> last;  // of each thread
  for (Step& step : steps) {
    Step*& before = last[step.thread_id];
    if (before != nullptr && step.begin_ns > before->end_ns &&
        step.begin_ns - before->end_ns <= before->end_ns - before->begin_ns) {
      before->end_ns = step.begin_ns;
    }
    before = &step;
  }
}

// No model is known, and many programs multiply matrices: prompts and tokens are spoken of only where tokens follow
// each other one by one, and what separates them is as wide as a vocabulary. Else they are steps of some kind.
void name_honestly(Repeated& found, trace::Strings& strings) {
  constexpr std::ptrdiff_t kLeastTokens = 3;
  const auto tokens = std::ranges::count(found.steps, strings.intern("decode"), &Step::stage) +
                      std::ranges::count(found.steps, strings.intern("verify"), &Step::stage);
  if (found.separator.second >= kVocabulary * found.separator.first && tokens >= kLeastTokens) return;
  const trace::Name steps = strings.intern("steps");
  std::map<std::int64_t, std::int64_t> count;
  for (Step& step : found.steps) {
    step.stage = steps;
    step.size = {};
    step.number = count[step.process_id]++;
  }
  fill_pauses(found.steps);
}

// What each thread launched, in order of time.
Result<std::map<std::int64_t, LaunchSequence>> read_launches(const trace::Run& run) {
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "pass_launch_sequence"));
  std::map<std::int64_t, LaunchSequence> of_thread;
  for (std::size_t i = 0; i < columns.rows(); ++i) {
    LaunchSequence& sequence = of_thread[columns.values[0][i]];
    sequence.symbol.push_back(static_cast<std::uint32_t>(columns.values[1][i]));
    sequence.begin_ns.push_back(columns.values[2][i]);
    sequence.done_ns.push_back(columns.values[3][i]);
    sequence.device_ns.push_back(columns.values[4][i]);
  }
  return of_thread;
}

Result<std::vector<Step>> from_sequence(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                        trace::Strings& strings) {
  LLMPROF_LET(const auto launches, read_launches(run));
  std::vector<Step> steps;
  const trace::Name other = strings.intern("other");
  for (const auto& [thread, sequence] : launches) {
    const std::optional<Periodicity> periodicity = find_period(sequence);
    if (!periodicity) continue;
    for (const PeriodicStep& found : periodicity->steps) {
      Step step{.begin_ns = found.begin_ns,
                .end_ns = found.end_ns,
                .thread_id = thread,
                .process_id = process_of(process_of_thread, thread),
                .stage = other};
      step.confidence = kPeriodicConfidence * periodicity->match;
      steps.push_back(step);
    }
  }
  number_by_time(steps);
  return steps;
}

// Passes by thread, then begin.
std::map<std::int64_t, std::vector<Step>> by_thread(const std::vector<Step>& passes) {
  std::map<std::int64_t, std::vector<Step>> of_thread;
  for (const Step& pass : passes) of_thread[pass.thread_id].push_back(pass);
  return of_thread;
}

// ThreadLaunches of some threads, by thread, then by begin.
using ThreadLaunches = std::map<std::int64_t, std::vector<Window>>;

Result<ThreadLaunches> read_launches_of(const trace::Run& run, const std::set<std::int64_t>& threads,
                                        const std::string& condition) {
  ThreadLaunches launches;
  if (threads.empty()) return launches;
  LLMPROF_LET(
      const trace::Columns columns,
      run.columns(fmt::format("SELECT thread_id, launch_begin_ns, coalesce(launch_end_ns, launch_begin_ns) FROM "
                              "kernel WHERE thread_id IN ({}) AND launch_begin_ns IS NOT NULL AND {} ORDER BY 1, 2",
                              fmt::join(threads, ", "), condition)));
  for (std::size_t i = 0; i < columns.rows(); ++i)
    launches[columns.values[0][i]].push_back({columns.values[1][i], columns.values[2][i]});
  return launches;
}

// ThreadLaunches of kernels of some classes.
Result<ThreadLaunches> read_launches_of(const trace::Run& run, const std::set<std::int64_t>& threads,
                                        std::initializer_list<KernelClass> classes) {
  LLMPROF_LET(const std::string list,
              kernel_names(run, [&](KernelClass is) { return std::ranges::find(classes, is) != classes.end(); }));
  if (list.empty()) return ThreadLaunches{};
  return read_launches_of(run, threads, fmt::format("name IN ({})", list));
}

// The first and the last of a thread's launches that begin in [from, until).
std::optional<Window> launched_within(const ThreadLaunches& launches, std::int64_t thread, std::int64_t from,
                                      std::int64_t until) {
  const auto found = launches.find(thread);
  if (found == launches.end()) return std::nullopt;
  const auto first = std::ranges::lower_bound(found->second, from, {}, &Window::begin_ns);
  const auto behind = std::ranges::lower_bound(found->second, until, {}, &Window::begin_ns);
  if (first >= behind) return std::nullopt;
  return Window{first->begin_ns, std::prev(behind)->end_ns};
}

// Products tell the passes; other kernels belong to them, too. A thread of its own that goes back does nothing else:
// the gradient of the loss and those of embeddings are launched there. A forward pass begins with the lookup of its
// embeddings, and one that nothing is learned from ends with its loss.
Result<void> widen_passes(const trace::Run& run, std::vector<TrainingPass>& passes) {
  using Kind = TrainingPass::Kind;
  std::set<std::int64_t> back, forward;
  for (const TrainingPass& pass : passes) {
    if (pass.kind == Kind::kBackward && pass.back_thread_id != pass.thread_id) back.insert(pass.back_thread_id);
    if (pass.kind != Kind::kBackward) forward.insert(pass.thread_id);
  }
  LLMPROF_LET(const ThreadLaunches gradients, read_launches_of(run, back, "true"));
  LLMPROF_LET(const ThreadLaunches lookups, read_launches_of(run, forward, {KernelClass::kEmbedding}));
  LLMPROF_LET(const ThreadLaunches losses, read_launches_of(run, forward, {KernelClass::kLoss, KernelClass::kSoftmax}));
  for (std::size_t i = 0; i < passes.size(); ++i) {
    TrainingPass& pass = passes[i];
    TrainingPass* before = i > 0 && passes[i - 1].process_id == pass.process_id ? &passes[i - 1] : nullptr;
    if (pass.kind != Kind::kForward && pass.kind != Kind::kForwardOnly) continue;
    const std::int64_t from = before != nullptr ? before->end_ns : pass.begin_ns - (pass.end_ns - pass.begin_ns);
    if (const auto lookup = launched_within(lookups, pass.thread_id, from, pass.begin_ns))
      pass.begin_ns = lookup->begin_ns;
    if (before == nullptr || before->kind != Kind::kForwardOnly) continue;
    if (const auto loss = launched_within(losses, before->thread_id, before->end_ns, pass.begin_ns))
      before->end_ns = loss->end_ns;
  }
  for (std::size_t i = 0; i < passes.size(); ++i) {
    TrainingPass& pass = passes[i];
    if (pass.kind != Kind::kBackward || i == 0 || passes[i - 1].kind != Kind::kForward) continue;
    const bool followed = i + 1 < passes.size() && passes[i + 1].process_id == pass.process_id;
    const auto own = launched_within(gradients, pass.back_thread_id, passes[i - 1].begin_ns,
                                     followed ? passes[i + 1].begin_ns : INT64_MAX);
    if (!own) continue;
    passes[i - 1].end_ns = pass.begin_ns = std::min(pass.begin_ns, own->begin_ns);
    pass.end_ns = std::max(pass.end_ns, own->end_ns);
    if (followed) pass.end_ns = std::min(pass.end_ns, passes[i + 1].begin_ns);
  }
  return {};
}

struct AttentionGrid {
  std::int64_t at_ns = 0, x = 0, y = 0, z = 0;
};

// ThreadLaunches of attention kernels, by time.
Result<std::vector<AttentionGrid>> read_attention_grids(const trace::Run& run) {
  LLMPROF_LET(const std::string list,
              kernel_names(
                  run, [](KernelClass is) { return is == KernelClass::kAttention; }, "grid_y > 1 OR grid_z > 1"));
  std::vector<AttentionGrid> grids;
  if (list.empty()) return grids;
  LLMPROF_LET(
      const trace::Columns columns,
      run.columns(fmt::format("SELECT launch_begin_ns, grid_x::BIGINT, grid_y::BIGINT, grid_z::BIGINT FROM kernel "
                              "WHERE name IN ({}) AND launch_begin_ns IS NOT NULL ORDER BY 1",
                              list)));
  for (std::size_t i = 0; i < columns.rows(); ++i)
    grids.push_back({columns.values[0][i], columns.values[1][i], columns.values[2][i], columns.values[3][i]});
  return grids;
}

// Sequences in a batch of `rows`, if all grids that have the heads on one side agree; 0: they do not say.
std::int64_t sequences_of(const std::vector<AttentionGrid>& grids, const Step& step, std::int64_t heads) {
  constexpr std::int64_t kMostOfBlock = 1024;  // tokens of a sequence that a block works on
  std::int64_t found = 0;
  for (auto grid = std::ranges::lower_bound(grids, step.begin_ns, {}, &AttentionGrid::at_ns);
       grid != grids.end() && grid->at_ns < step.end_ns; ++grid) {
    if (grid->y != heads && grid->z != heads) continue;
    const std::int64_t sequences = grid->z == heads ? grid->y : grid->z;
    if (sequences <= 0 || *step.size.rows % sequences != 0) return 0;
    const std::int64_t tokens = *step.size.rows / sequences;
    if (grid->x > tokens || grid->x * kMostOfBlock < tokens || (found != 0 && found != sequences)) return 0;
    found = sequences;
  }
  return found;
}

bool lacks_size(const Step& step) { return step.declared() && !step.size.batch && !step.size.tokens; }

}  // namespace

Result<std::vector<TrainingPass>> find_training(const trace::Run& run, const Calls& calls,
                                                const ProcessOfThread& process_of_thread) {
  if (calls.size() == 0) return std::vector<TrainingPass>{};
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "pass_updates"));
  Updates updates{{}, std::move(columns.values[1]), std::move(columns.values[2])};
  for (const std::int64_t thread : columns.values[0])
    updates.process_id.push_back(process_of(process_of_thread, thread));
  return training_passes(calls, updates);
}

Result<std::vector<Step>> infer_training(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                         trace::Strings& strings) {
  LLMPROF_LET(const RunCalls direct, read_calls(run, process_of_thread));
  LLMPROF_LET(std::vector<TrainingPass> passes, find_training(run, direct.calls, process_of_thread));
  LLMPROF_TRY(widen_passes(run, passes));
  constexpr std::array<std::string_view, 4> kStages{"forward", "backward", "optimizer", "forward only"};
  std::vector<Step> steps;
  for (const TrainingPass& pass : passes) {
    Step step{.begin_ns = pass.begin_ns,
              .end_ns = pass.end_ns,
              .thread_id = pass.thread_id,
              .process_id = pass.process_id,
              .stage = strings.intern(kStages[static_cast<std::size_t>(pass.kind)])};
    if (pass.rows > 0) step.size.rows = pass.rows;
    if (pass.tokens > 0) step.size = {.batch = pass.rows / pass.tokens, .tokens = pass.tokens, .context = pass.tokens};
    step.confidence = kTrainingConfidence;
    steps.push_back(step);
  }
  number_by_time(steps);
  return steps;
}

Result<void> size_by_attention(const trace::Run& run, std::int64_t heads, const trace::Strings& strings,
                               Classified& classified) {
  const auto lacks = [&](const Step& step) {
    const std::string_view stage = strings.text(step.stage);
    return (stage == "forward" || stage == "backward") && step.size.rows && !step.size.batch && !step.size.tokens;
  };
  if (heads < 2 || std::ranges::none_of(classified.steps, lacks)) return {};
  LLMPROF_LET(const std::vector<AttentionGrid> grids, read_attention_grids(run));
  std::map<std::int64_t, StepSize> behind;  // by process: the step that follows
  for (std::size_t i = classified.steps.size(); i-- > 0;) {
    Step& step = classified.steps[i];
    if (!lacks(step)) continue;
    const std::int64_t rows = *step.size.rows;
    const std::int64_t sequences = sequences_of(grids, step, heads);
    const StepSize& next = behind[step.process_id];
    if (sequences > 0) {
      step.size = {.batch = sequences, .tokens = rows / sequences, .context = rows / sequences};
    } else if (strings.text(step.stage) == "forward" && next.batch && *next.batch * *next.tokens == rows) {
      step.size = next;
    }
    behind[step.process_id] = step.size;
  }
  return {};
}

Result<void> size_declared_steps(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                 trace::Strings& strings, Classified& classified) {
  if (std::none_of(classified.steps.begin(), classified.steps.end(), lacks_size)) return {};
  LLMPROF_LET(const Repeated found_passes, from_products(run, process_of_thread, strings));
  const auto of_thread = by_thread(found_passes.steps);
  for (Step& step : classified.steps) {
    const auto found = of_thread.find(step.thread_id);
    if (!lacks_size(step) || found == of_thread.end()) continue;
    const auto begins_before = [](const Step& pass, std::int64_t ns) { return pass.begin_ns < ns; };
    const auto& all = found->second;
    const auto first = std::lower_bound(all.begin(), all.end(), step.begin_ns, begins_before);
    const auto behind = std::lower_bound(first, all.end(), step.end_ns, begins_before);
    if (behind - first == 1 && first->stage == step.stage) step.size = first->size;
  }
  return {};
}

Result<std::vector<Step>> infer_launch_steps(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                             trace::Strings& strings) {
  LLMPROF_LET(Repeated found, from_products(run, process_of_thread, strings));
  name_honestly(found, strings);
  if (!found.steps.empty()) return std::move(found.steps);
  return from_sequence(run, process_of_thread, strings);
}

}  // namespace llmprof::analyze
