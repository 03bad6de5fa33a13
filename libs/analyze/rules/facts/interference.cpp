#include "analyze/rules/facts/interference.h"

#include <algorithm>

namespace llmprof::analyze {
namespace {

struct Window {
  std::int64_t thread_id = 0, begin_ns = 0, end_ns = 0;
};

// A thread that begins anew (the same number of sequences, shorter than before) is not interrupted: nobody waited.
bool goes_on(const PassStep& before, const PassStep& step) {
  if (before.context == 0 || step.context == 0) return true;
  return step.context > before.context || step.batch > before.batch;
}

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::int64_t quantile_99(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::max<std::size_t>(1, (values.size() * 99 + 99) / 100) - 1];
}

// Prefills of other threads beside the time of a step; few, so a search per step is cheap enough.
bool beside(const std::vector<Window>& prefills, std::int64_t longest, const PassStep& step) {
  auto at = std::ranges::lower_bound(prefills, step.begin_ns - longest, {}, &Window::begin_ns);
  for (; at != prefills.end() && at->begin_ns < step.end_ns; ++at) {
    if (at->thread_id != step.thread_id && at->end_ns > step.begin_ns) return true;
  }
  return false;
}

}  // namespace

InterferenceFacts interference_of(const std::vector<PassStep>& steps) {
  using Kind = PassStep::Kind;
  std::vector<Window> prefills;
  std::int64_t longest = 0;
  for (const PassStep& step : steps) {
    if (step.kind != Kind::kPrefill && step.kind != Kind::kMixed) continue;
    prefills.push_back({step.thread_id, step.begin_ns, step.end_ns});
    longest = std::max(longest, step.end_ns - step.begin_ns);
  }
  std::ranges::sort(prefills, {}, &Window::begin_ns);
  InterferenceFacts out{.prefills = static_cast<std::int64_t>(prefills.size())};
  std::vector<std::int64_t> clean, interrupted;
  const PassStep* before = nullptr;  // the last step of the thread that made tokens
  bool prefill_between = false;
  for (const PassStep& step : steps) {
    if (before != nullptr && before->thread_id != step.thread_id) before = nullptr, prefill_between = false;
    if (step.kind == Kind::kPrefill) prefill_between = true;
    if (step.kind == Kind::kOther) before = nullptr;
    if (step.kind != Kind::kDecode && step.kind != Kind::kMixed) continue;
    if (before != nullptr && goes_on(*before, step) && step.end_ns > before->end_ns) {
      const bool hit = prefill_between || step.kind == Kind::kMixed || beside(prefills, longest, step);
      (hit ? interrupted : clean).push_back(step.end_ns - before->end_ns);
    }
    before = &step;
    prefill_between = false;
  }
  out.clean_p50_ns = median(clean), out.interrupted_p50_ns = median(interrupted);
  out.interrupted = static_cast<std::int64_t>(interrupted.size());
  for (const std::int64_t ns : interrupted) out.extra_ns += std::max<std::int64_t>(0, ns - out.clean_p50_ns);
  std::vector<std::int64_t> all = std::move(clean);
  all.insert(all.end(), interrupted.begin(), interrupted.end());
  out.intervals = static_cast<std::int64_t>(all.size());
  for (const std::int64_t ns : all) out.all_ns += ns;
  out.p99_ns = quantile_99(std::move(all));
  return out;
}

Result<InterferenceFacts> interference(const trace::Run& run) {
  LLMPROF_LET(
      const trace::Columns columns,
      run.columns("SELECT thread_id, begin_ns, end_ns, coalesce(batch, 0) AS batch, coalesce(context, 0) AS context, "
                  "CAST(CASE stage WHEN 'decode' THEN 0 WHEN 'mixed' THEN 1 WHEN 'prefill' THEN 2 ELSE 3 END AS "
                  "BIGINT) AS kind "
                  "FROM step ORDER BY thread_id, begin_ns"));
  std::vector<PassStep> steps;
  const auto& v = columns.values;
  for (std::size_t i = 0; i < columns.rows(); ++i)
    steps.push_back({v[0][i], v[1][i], v[2][i], v[3][i], v[4][i], static_cast<PassStep::Kind>(v[5][i])});
  return interference_of(steps);
}

}  // namespace llmprof::analyze
