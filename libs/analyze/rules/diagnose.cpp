#include "analyze/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "analyze/names/grammar.h"
#include "analyze/rules/tools.h"

namespace llmprof::analyze {
namespace {

constexpr double kHighShare = 0.2, kMediumShare = 0.05, kLowShare = 0.001;  // of the run

std::string outcome_of(const RuleResult& checked) {
  if (!checked.applicable) return "not applicable";
  if (checked.findings.empty()) return "not found";
  return std::ranges::count(checked.findings, Verdict::kFound, &Finding::verdict) > 0 ? "found" : "inconclusive";
}

// Advice may have parts for programs that use PyTorch: "<torch> (torch.compile)</torch>". Of others they are left out;
// where nothing is known of the program, they say what they are about.
std::string for_program(std::string text, std::optional<bool> torch) {
  static constexpr std::string_view kBegin = "<torch>", kEnd = "</torch>";
  for (std::size_t at = text.find(kBegin); at != std::string::npos; at = text.find(kBegin)) {
    const std::size_t end = text.find(kEnd, at);
    std::string part = text.substr(at + kBegin.size(), end - at - kBegin.size());
    if (torch == false) part.clear();
    if (const std::size_t open = part.find('('); !torch && open != std::string::npos)
      part.insert(open + 1, "in PyTorch ");
    text.replace(at, end + kEnd.size() - at, part);
  }
  return text;
}

void suit(const std::optional<bool>& torch, Finding& finding) {
  for (std::string& advice : finding.advice) advice = for_program(std::move(advice), torch);
  std::erase(finding.advice, "");
}

bool is_for(const Rule& rule, std::string_view stage) {
  return stage.empty() || rule.stages.empty() || std::ranges::count(base::split(rule.stages, ' '), stage) > 0;
}

// ---- the headline

constexpr double kAlmostIdeal = 0.8;   // of the possible speed
constexpr double kWorthALever = 0.05;  // of a stage: less is not worth a headline
constexpr double kMostlyIdle = 0.25;   // of the device's time

std::string whole_percent(double fraction) { return fmt::format("{:.0f} %", fraction * 100); }

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// 0: repeats, as its name says; 1: may do so; 2: what is done before.
int rank_of(const Stage& stage) {
  if (is_steady(stage.name)) return 0;
  return stage.name == "compile" || stage.name == "load" || stage.name == "warm-up" ? 2 : 1;
}

// What it takes apart from the warm-up, which is a phase of its own.
std::int64_t usual_ns(const Stage& stage) { return stage.steady_ns > 0 ? stage.steady_ns : stage.time_ns; }

// The longest stage of the lowest rank.
const Stage* dominating(const Summary& summary) {
  const Stage* out = nullptr;
  for (const int rank : {0, 1, 2}) {
    for (const Stage& stage : summary.stages) {
      if (rank_of(stage) == rank && (out == nullptr || usual_ns(stage) > usual_ns(*out))) out = &stage;
    }
    if (out != nullptr && out->time_ns > 0) return out;
  }
  return nullptr;
}

// "takes 63 % of the time in stages that repeat"
std::string share_text(const Summary& summary, const Stage& stage) {
  std::int64_t all = 0;
  for (const Stage& other : summary.stages) {
    if (is_steady(other.name) == is_steady(stage.name)) all += usual_ns(other);
  }
  const bool only = all == usual_ns(stage);
  if (!is_steady(stage.name))
    return fmt::format("takes {} of the run", whole_percent(stage.steady_ns > 0 ? stage.steady_share : stage.share));
  return only ? fmt::format("took {}", human_ns(static_cast<double>(usual_ns(stage))))
              : fmt::format("takes {} of the stages' time", whole_percent(ratio(usual_ns(stage), all)));
}

std::string bound_text(const Summary& summary, const Stage& stage) {
  const double device_ns =
      static_cast<double>(stage.time_ns) * static_cast<double>(std::max<std::int64_t>(1, summary.busy_devices));
  const StageView view = view_of(summary, stage);  // without the warm-up, where its time is taken apart
  const double idle =
      view.waterfall == nullptr ? static_cast<double>(stage.idle_ns) / device_ns : 1 - view.busy_ns() / view.total_ns;
  if (summary.on_gpu && idle >= kMostlyIdle) return fmt::format(" and the GPU is idle {} of it", whole_percent(idle));
  const Efficiency& by = stage.efficiency;
  if (by.bound == "memory" && by.mbu)
    return fmt::format(" and is bound by memory: it moves its bytes at {} of the bandwidth", whole_percent(*by.mbu));
  if (by.bound == "compute" && by.mfu)
    return fmt::format(" and is bound by arithmetic: it computes at {} of the peak", whole_percent(*by.mfu));
  return "";
}

std::string lever_text(const Stage& stage, const std::vector<Finding>& ranked) {
  for (const Finding& finding : ranked) {
    if (finding.verdict != Verdict::kFound || !finding.gain || finding.stage != stage.name) continue;
    const double share = finding.gain->ns / finding.gain->of_ns;
    if (share < kWorthALever) break;
    const std::string saves =
        fmt::format("{}{}", finding.gain->upper_bound ? "up to " : "about ", whole_percent(share));
    if (!finding.lever.empty()) return fmt::format("; {} would save {}.", finding.lever, saves);
    return fmt::format("; {} of it could be saved: {}.", saves, finding.title);
  }
  if (stage.efficiency.of_floor.value_or(0) >= kAlmostIdeal)
    return fmt::format("; that is {} of the possible speed, so little is left to gain.",
                       whole_percent(*stage.efficiency.of_floor));
  return fmt::format("; nothing was found that would save more than {} of it.", whole_percent(kWorthALever));
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
    all += each.time_ns;
    time_of[each.stage] += each.time_ns;
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
                        shares[i].second, i == 0 ? " takes" : "", whole_percent(shares[i].first / all));
  }
  return fmt::format(
      "{} of the CPU time of the loop in {}, by stack samples. Its matrix products are compiled in, so that no rate "
      "and "
      "no floor is known.",
      capital(text), stages.front().caller);
}

// "python3 ran 2.55 s: its main thread was on a CPU 79 % of that and waited 20 % (sleep). Most CPU time, 52 %, is in
// inner (burn.py)."
std::string of_program(const Summary& summary, const std::vector<Finding>& ranked) {
  const Life& life = summary.life;
  const Host& host = summary.host;
  std::string program = life.executable.substr(life.executable.rfind('/') + 1);
  if (program.empty()) program = "the program";
  std::string out = fmt::format("{} {} {}", program, life.ended ? "ran" : "was watched for",
                                human_ns(static_cast<double>(life.time_ns())));
  double on_cpu = 0, queued = 0, blocked = 0, most = 0;
  std::string_view waits_for;
  for (const ProcessWait& wait : host.waits) {
    if (wait.pid != life.pid || wait.name != life.executable || !wait.main_share) continue;
    const bool cpu = wait.state == "user" || wait.state == "system";
    (cpu ? on_cpu : wait.state == "run queue" ? queued : blocked) += *wait.main_share;
    if (cpu || wait.state == "run queue" || *wait.main_share <= most) continue;
    most = *wait.main_share;
    waits_for = wait.state == "unseen" ? std::string_view("short waits") : std::string_view(wait.state);
  }
  if (on_cpu + queued + blocked > 0) {
    out += fmt::format(": its main thread was on a CPU {} of that", whole_percent(on_cpu));
    if (queued >= kWorthALever) out += fmt::format(", ready without a CPU {}", whole_percent(queued));
    if (blocked >= kWorthALever) out += fmt::format(", and waited {} (mostly {})", whole_percent(blocked), waits_for);
  }
  out += ".";
  const bool python = !host.python_functions.empty();
  if (python || !host.top_functions.empty()) {
    const std::string& name = python ? host.python_functions.front().name : host.top_functions.front().name;
    const std::string& file = python ? host.python_functions.front().file : host.top_functions.front().file;
    const double share = python ? host.python_functions.front().self_share : host.top_functions.front().self_share;
    out +=
        fmt::format(" Most CPU time, {}, is in {} ({}).", whole_percent(share), name, file.substr(file.rfind('/') + 1));
  }
  for (const Finding& finding : ranked) {
    if (finding.verdict != Verdict::kFound || !finding.gain || finding.gain->ns < kWorthALever * finding.gain->of_ns)
      continue;
    return out + fmt::format(" {}: at most {} of the run could be saved.", finding.title,
                             whole_percent(finding.gain->ns / finding.gain->of_ns));
  }
  return out;
}

std::string without_stages(const Summary& summary, const std::vector<Finding>& ranked) {
  const Coverage& coverage = summary.coverage;
  if (coverage.kernels == 0 && !summary.host.sampled_stages.empty()) return of_samples(summary.host.sampled_stages);
  if (coverage.kernels == 0 && coverage.data_losses > 0) {
    const auto worst = std::find_if(summary.losses.begin(), summary.losses.end(),
                                    [](const Loss& loss) { return loss.severity == "data_loss"; });
    return fmt::format(
        "No kernels were recorded, and data was lost ({}).{}",
        worst == summary.losses.end() ? "see the losses" : worst->name + ": " + worst->meaning,
        worst == summary.losses.end() || worst->remedy.empty() ? "" : " " + capital(worst->remedy) + ".");
  }
  if (coverage.kernels == 0 && summary.life.process_id != 0 && summary.life.time_ns() > 0)
    return of_program(summary, ranked);
  const bool results = !summary.requests.all.empty() || !summary.imported.reported.empty();
  if (coverage.kernels == 0 && results && !summary.imported.sources.empty())
    return "The files hold requests and figures, not the work behind them: what their time went to is unknown.";
  if (coverage.kernels == 0)
    return "No kernels and no BLAS calls were recorded. llmprof doctor says what this machine "
           "permits; llmprof record -- PROGRAM records.";
  return "No stages are known, so prefill and decode are not reported: annotate them "
         "(docs/manual/annotate.md), or name the model with --model NAME so that they are inferred from its products.";
}

// "Only 3 % of the run is in steps; compilation 43 %, imports 14 %. ": where most of it is something else.
std::string outside_steps(const Summary& summary) {
  constexpr double kMostOfIt = 0.5, kWorthNaming = 0.1;
  constexpr std::size_t kMostNames = 3;
  double in_steps = 0;
  std::vector<const LifePhase*> others;
  for (const LifePhase& phase : summary.life.phases) {
    const auto stage = std::ranges::find(summary.stages, phase.name, &Stage::name);
    if (stage != summary.stages.end() && rank_of(*stage) < 2) {
      in_steps += phase.share;
    } else if (phase.share >= kWorthNaming) {
      others.push_back(&phase);
    }
  }
  if (in_steps >= kMostOfIt || others.empty()) return "";
  std::ranges::sort(others, std::greater{}, &LifePhase::share);
  std::string names;
  for (std::size_t i = 0; i < std::min(others.size(), kMostNames); ++i) {
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", others[i]->label, whole_percent(others[i]->share));
  }
  return fmt::format("Only {} of the run is in steps; {}. ", whole_percent(in_steps), names);
}

// Another tool's totals: no timeline, but a device, passes and bytes.
std::string of_totals(const MeasuredFindings& found, const std::vector<Finding>& ranked) {
  std::string out = found.busy ? fmt::format("The GPU is busy {} of the profile", whole_percent(*found.busy))
                               : "The profile has totals only";
  if (found.linear_share_of_bandwidth)
    out += fmt::format(", and its linear layers read {} weights at {} of the bandwidth", found.stored_type,
                       whole_percent(*found.linear_share_of_bandwidth));
  return out + lever_text(Stage{}, ranked);
}

// ---- a mean rank
//
// Rules think of one timeline with its devices. Of a job of several ranks that work at the same time they are shown a
// mean one: amounts that were added up over ranks are divided by how many worked at once, and peaks are those of a
// rank.

template <class... Numbers>
void scale(double by, Numbers&... numbers) {
  const auto one = [by](auto& number) {
    if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(number)>>) {
      number *= by;
    } else {
      number = std::llround(by * static_cast<double>(number));
    }
  };
  (one(numbers), ...);
}

template <class... Numbers>
void scale_known(double by, std::optional<Numbers>&... numbers) {
  const auto one = [by](auto& number) {
    if (number) scale(by, *number);
  };
  (one(numbers), ...);
}

void scale_efficiency(double by, Efficiency& e) {
  scale_known(by, e.flops, e.flops_shapes, e.bytes, e.recomputed_flops, e.flops_most, e.bytes_most);
  scale_known(by, e.flops_per_s, e.flops_shapes_per_s, e.bytes_per_s);
}

void scale_part(double by, Part& part) {
  scale(by, part.calls, part.total_ns, part.self_ns, part.kernel_ns, part.estimated_ns, part.time_ns);
  scale_efficiency(by, part.efficiency);
  if (part.efficiency.floor_ns) scale(by, *part.efficiency.floor_ns);  // that of a stage is of all devices together
  for (Product& product : part.products) scale(by, product.calls, product.time_ns);
}

void scale_idle(double by, StageIdle& idle) {
  scale(by, idle.gap_ns, idle.between_ns);
  for (IdlePlace& place : idle.places) scale(by, place.time_ns);
  for (IdleWork& work : idle.works) scale(by, work.cpu_ns);
}

struct Scales {
  const Summary& summary;
  // 1 for what no stage has, or has alone.
  double operator()(std::string_view stage) const {
    const auto found = std::ranges::find(summary.stages, stage, &Stage::name);
    return found == summary.stages.end() ? 1 : 1 / found->ranks_at_once;
  }
};

void scale_facts(const Scales& of, double devices, Facts& facts) {
  for (StageBytes& stage : facts.bytes) {
    for (OperatorBytes& op : stage.operators)
      scale(of(stage.stage), op.flops, op.weight_bytes, op.kv_bytes, op.activation_bytes);
  }
  for (StageWaits& stage : facts.waits.stages) scale(of(stage.stage), stage.calls, stage.steps, stage.time_ns);
  for (StageLaunches& stage : facts.launches) scale(of(stage.stage), stage.launches, stage.timed, stage.call_ns);
  for (StageCopies& stage : facts.copies.stages)
    scale(of(stage.stage), stage.copies, stage.steps, stage.bytes, stage.time_ns, stage.call_ns);
  for (ProductKernel& product : facts.products) scale(of(product.stage), product.executions, product.time_ns);
  for (StageChains& stage : facts.chains) {
    const double by = of(stage.stage);
    scale(by, stage.steps, stage.kernels, stage.element_kernels);
    for (ChainGroup& group : stage.groups)
      scale(by, group.chains, group.kernels, group.time_ns, group.longest_ns, group.idle_ns);
  }
  for (StageLogits& stage : facts.logits)
    scale(of(stage.stage), stage.steps, stage.head_ns, stage.after_ns, stage.kernels_ns, stage.after_kernels);
  for (StageOverlap& stage : facts.overlaps) {
    for (Transfers* moved : {&stage.copies, &stage.collectives})
      scale(devices, moved->count, moved->bytes, moved->time_ns, moved->exposed_ns, moved->pageable);
  }
  for (StageAllocations& stage : facts.allocations.stages) {
    scale(of(stage.stage), stage.steps, stage.steps_allocating, stage.allocations, stage.releases, stage.bytes);
    scale_known(of(stage.stage), stage.calls_ns);
  }
  for (StageExperts& stage : facts.experts) scale(of(stage.stage), stage.passes, stage.time_ns);
  InterferenceFacts& waits = facts.interference;
  scale(of("decode"), waits.prefills, waits.intervals, waits.interrupted, waits.all_ns, waits.extra_ns);
  for (GraphBucket& bucket : facts.graph_buckets) scale(of(bucket.stage), bucket.launches, bucket.time_ns);
}

}  // namespace

bool is_steady(std::string_view stage) {
  static constexpr std::array<std::string_view, 10> kSteady = {"prefill", "decode",  "mixed",    "draft",     "verify",
                                                               "encode",  "forward", "backward", "optimizer", "steps"};
  return std::ranges::count(kSteady, stage) > 0;
}

Severity severity_of(const Finding& finding) {
  if (!finding.gain || finding.gain->ns <= 0 || finding.gain->of_ns <= 0) return Severity::kNote;
  const double share = finding.gain->run_share.value_or(finding.gain->ns / finding.gain->of_ns);
  return share >= kHighShare     ? Severity::kHigh
         : share >= kMediumShare ? Severity::kMedium
         : share >= kLowShare    ? Severity::kLow
                                 : Severity::kNote;
}

void rank(std::vector<Finding>& findings) {
  const auto place = [](const Finding& finding) {
    const int group = finding.verdict == Verdict::kInconclusive ? 3
                      : severity_of(finding) == Severity::kNote ? 2
                      : finding.confidence < kCertainStage      ? 1
                                                                : 0;
    return std::tuple(group, finding.gain ? -finding.gain->rank_ns.value_or(finding.gain->ns) : 0.0);
  };
  std::ranges::stable_sort(findings, {}, place);
}

std::string headline(const Summary& summary, const Facts& facts, const std::vector<Finding>& ranked) {
  if (facts.totals && summary.stages.empty()) return of_totals(facts.totals->findings, ranked);
  const Stage* stage = dominating(summary);
  if (stage == nullptr) return without_stages(summary, ranked);
  const bool certain = !stage->guessed();
  const std::string name = stage->name == "steps"             ? certain ? "The loop" : "What looks like a loop"
                           : !certain                         ? "What looks like " + stage->name
                           : known_stage(stage->name).empty() ? stage->name
                                                              : capital(stage->name);  // a program's own stays
  return outside_steps(summary) + name + " " + share_text(summary, *stage) + bound_text(summary, *stage) +
         lever_text(*stage, ranked) + missing(summary);
}

namespace {

void set_share(double whole_ns, Gain& gain) {
  if (!gain.latency) {
    gain.run_share = gain.ns / whole_ns;
  } else if (gain.of_ns > 0) {
    gain.rank_ns = gain.ns / gain.of_ns * whole_ns;
  }
}

}  // namespace

Diagnosis diagnose(const Summary& summary, const Facts& facts, std::span<const Rule* const> all) {
  Diagnosis out;
  out.whole_ns = facts.windowed ? summary.coverage.in_stages_ns : summary.coverage.wall_ns;
  out.whole = facts.windowed ? "the recorded stages" : "the run";
  for (const Rule* rule : all) {
    RuleResult checked = rule->check({summary, facts});
    std::erase_if(checked.findings, [&](const Finding& finding) { return !is_for(*rule, finding.stage); });
    out.rules.push_back({std::string(rule->name), outcome_of(checked),
                         checked.findings.empty() ? checked.why : checked.findings.front().title});
    for (Finding& finding : checked.findings) {
      finding.rule = rule->name;
      if (finding.gain && out.whole_ns > 0) set_share(static_cast<double>(out.whole_ns), *finding.gain);
      if (const auto stage = std::ranges::find(summary.stages, finding.stage, &Stage::name);
          stage != summary.stages.end())
        finding.confidence = stage->confidence;
      finding.severity = severity_of(finding);
      suit(facts.torch, finding);
      finding.title = capital(std::move(finding.title));
      out.findings.push_back(std::move(finding));
    }
  }
  rank(out.findings);
  out.headline = headline(summary, facts, out.findings);
  return out;
}

bool takes_several_ranks(const Summary& summary) {
  return std::ranges::any_of(summary.stages, [](const Stage& stage) { return stage.ranks_at_once != 1; });
}

void take_mean_rank(Summary& summary, Facts& facts) {
  const std::int64_t all = std::max<std::int64_t>(1, summary.busy_devices), own = summary.job.devices_of_rank();
  const double devices = ratio(own, all);
  const Scales of{summary};
  scale_facts(of, devices, facts);
  for (auto* parts : {&summary.modules, &summary.ops}) {
    for (Part& part : *parts) scale_part(of(part.stage), part);
  }
  for (GemmShape& gemm : summary.gemms) scale(of(gemm.stage), gemm.calls, gemm.time_ns, gemm.estimated_ns);
  for (StageIdle& idle : summary.idle) scale_idle(of(idle.stage), idle);
  for (Stage& stage : summary.stages) {
    const double by = 1 / stage.ranks_at_once;
    scale(by, stage.steps, stage.kernels, stage.measured_steps, stage.warm_up_steps, stage.warm_up_ns, stage.steps_ns,
          stage.kernel_ns, stage.estimated_ns, stage.graph_launches, stage.graph_launches_by_node);
    scale(devices, stage.device_busy_ns, stage.idle_ns);
    scale_efficiency(by, stage.efficiency);
    stage.ranks_at_once = 1;
  }
  summary.busy_devices = own;
  scale_known(devices, summary.peak_flops, summary.peak_bandwidth);
}

namespace {

// Of a run that nobody measured, no evidence was.
Diagnosis with_sources(const trace::Run& run, Diagnosis diagnosis) {
  if (run.info().source != "predict") return diagnosis;
  for (Finding& finding : diagnosis.findings) {
    for (Evidence& evidence : finding.evidence) {
      if (evidence.source == "measured" || evidence.source == "counted") evidence.source = "predicted";
    }
  }
  return diagnosis;
}

}  // namespace

Result<Diagnosis> diagnose(const trace::Run& run, const AnalysisContext& analysis, const Summary& summary) {
  LLMPROF_LET(Facts facts, gather_facts(run, analysis, summary));
  if (!takes_several_ranks(summary)) return with_sources(run, diagnose(summary, facts, rules()));
  Summary mean = summary;
  take_mean_rank(mean, facts);
  return with_sources(run, diagnose(mean, facts, rules()));
}

}  // namespace llmprof::analyze
