#include "analyze/infer_steps.h"

#include <algorithm>
#include <array>
#include <map>

#include "analyze/passes/match_stages.h"
#include "analyze/passes/periodic.h"
#include "analyze/passes/repeated_products.h"
#include "analyze/passes/training.h"
#include "analyze/questions.h"
#include "analyze/run_calls.h"

namespace llmprof::analyze {
namespace {

constexpr double kTrainingConfidence = 0.8;
constexpr double kPeriodicConfidence = 0.4;  // of a sequence that repeats without exception

using ProcessOfThread = std::unordered_map<std::int64_t, std::int64_t>;

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
  LLMPROF_LET(const trace::Columns columns, ask_columns(run, "sql/pass_launch_sequence"));
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
    const auto process = process_of_thread.find(thread);
    for (const PeriodicStep& found : periodicity->steps) {
      Step step{.begin_ns = found.begin_ns,
                .end_ns = found.end_ns,
                .thread_id = thread,
                .process_id = process == process_of_thread.end() ? 0 : process->second,
                .stage = other};
      step.confidence = kPeriodicConfidence * periodicity->match;
      steps.push_back(step);
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.begin_ns < b.begin_ns; });
  std::map<std::int64_t, std::int64_t> count;
  for (Step& step : steps) step.number = count[step.process_id]++;
  return steps;
}

// Passes by thread, then begin.
std::map<std::int64_t, std::vector<Step>> by_thread(const std::vector<Step>& passes) {
  std::map<std::int64_t, std::vector<Step>> of_thread;
  for (const Step& pass : passes) of_thread[pass.thread_id].push_back(pass);
  return of_thread;
}

bool lacks_size(const Step& step) { return step.declared() && !step.size.batch && !step.size.tokens; }

}  // namespace

Result<std::vector<Step>> infer_training(const trace::Run& run, const ProcessOfThread& process_of_thread,
                                         trace::Strings& strings) {
  LLMPROF_LET(const RunCalls direct, read_calls(run, process_of_thread));
  if (direct.calls.size() == 0) return std::vector<Step>{};
  LLMPROF_LET(trace::Columns columns, ask_columns(run, "sql/pass_updates"));
  Updates updates{{}, std::move(columns.values[1]), std::move(columns.values[2])};
  for (const std::int64_t thread : columns.values[0]) {
    const auto process = process_of_thread.find(thread);
    updates.process_id.push_back(process == process_of_thread.end() ? 0 : process->second);
  }
  constexpr std::array<std::string_view, 4> kStages{"forward", "backward", "optimizer", "forward only"};
  std::vector<Step> steps;
  std::map<std::pair<std::int64_t, std::uint32_t>, std::int64_t> count;
  for (const TrainingPass& pass : training_passes(direct.calls, updates)) {
    Step step{.begin_ns = pass.begin_ns,
              .end_ns = pass.end_ns,
              .thread_id = pass.thread_id,
              .process_id = pass.process_id,
              .stage = strings.intern(kStages[static_cast<std::size_t>(pass.kind)])};
    if (pass.rows > 0) step.size.rows = pass.rows;
    if (pass.tokens > 0) step.size = {.batch = pass.rows / pass.tokens, .tokens = pass.tokens, .context = pass.tokens};
    step.number = count[{step.process_id, step.stage.id}]++;
    step.confidence = kTrainingConfidence;
    steps.push_back(step);
  }
  std::ranges::stable_sort(steps, {}, &Step::begin_ns);
  return steps;
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
