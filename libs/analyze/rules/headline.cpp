#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "analyze/names/grammar.h"
#include "analyze/rules/diagnose.h"
#include "analyze/rules/stage_view.h"
#include "base/human.h"

namespace llmprof::analyze {
namespace {

constexpr double kAlmostIdeal = 0.8;   // of the possible speed
constexpr double kWorthALever = 0.05;  // of a stage: less is not worth a headline
constexpr double kMostlyIdle = 0.25;   // of the device's time

std::string percent(double fraction) { return fmt::format("{:.0f} %", fraction * 100); }

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// 0: repeats, as its name says; 1: may do so; 2: what is done before.
int rank_of(const Stage& stage) {
  if (is_steady(stage.name)) return 0;
  return stage.name == "compile" || stage.name == "load" || stage.name == "warm-up" ? 2 : 1;
}

// The longest stage of the lowest rank.
const Stage* dominating(const Summary& summary) {
  const Stage* out = nullptr;
  for (const int rank : {0, 1, 2}) {
    for (const Stage& stage : summary.stages) {
      if (rank_of(stage) == rank && (out == nullptr || stage.time_ns > out->time_ns)) out = &stage;
    }
    if (out != nullptr && out->time_ns > 0) return out;
  }
  return nullptr;
}

// "takes 63 % of the time in stages that repeat"
std::string share_text(const Summary& summary, const Stage& stage) {
  std::int64_t all = 0;
  for (const Stage& other : summary.stages) {
    if (is_steady(other.name) == is_steady(stage.name)) all += other.time_ns;
  }
  const bool only = all == stage.time_ns;
  if (!is_steady(stage.name)) return fmt::format("takes {} of the run", percent(stage.share));
  return only ? fmt::format("took {}", base::human_ns(static_cast<double>(stage.time_ns)))
              : fmt::format("takes {} of the stages' time",
                            percent(static_cast<double>(stage.time_ns) / static_cast<double>(all)));
}

std::string bound_text(const Summary& summary, const Stage& stage) {
  const double device_ns =
      static_cast<double>(stage.time_ns) * static_cast<double>(std::max<std::int64_t>(1, summary.busy_devices));
  const StageView view = view_of(summary, stage);  // without the warm-up, where its time is taken apart
  const double idle =
      view.waterfall == nullptr ? static_cast<double>(stage.idle_ns) / device_ns : 1 - view.busy_ns() / view.total_ns;
  if (summary.on_gpu && idle >= kMostlyIdle) return fmt::format(" and the GPU is idle {} of it", percent(idle));
  const Efficiency& by = stage.efficiency;
  if (by.bound == "memory" && by.mbu)
    return fmt::format(" and is bound by memory: it moves its bytes at {} of the bandwidth", percent(*by.mbu));
  if (by.bound == "compute" && by.mfu)
    return fmt::format(" and is bound by arithmetic: it computes at {} of the peak", percent(*by.mfu));
  return "";
}

std::string lever_text(const Stage& stage, const std::vector<Finding>& ranked) {
  for (const Finding& finding : ranked) {
    if (finding.verdict != Verdict::kFound || !finding.gain || finding.stage != stage.name) continue;
    const double share = finding.gain->ns / finding.gain->of_ns;
    if (share < kWorthALever) break;
    const std::string saves = fmt::format("{}{}", finding.gain->upper_bound ? "up to " : "about ", percent(share));
    if (!finding.lever.empty()) return fmt::format("; {} would save {}.", finding.lever, saves);
    return fmt::format("; {} of it could be saved: {}.", saves, finding.title);
  }
  if (stage.efficiency.of_floor.value_or(0) >= kAlmostIdeal)
    return fmt::format("; that is {} of the possible speed, so little is left to gain.",
                       percent(*stage.efficiency.of_floor));
  return fmt::format("; nothing was found that would save more than {} of it.", percent(kWorthALever));
}

// What hinders a better answer, with the way out; "" nothing.
std::string missing(const Summary& summary) {
  if (summary.on_gpu && summary.model.empty())
    return " The model is unknown, so its floor is too: llmprof report RUN --model NAME.";
  return "";
}

// "backward takes 62 %, forward 33 % and optimizer 3 % of the CPU time of the loop in main."
std::string of_samples(const std::vector<SampledStage>& stages) {
  std::map<std::string, double> time_of;
  double all = 0;
  for (const SampledStage& each : stages) {
    all += static_cast<double>(each.time_ns);
    time_of[each.stage] += static_cast<double>(each.time_ns);
  }
  std::vector<std::pair<double, std::string>> shares;
  for (const auto& [stage, time] : time_of) shares.emplace_back(time, stage);
  std::ranges::sort(shares, std::greater<>{});
  std::string text;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    text += fmt::format("{}{}{} {}",
                        i == 0                   ? ""
                        : i + 1 == shares.size() ? " and "
                                                 : ", ",
                        shares[i].second, i == 0 ? " takes" : "", percent(shares[i].first / all));
  }
  return fmt::format(
      "{} of the CPU time of the loop in {}, by stack samples. Its matrix products are compiled in, so that no rate "
      "and "
      "no floor can be told.",
      capital(text), stages.front().caller);
}

std::string without_stages(const Summary& summary) {
  const Coverage& coverage = summary.coverage;
  if (coverage.kernels == 0 && !summary.host.sampled_stages.empty()) return of_samples(summary.host.sampled_stages);
  if (coverage.kernels == 0 && coverage.data_losses > 0) {
    const auto worst = std::find_if(summary.losses.begin(), summary.losses.end(),
                                    [](const Loss& loss) { return loss.severity == "data_loss"; });
    return fmt::format(
        "Nothing can be said: no kernel was recorded, and data was lost ({}).{}",
        worst == summary.losses.end() ? "see the losses" : worst->name + ": " + worst->meaning,
        worst == summary.losses.end() || worst->remedy.empty() ? "" : " " + capital(worst->remedy) + ".");
  }
  if (coverage.kernels == 0)
    return "Nothing can be said: no kernel and no BLAS call was recorded. llmprof doctor says what this machine "
           "permits; llmprof record -- PROGRAM records.";
  return "No stages are known, so nothing can be said about prefill or decode: annotate them "
         "(docs/manual/annotate.md), or name the model with --model NAME so that they are told from its products.";
}

// Another tool's totals: no timeline, but a device, passes and bytes.
std::string of_totals(const MeasuredFindings& found, const std::vector<Finding>& ranked) {
  std::string out = found.busy ? fmt::format("The GPU is busy {} of the profile", percent(*found.busy))
                               : "The profile has totals only";
  if (found.linear_share_of_bandwidth)
    out += fmt::format(", and its linear layers read {} weights at {} of the bandwidth", found.stored_type,
                       percent(*found.linear_share_of_bandwidth));
  return out + lever_text(Stage{}, ranked);
}

}  // namespace

std::string headline(const Summary& summary, const Facts& facts, const std::vector<Finding>& ranked) {
  if (facts.totals && summary.stages.empty()) return of_totals(facts.totals->findings, ranked);
  const Stage* stage = dominating(summary);
  if (stage == nullptr) return without_stages(summary);
  const std::string name = stage->name == "steps"             ? "The loop"
                           : known_stage(stage->name).empty() ? stage->name
                                                              : capital(stage->name);  // a program's own stays
  return name + " " + share_text(summary, *stage) + bound_text(summary, *stage) + lever_text(*stage, ranked) +
         missing(summary);
}

}  // namespace llmprof::analyze
