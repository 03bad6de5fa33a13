#include "analyze/diff/work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"

namespace llmprof::analyze {
namespace {

constexpr double kSame = 0.01;  // sizes and amounts of work that are closer are the same

bool alike(double a, double b, double least = kSame) {
  return std::fabs(a - b) <= least * std::max(std::fabs(a), std::fabs(b));
}
bool both_alike(const std::optional<double>& a, const std::optional<double>& b, double least = kSame) {
  return a && b && alike(*a, *b, least);
}

// Loading and warming up are other work every time.
bool is_compared(const StageDigest& stage) { return stage.name != "load" && stage.name != "warm-up"; }

std::string size_text(double value) {
  return value == std::round(value) || value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

// ---- the size of a step

struct Size {
  const char* name;
  std::optional<double> value;
};

std::optional<double> per_sequence(const StageDigest& stage) {
  if (!stage.tokens || !stage.batch || *stage.batch <= 0) return std::nullopt;
  return *stage.tokens / *stage.batch;
}

// What tells how much a step of the stage computes, beside the model.
std::vector<Size> sizes_of(const StageDigest& stage) {
  if (stage.name == "optimizer") return {};  // the model's parameters alone
  if (stage.name == kTrainingStep) return {{"tokens a step", stage.tokens}};
  if (stage.name == "decode") return {{"batch", stage.batch}, {"tokens a sequence and step", per_sequence(stage)}};
  if (stage.name != "prefill") return {{"batch", stage.batch}, {"sequence length", per_sequence(stage)}};
  // A prompt may be computed in several steps, each with the context of those before.
  const bool whole = !stage.context || both_alike(stage.context, per_sequence(stage));
  return {{"batch", stage.batch}, {whole ? "prompt" : "prompt tokens a step", per_sequence(stage)}};
}

bool is_sized(const StageDigest& stage) {
  const std::vector<Size> sizes = sizes_of(stage);
  return std::ranges::all_of(sizes, [](const Size& size) { return size.value.has_value(); });
}

void add_sizes(const StageDigest& a, const StageDigest& b, std::vector<Difference>& differences) {
  const std::vector<Size> before = sizes_of(a), after = sizes_of(b);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].value || !after[i].value || alike(*before[i].value, *after[i].value)) continue;
    differences.push_back({"work", after[i].name, a.name, size_text(*before[i].value), size_text(*after[i].value), ""});
  }
}

// ---- the model

bool is_inferred(const Digest& run) {
  const WorkFact* model = find_fact(run, "model");
  return model != nullptr && model->text == "inferred";
}

std::string named(const WorkFact* fact) { return fact == nullptr ? "" : fact->text; }

// Numbers that were told from the shapes of matrix products are a little off: biases and norms have none.
void add_model(const Digest& a, const Digest& b, std::vector<Difference>& differences) {
  const double least = is_inferred(a) || is_inferred(b) ? 0.02 : 0.001;
  for (const char* name : {"parameters", "layers", "type", "weights"}) {
    const WorkFact *x = find_fact(a, name), *y = find_fact(b, name);
    if (x == nullptr || y == nullptr) continue;
    if (x->value && y->value ? alike(*x->value, *y->value, least) : x->text == y->text) continue;
    differences.push_back({"work", name, "", x->text, y->text, ""});
  }
  const bool other_size = !differences.empty();
  if (differences.size() > 1) std::erase_if(differences, [](const Difference& d) { return d.name == "weights"; });
  const WorkFact *x = find_fact(a, "model"), *y = find_fact(b, "model");
  if (other_size && !is_inferred(a) && !is_inferred(b) && x != nullptr && y != nullptr && x->text != y->text)
    differences.insert(differences.begin(), {"work", "model", "", x->text, y->text, ""});
  // Baselines of earlier versions know the model as one text.
  if (a.facts.empty() != b.facts.empty() && !a.model.empty() && !b.model.empty() && a.model != b.model)
    differences.push_back({"work", "model", "", a.model, b.model, ""});
}

bool knows_model(const Digest& run) { return find_fact(run, "parameters") != nullptr || !run.model.empty(); }

// ---- stages

// Whichever limits it on both sides; where that is not known or differs, decode by bytes and the rest by FLOPs.
Basis by_work(std::string_view stage, const std::optional<double>& flops_a, const std::optional<double>& flops_b,
              const std::optional<double>& bytes_a, const std::optional<double>& bytes_b, std::string_view bound_a,
              std::string_view bound_b) {
  const bool flops = flops_a.value_or(0) > 0 && flops_b.value_or(0) > 0;
  const bool bytes = bytes_a.value_or(0) > 0 && bytes_b.value_or(0) > 0;
  bool by_bytes = stage == "decode" || stage == "optimizer";
  if (bound_a == bound_b && bound_a == "compute") by_bytes = false;
  if (bound_a == bound_b && bound_a == "memory") by_bytes = true;
  if (bytes && (by_bytes || !flops)) return {true, "GB", *bytes_a / 1e9, *bytes_b / 1e9};
  if (flops) return {true, "TFLOP", *flops_a / 1e12, *flops_b / 1e12};
  return {false, "step", 1, 1};
}

Basis stage_basis(const StageDigest& a, const StageDigest& b, bool same_model) {
  const Basis tokens = a.tokens.value_or(0) > 0 && b.tokens.value_or(0) > 0 ? Basis{true, "token", *a.tokens, *b.tokens}
                                                                            : Basis{false, "step", 1, 1};
  if (same_model && tokens.comparable) return tokens;
  Basis work = by_work(a.name, a.flops, b.flops, a.bytes, b.bytes, a.bound, b.bound);
  return work.comparable ? work : tokens;
}

std::string words(const std::vector<Difference>& differences) {
  std::vector<std::string> texts;
  for (const Difference& each : differences) texts.push_back(each.text);
  return fmt::format("{}", fmt::join(texts, "; "));
}

void set_text(Difference& each) {
  if (each.name == "command") {
    each.text = fmt::format("command '{}' instead of '{}'", each.after, each.before);
    return;
  }
  const auto known = [](const std::string& text) { return text.empty() ? std::string("unknown") : text; };
  each.text = fmt::format("{} {} instead of {}", each.name, known(each.after), known(each.before));
}

// Whether a step did the same, where sizes do not tell: by its matrix products.
void judge_by_products(const StageDigest& a, const StageDigest& b, StageWork& work,
                       std::vector<Difference>& differences) {
  if (!a.flops_shapes || !b.flops_shapes) {
    work.same = "unknown";
    work.why = "neither the size of its steps nor matrix products are known of both";
    return;
  }
  work.same = both_alike(a.flops_shapes, b.flops_shapes) ? "same" : "different";
  if (work.same == "same") return;
  differences.push_back({"work", "matrix products", a.name, base::human_rate(*a.flops_shapes, "FLOP") + " a step",
                         base::human_rate(*b.flops_shapes, "FLOP") + " a step", ""});
}

StageWork stage_work(const StageDigest& a, const StageDigest& b, const WorkDiff& all, bool models_known,
                     std::vector<Difference>& differences) {
  StageWork work{.stage = a.name, .same = "same"};
  std::vector<Difference> own;
  const bool optimizer = a.name == "optimizer";  // has no matrix products and no tokens
  if (!all.same_model) {
    work.same = "different";
    add_sizes(a, b, own);
  } else {
    add_sizes(a, b, own);
    const bool sized = is_sized(a) && is_sized(b);
    if (!own.empty()) {
      work.same = "different";
    } else if (optimizer ? !models_known : !sized || !models_known) {
      judge_by_products(a, b, work, own);
    } else if (!optimizer && a.context && b.context && !alike(*a.context, *b.context, 0.02) &&
               !(both_alike(a.flops, b.flops) && both_alike(a.bytes, b.bytes))) {
      // A longer context is other work for attention; little of the whole, where FLOPs and bytes say so.
      own.push_back({"work", "context", a.name, size_text(*a.context), size_text(*b.context), ""});
      work.same = "different";
    }
  }
  for (Difference& each : own) set_text(each);
  work.why = work.why.empty() ? words(own) : work.why;
  if (work.same == "different") work.basis = stage_basis(a, b, all.same_model);
  work.basis.comparable = work.basis.comparable && work.same != "unknown";
  work.same_steps = a.steps == b.steps;
  differences.insert(differences.end(), own.begin(), own.end());
  return work;
}

// "batch 8 instead of 1" of prefill and of decode is said once.
void add_merged(const std::vector<Difference>& by_stage, std::size_t stages, std::vector<Difference>& out) {
  const bool others = std::ranges::any_of(by_stage, [](const Difference& each) { return each.stage != kTrainingStep; });
  for (std::size_t i = 0; i < by_stage.size(); ++i) {
    if (others && by_stage[i].stage == kTrainingStep) continue;  // follows from its stages
    const auto equal = [&](const Difference& other) { return other.text == by_stage[i].text; };
    if (std::any_of(by_stage.begin(), by_stage.begin() + static_cast<std::ptrdiff_t>(i), equal)) continue;
    Difference one = by_stage[i];
    const auto times = static_cast<std::size_t>(std::ranges::count_if(by_stage, equal));
    if (times > 1 || stages == 1 || one.name == "prompt" || one.stage == kTrainingStep) {
      one.stage.clear();
    } else {
      one.text += " in " + one.stage;
    }
    out.push_back(std::move(one));
  }
}

void add_one_sided(const Digest& a, const Digest& b, std::vector<Difference>& out) {
  const auto add = [&](const Digest& run, const Digest& other, bool after) {
    for (const StageDigest& stage : run.stages) {
      if (!is_compared(stage) || stage.name == kTrainingStep || find_stage(other, stage.name) != nullptr) continue;
      const std::string steps = fmt::format("{} {}", stage.steps, stage.steps == 1 ? "step" : "steps");
      out.push_back({"work", "stage", stage.name, after ? "" : steps, after ? steps : "",
                     fmt::format("stage '{}' only {}", stage.name, after ? "after" : "before")});
    }
  };
  add(a, b, false);
  add(b, a, true);
}

void add_steps(const Digest& a, const Digest& b, std::vector<Difference>& out) {
  for (const StageDigest& stage : a.stages) {
    const StageDigest* other = find_stage(b, stage.name);
    if (!is_compared(stage) || other == nullptr || stage.steps == other->steps) continue;
    const bool in_training = stage.name == "forward" || stage.name == "backward" || stage.name == "optimizer";
    if (in_training && find_stage(a, kTrainingStep) != nullptr && find_stage(b, kTrainingStep) != nullptr) continue;
    const std::string name = (stage.name == kTrainingStep ? "training" : stage.name) +
                             (other->steps == 1 ? std::string(" step") : std::string(" steps"));
    out.push_back({"amount", "steps", stage.name, fmt::format("{}", stage.steps), fmt::format("{}", other->steps),
                   fmt::format("{} {} instead of {}", other->steps, name, stage.steps)});
  }
}

// What a run has and the other has not is a difference only where absence means something.
void add_facts(const Digest& a, const Digest& b, std::string_view kind, std::vector<Difference>& out) {
  if (a.facts.empty() || b.facts.empty()) {
    if (kind == "device" && a.device != b.device) {
      out.push_back({"device", "device", "", a.device, b.device, ""});
      set_text(out.back());
    }
    return;
  }
  const auto add = [&](const WorkFact& fact, std::string before, std::string after) {
    out.push_back({std::string(kind), fact.name, "", std::move(before), std::move(after), ""});
    set_text(out.back());
  };
  for (const WorkFact& fact : a.facts) {
    if (fact.kind != kind) continue;
    const WorkFact* other = find_fact(b, fact.name);
    const bool needed = kind == "device" || fact.name == "command";
    if (other == nullptr ? needed : other->text != fact.text) add(fact, fact.text, named(other));
  }
  for (const WorkFact& fact : b.facts) {
    if (fact.kind == kind && find_fact(a, fact.name) == nullptr && (kind == "device" || fact.name == "command"))
      add(fact, "", fact.text);
  }
}

// ---- sentences

std::string of_kind(const std::vector<Difference>& differences, std::string_view kind) {
  std::vector<Difference> chosen;
  std::ranges::copy_if(differences, std::back_inserter(chosen), [&](const Difference& d) { return d.kind == kind; });
  return words(chosen);
}

std::string stage_list(const WorkDiff& work, std::string_view same) {
  std::vector<std::string> names;
  for (const StageWork& stage : work.stages) {
    if (stage.same == same) names.push_back(stage.stage);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string what_was_done(const Digest& run) {
  std::vector<std::string> known;
  if (!run.model.empty()) known.push_back(run.model);
  for (const StageDigest& stage : run.stages) {
    if (stage.name != "prefill" && stage.name != "decode" && stage.name != kTrainingStep) continue;
    for (const Size& size : sizes_of(stage)) {
      std::string text = fmt::format("{} {}", size.name, size.value ? size_text(*size.value) : "");
      if (size.value && std::string_view(size.name) != "tokens a sequence and step" &&
          std::ranges::count(known, text) == 0)
        known.push_back(std::move(text));
    }
  }
  return fmt::format("{}", fmt::join(known, ", "));
}

// How times are made comparable, stage by stage.
std::string bases_text(const WorkDiff& work) {
  std::vector<std::string> texts;
  std::string without;
  for (const StageWork& stage : work.stages) {
    if (!stage.basis.comparable) {
      without += (without.empty() ? "" : ", ") + stage.stage;
    } else {
      texts.push_back(fmt::format("{} per {}", stage.stage, stage.basis.per));
    }
  }
  std::string text;
  if (!texts.empty()) text += fmt::format(" Compared: {}.", fmt::join(texts, ", "));
  if (!without.empty()) text += fmt::format(" Not comparable: {}.", without);
  return text;
}

std::string same_text(const WorkDiff& work, const Digest& before) {
  const std::string done = what_was_done(before);
  std::string text = "These runs did the same work" + (done.empty() ? "" : ": " + done) + ".";
  if (const std::string unknown = stage_list(work, "unknown"); !unknown.empty())
    text += " It is not known whether these stages did: " + unknown + ".";
  return text;
}

std::string different_text(const WorkDiff& work) {
  const std::string what = of_kind(work.differences, "work"), amount = of_kind(work.differences, "amount");
  if (what.empty()) {
    const bool known = stage_list(work, "unknown").empty();
    return fmt::format("These runs did not do the same amount of work: {}.{}", amount,
                       known ? " Each step did the same." : bases_text(work));
  }
  return fmt::format("These runs did not do the same work: {}{}{}.{}", what, amount.empty() ? "" : "; ", amount,
                     bases_text(work));
}

std::string unknown_text(const Digest& a, const Digest& b) {
  const auto has_products = [](const Digest& run) {
    return std::ranges::any_of(run.stages, [](const StageDigest& stage) { return stage.flops_shapes.has_value(); });
  };
  const bool x = has_products(a), y = has_products(b);
  const char* why = x && y   ? "no stage that both have says the size of its steps"
                    : x || y ? "only one of the runs has matrix products"
                             : "the runs have no matrix products";
  return fmt::format("The work cannot be compared: {}.", why);
}

void judge_all(const Digest& a, const Digest& b, WorkDiff& work) {
  const auto of = [&](std::string_view kind) {
    return std::ranges::any_of(work.differences, [&](const Difference& each) { return each.kind == kind; });
  };
  const bool any_same = !stage_list(work, "same").empty();
  work.same = of("work") || of("amount") ? "different" : any_same ? "same" : "unknown";
  if (!a.folder.empty() && a.folder == b.folder) {
    work.same = "same";
    work.text = "Both are the same run.";
    for (StageWork& stage : work.stages) stage.same = "same", stage.basis = {};
    return;
  }
  work.text = work.same == "same"        ? same_text(work, a)
              : work.same == "different" ? different_text(work)
                                         : unknown_text(a, b);
  if (const std::string device = of_kind(work.differences, "device"); !device.empty())
    work.text += fmt::format(" They ran on different hardware: {}.", device);
}

}  // namespace

WorkDiff compare_work(const Side& before, const Side& after) {
  const Digest &a = before.runs.front(), &b = after.runs.front();
  WorkDiff work;
  std::vector<Difference> by_stage, setup;
  add_model(a, b, work.differences);
  for (Difference& each : work.differences) set_text(each);
  work.same_model = work.differences.empty();
  const bool models_known = knows_model(a) && knows_model(b);
  for (const StageDigest& stage : a.stages) {
    const StageDigest* other = find_stage(b, stage.name);
    if (!is_compared(stage) || other == nullptr) continue;
    work.stages.push_back(stage_work(stage, *other, work, models_known, by_stage));
  }
  add_merged(by_stage, work.stages.size(), work.differences);
  add_one_sided(a, b, work.differences);
  add_steps(a, b, work.differences);
  add_facts(a, b, "device", work.differences);
  work.same_device = of_kind(work.differences, "device").empty();
  add_facts(a, b, "setup", work.differences);
  work.same_command = a.command == b.command;
  judge_all(a, b, work);
  return work;
}

const StageWork* find_stage_work(const WorkDiff& work, std::string_view stage) {
  const auto found = std::ranges::find(work.stages, stage, &StageWork::stage);
  return found == work.stages.end() ? nullptr : &*found;
}

Basis part_basis(const WorkDiff& work, const PartDigest& before, const PartDigest& after) {
  const StageWork* stage = find_stage_work(work, before.stage);
  const bool known = before.flops && after.flops && before.bytes && after.bytes;
  if (known && both_alike(before.flops, after.flops) && both_alike(before.bytes, after.bytes)) return {};
  if (!known && (stage == nullptr || stage->same == "same")) return {};
  return by_work(before.stage, before.flops, after.flops, before.bytes, after.bytes, before.bound, after.bound);
}

std::string measure_caveat(const WorkDiff& work, std::string_view measure) {
  const std::string_view scope = measure.substr(0, measure.find('.'));
  const std::string_view name = measure.substr(std::min(measure.size(), scope.size() + 1));
  // What was reached of what a device can do, and states of the device, mean the same whatever was computed.
  static constexpr std::string_view kAlways[] = {
      "mfu",        "mbu",         "of_floor",        "hfu",        "busy",         "idle",         "share_of_wall",
      "estimated",  "sm_clock",    "memory_clock",    "slow_clock", "temperature",  "power",        "highest_power",
      "in_stages",  "placed",      "losses",          "occupancy",  "sm_occupancy", "l2_hits",      "tensor_busy",
      "redundancy", "dram_active", "recording_delay", "unrecorded", "sm_active",    "tensor_active"};
  static constexpr std::string_view kTotals[] = {"time",  "steps", "tokens", "flops",      "flops_shapes",
                                                 "bytes", "floor", "energy", "kernel_time"};
  if (std::ranges::count(kAlways, name) > 0) return "";
  const bool run = scope == "run" || scope == "requests";
  const std::string device = work.same_device ? "" : "other hardware";
  if (run) {
    if (work.same == "different") return "not the same work";
    if (work.same == "unknown" && !work.same_command) return "not known to be the same work";
    return device;
  }
  const StageWork* stage = find_stage_work(work, scope);
  if (stage == nullptr) return device;  // load, warm-up: never judged
  if (stage->same == "different") return stage->why.empty() ? "another model" : stage->why;
  if (stage->same == "unknown" && !work.same_command) return "not known to be the same work";
  if (!stage->same_steps && std::ranges::count(kTotals, name) > 0) return "another number of steps";
  return device;
}

std::string comparable_measure(const Side& before, const Side& after, std::string_view stage) {
  const auto known = [](const Side& side, const std::string& name) {
    return std::ranges::all_of(side.runs, [&](const Digest& run) {
      const MeasureDigest* found = find_measure(run, name);
      return found != nullptr && found->value;
    });
  };
  const bool bytes = stage == "decode" || stage == "optimizer";
  for (const char* name : {bytes ? "mbu" : "mfu", "of_floor", bytes ? "mfu" : "mbu"}) {
    const std::string measure = fmt::format("{}.{}", stage, name);
    if (known(before, measure) && known(after, measure)) return measure;
  }
  return "";
}

}  // namespace llmprof::analyze
