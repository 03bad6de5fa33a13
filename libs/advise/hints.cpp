#include "advise/makers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/kernel_name.h"

namespace llmprof::advise {
namespace {

constexpr double kEnoughShare = 0.8;  // of the stage's GPU time: more kernels cost passes and tell little
constexpr std::size_t kMostKernels = 8;
constexpr std::size_t kMostNameBytes = 96;  // longer names are of generated kernels
constexpr std::int64_t kWarmSteps = 2;

bool identifier(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '$'; });
}

std::string without_digits(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit || !text.ends_with('#')) text += digit ? '#' : c;
  }
  return text;
}

Result<std::string> busiest_stage(const trace::Run& run) {
  LLMPROF_LET(
      const trace::ResultTable stages,
      run.query("SELECT w.stage FROM work_sum AS w JOIN device AS d ON d.id = w.device_id "
                "WHERE d.kind = 'gpu' AND w.stage IS NOT NULL GROUP BY 1 ORDER BY sum(w.time_ns) DESC LIMIT 1"));
  return stages.rows.empty() ? std::string() : stages.rows[0][0].text;
}

Result<void> check_stage(const trace::Run& run, const std::string& stage) {
  LLMPROF_LET(const trace::ResultTable stages, run.query("SELECT DISTINCT stage FROM step ORDER BY 1"));
  std::string list;
  for (const auto& row : stages.rows) {
    if (row[0].text == stage) return {};
    list += (list.empty() ? "" : ", ") + row[0].text;
  }
  return Error{ErrorCode::kNotFound, fmt::format("{} has no stage {}", run.folder(), stage),
               list.empty() ? "no stages are known of that run" : "its stages: " + list};
}

// Ranges that are steps of the stage. Engines number theirs, so names are told apart without digits.
Result<void> find_range(const trace::Run& run, Hints& hints) {
  LLMPROF_LET(
      const trace::ResultTable named,
      run.query(fmt::format("SELECT r.name, r.domain, r.kind, r.source, count(*) FROM step AS s JOIN range AS r ON "
                            "r.id = s.range_id WHERE s.stage = {} GROUP BY ALL ORDER BY 5 DESC, min(r.begin_ns)",
                            trace::sql_literal(hints.stage))));
  std::map<std::string, std::int64_t> kinds;
  for (const auto& row : named.rows) kinds[without_digits(row[0].text)] += row[4].as_int();
  if (kinds.empty()) return {};
  const auto best = std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second; })->first;
  std::vector<const std::vector<trace::Value>*> same;
  for (const auto& row : named.rows) {
    if (without_digits(row[0].text) == best) same.push_back(&row);
  }
  // Of numbered steps one in the middle: the first ones are warming up.
  const std::vector<trace::Value>& row = *same[same.size() / 2];
  const std::string& source = row[3].text;
  hints.ranges.push_back({row[0].text, row[1].text, row[2].text != "start_end", same.size() > 1,
                          source.empty() || source == "nvtx" || source.starts_with("nsys"), row[4].as_int()});
  return {};
}

Result<void> find_kernels(const trace::Run& run, Hints& hints) {
  const std::string where = hints.stage.empty() ? "" : " AND w.stage = " + trace::sql_literal(hints.stage);
  LLMPROF_LET(
      const trace::ResultTable work,
      run.query("SELECT w.name, sum(w.executions), sum(w.time_ns) FROM work_sum AS w JOIN device AS d ON d.id = "
                "w.device_id WHERE d.kind = 'gpu' AND w.known" +
                where + " GROUP BY 1"));
  std::map<std::string, HotKernel> functions;
  double total_ns = 0;
  for (const auto& row : work.rows) {
    total_ns += row[2].as_double();
    const std::string function = function_of(row[0].text);
    if (function.empty()) continue;
    HotKernel& kernel = functions[function];
    kernel.function = function;
    kernel.launches += row[1].as_int();
    kernel.share += row[2].as_double();  // ns until the total is known
  }
  for (auto& [name, kernel] : functions) {
    kernel.share = total_ns > 0 ? kernel.share / total_ns : 0;
    hints.kernels.push_back(kernel);
  }
  std::ranges::stable_sort(hints.kernels, std::greater{}, &HotKernel::share);
  std::size_t taken = 0;
  while (taken < std::min(hints.kernels.size(), kMostKernels) && hints.share < kEnoughShare) {
    hints.share += hints.kernels[taken++].share;
  }
  hints.kernels.resize(taken);
  return {};
}

// Launches of the hot kernels before the stage is in its stride.
Result<void> count_launches(const trace::Run& run, Hints& hints) {
  std::int64_t launches = 0;
  for (const HotKernel& kernel : hints.kernels) launches += kernel.launches;
  LLMPROF_LET(const trace::ResultTable steps,
              run.query(fmt::format("SELECT begin_ns FROM step WHERE stage = {} ORDER BY begin_ns",
                                    trace::sql_literal(hints.stage))));
  hints.steps = static_cast<std::int64_t>(steps.rows.size());
  if (hints.steps == 0) {
    hints.launches_before = launches / 2;
    hints.launches_in_step = launches - hints.launches_before;
    return {};
  }
  hints.launches_in_step = std::max<std::int64_t>(launches / hints.steps, 1);
  const auto first = static_cast<std::size_t>(std::min(kWarmSteps, hints.steps - 1));
  LLMPROF_LET(
      const trace::ResultTable before,
      run.query(fmt::format("SELECT k.name, count(*) FROM kernel_all AS k JOIN device AS d ON d.id = k.device_id "
                            "WHERE d.kind = 'gpu' AND k.begin_ns < {} GROUP BY 1",
                            steps.rows[first][0].as_int())));
  for (const auto& row : before.rows) {
    const std::string function = function_of(row[0].text);
    const bool hot = std::ranges::find(hints.kernels, function, &HotKernel::function) != hints.kernels.end();
    if (hot) hints.launches_before += row[1].as_int();
  }
  return {};
}

}  // namespace

std::string function_of(std::string_view kernel) {
  const std::string name = base::kernel_function(kernel);
  return identifier(name) ? name : "";
}

std::string kernel_regex(const std::vector<HotKernel>& kernels) {
  std::string names;
  for (const HotKernel& kernel : kernels) {
    const bool cut = kernel.function.size() > kMostNameBytes;
    std::string escaped;
    for (const char c : kernel.function.substr(0, kMostNameBytes))
      escaped += c == '$' ? std::string("\\$") : std::string(1, c);
    names += (names.empty() ? "" : "|") + escaped + (cut ? ".*" : "");
  }
  return "^(" + names + ")$";
}

Result<Hints> hints_of(const trace::Run& run, const std::string& stage) {
  Hints hints;
  hints.stage = stage;
  if (stage.empty()) {
    LLMPROF_LET(hints.stage, busiest_stage(run));
  } else {
    LLMPROF_TRY(check_stage(run, stage));
  }
  LLMPROF_TRY(find_range(run, hints));
  LLMPROF_TRY(find_kernels(run, hints));
  LLMPROF_TRY(count_launches(run, hints));
  return hints;
}

}  // namespace llmprof::advise
