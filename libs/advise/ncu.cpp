// Nsight Compute: counters of the hot kernels, printed as CSV.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "advise/makers.h"

namespace llmprof::advise {
namespace {

// What a roofline, occupancy and the main stalls need; few passes. Names that a chip does not have cost nothing: ncu
// leaves their column out without a word. All are there on GH100.
constexpr std::array kMetrics{
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "l1tex__t_bytes.sum",
    "lts__t_sector_hit_rate.pct",
    "l1tex__t_sector_hit_rate.pct",
    "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    "sm__ops_path_tensor_src_fp16.sum",
    "sm__ops_path_tensor_src_fp8.sum",
    "sm__ops_path_tensor_src_int8.sum",
    "sm__ops_path_tensor_src_tf32_dst_fp32.sum",
    "sm__ops_path_tensor_src_fp64.sum",
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum",
    "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio",
    "sm__cycles_elapsed.avg.per_second",
    "dram__cycles_elapsed.avg.per_second",
};
constexpr std::int64_t kMostLaunches = 100;  // each is replayed about ten times, seconds for large programs

std::string metric_list() {
  std::string list;
  for (const char* metric : kMetrics) list += (list.empty() ? "" : ",") + std::string(metric);
  return list;
}

// Characters that mean something in an NVTX filter stand for themselves behind a backslash.
std::string filter_name(const std::string& name, bool pattern) {
  std::string text;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (pattern && digit) {
      if (!text.ends_with(".*")) text += ".*";  // brackets mean something else to the filter
    } else if (std::string_view(pattern ? "\\^$.|?*+()[]{}" : "@,[]/\\*+").find(c) != std::string_view::npos) {
      text += std::string("\\") + c;
    } else {
      text += c;
    }
  }
  return text;
}

std::string nvtx_filter(const StageRange& range) {
  const std::string name = range.numbered ? "regex:" + filter_name(range.name, true) : filter_name(range.name, false);
  const std::string domain = range.domain.empty() ? "" : filter_name(range.domain, false) + "@";
  return domain + name + (range.push_pop ? "/" : "");
}

std::vector<std::string> filters(const Hints& hints, Advice& advice) {
  std::vector<std::string> words;
  const bool by_range = !hints.ranges.empty() && hints.ranges.front().nvtx;
  if (by_range) {
    const std::string filter = nvtx_filter(hints.ranges.front());
    words = {"--nvtx", "--nvtx-include", filter};
    advice.notes.push_back(fmt::format(
        "only launches inside the range {} of stage {} are taken{}", hints.ranges.front().name, hints.stage,
        hints.ranges.front().push_pop ? "; the slash at the end is needed: without it only start/end ranges match"
                                      : ""));
  }
  if (hints.kernels.empty()) return words;
  // Inside the range the first steps of the stage are skipped; without it everything before the third step.
  const std::int64_t warm_steps = std::min<std::int64_t>(hints.steps - 1, 2);
  const std::int64_t skip =
      by_range ? std::max<std::int64_t>(warm_steps, 0) * hints.launches_in_step : hints.launches_before;
  const std::int64_t count = std::clamp<std::int64_t>(hints.launches_in_step, 1, kMostLaunches);
  words.insert(words.end(), {"-k", "regex:" + kernel_regex(hints.kernels), "--launch-skip", fmt::format("{}", skip),
                             "--launch-count", fmt::format("{}", count)});
  advice.notes.push_back(fmt::format(
      "{} kernel functions with {:.0f} % of the GPU time{}; {} launches are skipped, then {} taken: about one step",
      hints.kernels.size(), 100 * hints.share, hints.stage.empty() ? "" : " of stage " + hints.stage, skip, count));
  return words;
}

}  // namespace

Advice advise_ncu(const Context& context) {
  const Tool ncu = find_tool("ncu", context.wish.places);
  Advice advice{"ncu", ncu.path, ncu.version, {}, {}, {}, {}};
  const std::string& output = context.wish.output;
  std::vector<std::string> words{ncu.word, "--target-processes", "all"};
  if (ncu.has("--clock-control")) words.insert(words.end(), {"--clock-control", "none"});
  words.insert(words.end(), {"--metrics", metric_list()});
  std::vector<std::string> chosen;
  if (context.hints) chosen = filters(*context.hints, advice);
  if (chosen.empty() || !context.hints || context.hints->kernels.empty()) {
    chosen.insert(chosen.end(), {"--launch-count", fmt::format("{}", kMostLaunches)});
    advice.notes.push_back(fmt::format(
        "the first {} kernels are taken, as nothing is known of the program: `--run RUN` with an earlier run "
        "(llmprof record, or any import) takes its hot kernels in the steady state",
        kMostLaunches));
  }
  words.insert(words.end(), chosen.begin(), chosen.end());
  words.insert(words.end(), {"-f", "-o", output});
  advice.steps.push_back(context.run_step(
      "count bytes, FLOPs, occupancy and stalls of each launch; each is replayed a number of times", words));
  Step print{"print it as CSV with one unit per metric",
             {},
             {ncu.word, "--import", output + ".ncu-rep", "--csv", "--page", "raw"},
             output + ".csv",
             "",
             ""};
  if (ncu.has("--print-units")) print.words.insert(print.words.end(), {"--print-units", "base"});
  advice.steps.push_back(print);
  advice.steps.push_back(import_step({output + ".csv"}, output));
  Step all = advice.steps.front();
  all.why = "instead, everything that Nsight's own roofline charts need (about 6600 metrics, many more passes)";
  const auto metrics = std::ranges::find(all.words, "--metrics");
  all.words.erase(metrics, metrics + 2);
  all.words.insert(all.words.begin() + 1, {"--set", "roofline"});
  advice.alternatives.push_back(all);
  advice.notes.emplace_back(
      "there is no timeline in it: ncu runs one kernel at a time and replays it, so the program takes many times "
      "longer");
  advice.notes.emplace_back(
      "clocks are left alone (--clock-control none), so times are near those of the program; caches are emptied before "
      "every "
      "pass unless --cache-control none is given");
  advice.notes.emplace_back(
      "a metric that this GPU does not have gives no column and no message; ERR_NVGPUCTRPERM means that counters are "
      "not permitted "
      "(`llmprof doctor` tells)");
  return advice;
}

}  // namespace llmprof::advise
