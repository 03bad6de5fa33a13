// llmprof whatif: a change to a model or to how it is run, before anybody makes it.

#include <fmt/format.h>

#include <array>

#include "analyze/design/whatif.h"
#include "base/human.h"
#include "given_names.h"
#include "model_verb.h"
#include "report/design/whatif.h"
#include "report_verb.h"

namespace llmprof::app {
namespace whatif_verb {
namespace {

namespace design = analyze::design;

constexpr Option kOptions[] = {
    {"--set", "", "", "KEY=VALUE", "",
     "a change: dtype, kv_dtype, activation_dtype, arithmetic, heads, kv_heads, layers, intermediate, "
     "experts_per_token, "
     "window, batch, prompt, context, tp, pp, ep, device; may be repeated",
     true},
    {"--model", "", "", "NAME|PATH", "", "of a run: its model, if it does not know it"},
    {"--device", "-d", "LLMPROF_DEVICE", "NAME", "", "of a model: the device; else this machine's best"},
    {"--batch", "", "", "N", "1", "of a model: sequences that run together"},
    {"--prompt", "", "", "TOKENS", "", "of a model: new tokens of each sequence in prefill"},
    {"--context", "", "", "TOKENS", "", "of a model: tokens of each sequence in decode"},
    {"--json", "", "", "", "", "print everything as JSON (docs/format/json-whatif.md)"},
};
constexpr Positional kPositionals[] = {{"RUN|MODEL", true}};

struct Asked {
  design::ModelSetup setup;
  std::string subject;
  std::vector<design::MeasuredStage> measured;
  std::vector<std::string> notes;
  std::vector<std::optional<double>> floors;  // of a step of `measured`, as the report of the run has them
};

Result<std::int64_t> count_or(const Arguments& arguments, std::string_view flag, std::int64_t otherwise) {
  if (arguments.get(flag).empty()) return otherwise;
  return number_in<std::int64_t>(arguments, flag, "a number from 1 on", 1, design::kMost);
}

Result<Asked> of_model(const Arguments& arguments, const std::string& name) {
  Asked out;
  LLMPROF_LET(out.setup.subject, open_subject(name, {}));
  LLMPROF_LET(out.setup.roof, roof_of(arguments.get("--device")));
  LLMPROF_LET(out.setup.options.batch, count_or(arguments, "--batch", 1));
  LLMPROF_LET(out.setup.options.prompt, count_or(arguments, "--prompt", 0));
  LLMPROF_LET(out.setup.options.context, count_or(arguments, "--context", 0));
  out.subject = name;
  return out;
}

// The usual step of a stage; nothing where its size is not known.
Result<std::optional<std::array<std::int64_t, 3>>> usual_step(const trace::Run& run, std::string_view stage) {
  LLMPROF_LET(
      const trace::ResultTable answer,
      run.query(fmt::format("SELECT quantile_disc(batch, 0.5), quantile_disc(tokens, 0.5), quantile_disc(context, 0.5) "
                            "FROM step WHERE stage = '{}' AND batch IS NOT NULL AND NOT coalesce(warm_up, false)",
                            stage)));
  using Sizes = std::optional<std::array<std::int64_t, 3>>;
  if (answer.rows.empty() || answer.rows.front()[0].is_null()) return Sizes{};
  const auto& row = answer.rows.front();
  return Sizes({row[0].as_int(), row[1].as_int(), row[2].as_int()});
}

Result<Asked> of_run(const Arguments& arguments, const std::string& name) {
  LLMPROF_LET(const OpenedRun opened, open_page(arguments, name, progress_line()));
  const analyze::Summary& summary = opened.page.summary;
  const auto refuse = [&](std::string why, std::string hint) {
    return Error{ErrorCode::kUsage, fmt::format("{}: {}", opened.page.run, why), std::move(hint)};
  };
  if (summary.model.empty()) return refuse("its model is not known: " + summary.model_why, "--model NAME|PATH says it");
  if (summary.devices.empty()) return refuse("it names no device", "");
  if (summary.busy_devices > 1)
    return refuse("it used several devices, whose shares of the model are not taken into account yet",
                  "llmprof whatif MODEL --set tp=N compares designs");
  Asked out;
  LLMPROF_LET(out.setup.subject.config, model::parse_config(summary.model, opened.page.run));
  out.setup.subject.origin = summary.model_origin;
  LLMPROF_LET(out.setup.roof, roof_of(summary.devices.front().name));
  for (const analyze::Stage& stage : summary.stages) {
    const auto& ns = stage.name == "prefill" ? stage.ttft_ns : stage.tpot_p50_ns;
    if ((stage.name != "prefill" && stage.name != "decode") || !ns || stage.guessed()) continue;
    LLMPROF_LET(const auto usual, usual_step(opened.run, stage.name));
    if (!usual) continue;
    out.setup.options.batch = (*usual)[0];
    (stage.name == "prefill" ? out.setup.options.prompt : out.setup.options.context) = (*usual)[2];
    out.measured.push_back({stage.name, static_cast<double>(*ns), stage.steady_busy});
    const std::optional<double>& floor = stage.efficiency.floor_ns;
    out.floors.push_back(floor ? std::optional(*floor / static_cast<double>(stage.steps)) : std::nullopt);
  }
  if (out.measured.empty())
    return refuse("it has no prefill or decode whose sizes are known", "llmprof report RUN stages shows what it has");
  out.subject = fmt::format("{}: {}, batch {}", opened.page.run, summary.model_family, out.setup.options.batch);
  out.notes.push_back(
      "what the run would become is a range, and an estimate: the kernels of the change were not measured");
  return out;
}

Result<std::string> make_page(const Arguments& arguments) {
  const std::string& name = arguments.positionals.at(0);
  const std::vector<std::string> changes = arguments.all("--set");
  if (changes.empty())
    return Error{ErrorCode::kUsage, "whatif wants a change", "llmprof whatif RUN --set dtype=float8 --set batch=16"};
  LLMPROF_LET(Asked asked, is_run(name) ? of_run(arguments, name) : of_model(arguments, name));
  report::WhatIfPage page{.subject = asked.subject, .changes = changes, .notes = asked.notes};
  LLMPROF_LET(page.before, design::make_design(asked.setup.subject, asked.setup.options, asked.setup.roof));
  // Where the usual step does not stand for all of them (batches of many requests), nothing is said of the stage.
  std::vector<design::MeasuredStage> alike;
  for (std::size_t i = 0; i < asked.measured.size(); ++i) {
    const design::Stage* stage = page.before.stage(asked.measured[i].stage);
    if (stage == nullptr || !stage->floor.ns || !asked.floors[i]) continue;
    const double ratio = *stage->floor.ns / *asked.floors[i];
    if (ratio > 0.9 && ratio < 1.1) {
      alike.push_back(asked.measured[i]);
      continue;
    }
    page.notes.push_back(
        fmt::format("{}: left out, as its steps differ: the report of the run has a floor of {}, a usual step {}",
                    stage->name, base::human_ns(*asked.floors[i]), base::human_ns(*stage->floor.ns)));
  }
  design::ModelSetup changed = asked.setup;
  for (const std::string& change : changes) {
    if (change.starts_with("device=")) {
      LLMPROF_LET(changed.roof, roof_of(change.substr(change.find('=') + 1)));
    } else {
      LLMPROF_TRY(design::set(changed, change));
    }
  }
  LLMPROF_LET(page.after, design::make_design(changed.subject, changed.options, changed.roof));
  page.expected = design::expected(page.before, page.after, alike);
  LLMPROF_LET(page.gradients, design::gradients(asked.setup));
  page.cliffs = design::cliffs(page.after);
  return laid_out(page, arguments, "llmprof.whatif");
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const std::string page, make_page(arguments));
  print(page);
  return 0;
}

}  // namespace
}  // namespace whatif_verb

extern const Verb kWhatif;
const Verb kWhatif{"whatif",
                   "say what a change to a model or a run would bring",
                   whatif_verb::kOptions,
                   whatif_verb::kPositionals,
                   false,
                   whatif_verb::run};

}  // namespace llmprof::app
