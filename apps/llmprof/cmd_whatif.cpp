// llmprof whatif: a change to a model or to how it is run, before anybody makes it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyze/design/cliffs.h"
#include "analyze/design/whatif.h"
#include "analyze/design/whatif_sweep.h"
#include "base/file.h"
#include "base/human.h"
#include "base/suggest.h"
#include "given_names.h"
#include "model_verb.h"
#include "program_kernels.h"
#include "serving/engine.h"
#include "report/design/whatif.h"
#include "report_verb.h"
#include "serving_options.h"
#include "whatif_prices.h"
#include "whatif_serving.h"

namespace llmprof::app {
namespace whatif_verb {
namespace {

namespace design = analyze::design;

constexpr Option kOptions[] = {
    {"--set", "", "", "KEY=VALUE", "",
     "a change: dtype, kv_dtype, activation_dtype, arithmetic, heads, kv_heads, layers, intermediate, vocab, "
     "experts_per_token, window, batch, prompt, context, tp, pp, ep, device, or a setting of the engine by vLLM's "
     "name; "
     "may be repeated",
     true},
    {"--sweep", "", "", "AXES", "", "over one or two of these: batch=1..256, or 'kv_heads=1,2,4,8 context=1k..64k:x2'"},
    {"--draw", "", "", "WHAT", "",
     "of a sweep: ttft, tpot, tokens_per_s or memory; else what the setting changes most"},
    {"--output", "-o", "", "FILE", "", "the sweep as FILE.svg or FILE.png"},
    {"--serving", "", "", "ENGINE", "", "of a model: a workload on vllm, vllm@0.19 or static, before and after"},
    {"--model", "", "", "NAME|PATH", "", "of a run: its model, if it does not know it"},
    {"--device", "-d", "LLMPROF_DEVICE", "NAME", "", "of a model: the device; else this machine's best"},
    {"--tables", "", "", "DIR|RUN", "",
     "operator tables of the model as it is, or a run of bench --for; those measured here are found without"},
    {"--batch", "", "", "N", "1", "of a model: sequences that run together"},
    {"--context", "", "", "TOKENS", "", "of a model: tokens of each sequence in decode"},
    {"--dtype", "", "", "TYPE", "", "of a model: type of the weights before the change, if not the config's own"},
    {"--kv-dtype", "", "", "TYPE", "", "of a model: type of the KV cache before the change"},
    {"--tp", "", "", "N", "", "of a model: tensor parallel before the change"},
    {"--json", "", "", "", "", "print everything as JSON (docs/format/json-whatif.md)"},
};
constexpr Positional kPositionals[] = {{"RUN|MODEL", true}};

Error usage(std::string message, std::string hint) {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

struct Asked {
  design::ModelSetup setup;
  std::string subject;
  std::vector<design::MeasuredStage> measured;
  std::vector<std::optional<double>> floors;  // of a step of `measured`, as the report of the run has them
  std::optional<predict::Implementation> program;
  predict::TimesOf times = predict::TimesOf::kInGraph;
};

Result<std::int64_t> count_or(const Arguments& arguments, std::string_view flag, std::int64_t otherwise) {
  if (!arguments.given(flag)) return otherwise;
  const Result<std::int64_t> value = base::parse_count(arguments.get(flag));
  if (value && *value >= 1 && *value <= design::kMost) return *value;
  return usage(fmt::format("{} wants a number from 1 on, not '{}'", flag, arguments.get(flag)), "");
}

Result<Asked> of_model(const Arguments& arguments, const std::string& name) {
  Asked out;
  LLMPROF_LET(out.setup.subject,
              open_subject(name, {.weights = arguments.get("--dtype"), .kv = arguments.get("--kv-dtype")}));
  LLMPROF_LET(out.setup.roof, roof_of(arguments.get("--device")));
  LLMPROF_LET(out.setup.options.batch, count_or(arguments, "--batch", 1));
  LLMPROF_LET(out.setup.options.prompt, count_or(arguments, "--prompt", 0));
  LLMPROF_LET(out.setup.options.context, count_or(arguments, "--context", 0));
  LLMPROF_LET(out.setup.options.parallel.tensor, count_or(arguments, "--tp", 1));
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

Result<void> check_run(const OpenedRun& opened) {
  const analyze::Summary& summary = opened.page.summary;
  const auto refuse = [&](std::string why, std::string hint) {
    return usage(fmt::format("{}: {}", opened.page.run, why), std::move(hint));
  };
  if (!opened.run.info().prediction.empty())
    return refuse("it is a prediction itself: nothing was measured", "llmprof whatif MODEL --device NAME");
  if (summary.model.empty()) return refuse("its model is not known: " + summary.model_why, "--model NAME|PATH says it");
  if (summary.devices.empty()) return refuse("it names no device", "");
  if (summary.busy_devices > 1)
    return refuse("it used several devices, whose shares of the model are not taken into account yet",
                  "llmprof whatif MODEL --set tp=N compares designs");
  return {};
}

Result<Asked> of_run(const Arguments& arguments, const std::string& name) {
  LLMPROF_LET(const OpenedRun opened, open_page(arguments, name, progress_line()));
  LLMPROF_TRY(check_run(opened));
  const analyze::Summary& summary = opened.page.summary;
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
    return usage(fmt::format("{}: it has no prefill or decode whose sizes are known", opened.page.run),
                 "llmprof report RUN stages shows what it has");
  out.times = predict::TimesOf::kKernels;
  if (auto program = predict::read_implementation(opened.run)) {
    const predict::StageSteps* decode = program->stage("decode");
    if (decode != nullptr && decode->graph) out.times = predict::TimesOf::kInGraph;
    out.program = std::move(*program);
  }
  out.subject = fmt::format("{}: {}", opened.page.run, summary.model_family);
  return out;
}

// Settings of the engine matter to cliffs only; all others are of the design.
struct Changes {
  design::ModelSetup after;
  std::vector<std::string> engine;
};

Result<Changes> changed(const design::ModelSetup& setup, const std::vector<std::string>& changes) {
  Changes out{.after = setup, .engine = {}};
  const std::vector<std::string_view> rules = serving::rule_keys();
  for (const std::string& change : changes) {
    const std::string key = change.substr(0, change.find('='));
    if (key == "device" && change.size() > key.size() + 1) {
      LLMPROF_LET(out.after.roof, roof_of(change.substr(key.size() + 1)));
      continue;
    }
    if (std::ranges::find(rules, key) != rules.end()) {
      serving::EngineRules scratch;
      LLMPROF_TRY(serving::set_rule(scratch, change));
      out.engine.push_back(change);
      continue;
    }
    std::vector<std::string> known = design::setting_keys();
    const bool is_known = std::ranges::find(known, key) != known.end();
    if (is_known || change.find('=') == std::string::npos) {
      LLMPROF_TRY(design::set(out.after, change));
      continue;
    }
    known.insert(known.end(), rules.begin(), rules.end());
    const std::string near = base::did_you_mean(key, known, 3);
    return usage(fmt::format("--set: neither the model nor the engine has a setting {}", key),
                 near.empty() ? fmt::format("settings are {}", fmt::join(known, ", ")) : near);
  }
  return out;
}

// Where the usual step does not stand for all of them (batches of many requests), nothing is said of the stage.
std::vector<design::MeasuredStage> alike(const Asked& asked, const design::Design& before,
                                         std::vector<std::string>& notes) {
  std::vector<design::MeasuredStage> out;
  for (std::size_t i = 0; i < asked.measured.size(); ++i) {
    const design::Stage* stage = before.stage(asked.measured[i].stage);
    if (stage == nullptr || !stage->floor.ns || !asked.floors[i]) continue;
    const double ratio = *stage->floor.ns / *asked.floors[i];
    if (ratio > 0.9 && ratio < 1.1) {
      out.push_back(asked.measured[i]);
      continue;
    }
    notes.push_back(
        fmt::format("{}: left out, as its steps differ: the report of the run has a floor of {}, a usual step {}",
                    stage->name, base::human_ns(*asked.floors[i]), base::human_ns(*stage->floor.ns)));
  }
  return out;
}

// What a reader has to know of the ratios.
void note_expected(const std::vector<design::ExpectedStage>& rows, const std::vector<design::MeasuredStage>& measured,
                   std::vector<std::string>& notes) {
  constexpr double kIdleEnough = 0.8;
  for (const design::ExpectedStage& row : rows) {
    if (row.error && !row.expected_ns) {
      notes.push_back(fmt::format(
          "{}: the prediction of what was measured is {:.2f} times as long as that, farther off than {:g} times: its "
          "ratio is not applied, the range is that of the floors",
          row.stage, 1 + *row.error, design::kFarthest));
    }
    const auto stage = std::ranges::find(measured, row.stage, &design::MeasuredStage::stage);
    if (stage != measured.end() && stage->busy && *stage->busy < kIdleEnough) {
      notes.push_back(
          fmt::format("{}: the device is idle {} of the step: where the host sets the pace, less work of the device "
                      "makes no step shorter",
                      row.stage, base::human_percent(1 - *stage->busy)));
    }
  }
  if (std::ranges::none_of(rows, [](const auto& row) { return row.expected_ns.has_value(); }) && !rows.empty())
    notes.push_back(
        "what the run would become is a range by floors, no interval: it supposes that kernels reach what they reach "
        "now, and one that computes sequence by sequence takes longer; llmprof bench --for measures what predictions "
        "need");
}

Result<WhatIfPrices> prices_of(const Arguments& arguments, Asked& asked) {
  LLMPROF_LET(WhatIfPrices prices, WhatIfPrices::make(arguments, asked.setup, asked.times));
  const auto device = hw::resolve_device(asked.setup.roof.device);
  if (!asked.program || !device) return prices;
  const model::Config& config = asked.setup.subject.config;
  const predict::TablesKey key{device->device, config, 1, predict::kept_type(config, device->device, "")};
  if (auto rows = predict::kept_probed(key, is_workload(*asked.program))) {
    rows->recording_ns = 0;  // what was measured was recorded
    if (auto program = predict::ProgramCost::make(std::move(*asked.program), std::move(*rows)))
      prices.use_program(std::move(*program));
  }
  return prices;
}

// "batch 8, context 4096": what the axes of a sweep leave alone.
std::string held_sizes(const design::Options& options, const std::vector<base::Axis>& axes) {
  std::string out;
  for (const auto& [name, value] : {std::pair{"batch", options.batch}, std::pair{"prompt", options.prompt},
                                    std::pair{"context", options.context}}) {
    const std::string_view key = name;
    if (std::ranges::any_of(axes, [&](const base::Axis& axis) { return axis.name == key; })) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, value);
  }
  if (options.parallel.tensor > 1 && std::ranges::find(axes, "tp", &base::Axis::name) == axes.end())
    out += fmt::format(", tp {}", options.parallel.tensor);
  return out;
}

Result<std::string> steps_page(const Arguments& arguments, Asked& asked) {
  const std::vector<std::string> changes = arguments.all("--set");
  report::WhatIfPage page{.subject = asked.subject, .changes = changes};
  LLMPROF_LET(page.before, design::make_design(asked.setup.subject, asked.setup.options, asked.setup.roof));
  LLMPROF_LET(WhatIfPrices prices, prices_of(arguments, asked));
  LLMPROF_LET(const Changes change, changed(asked.setup, changes));
  const design::ModelSetup& after = change.after;
  page.subject += ", " + held_sizes(page.before.options, {});
  LLMPROF_LET(page.after, design::make_design(after.subject, after.options, after.roof));
  const std::vector<design::MeasuredStage> measured = alike(asked, page.before, page.notes);
  const design::Pricer pricer = prices.pricer();
  if (auto both = design::price_both(pricer, asked.setup, after)) page.predicted = std::move(*both);
  page.expected = design::expected(page.before, page.after, measured, page.predicted);
  note_expected(page.expected, measured, page.notes);
  LLMPROF_LET(page.gradients, design::gradients(asked.setup, pricer));
  page.cliffs = design::cliffs(after, page.after, prices.cliff_facts(after, "vllm", change.engine), pricer);
  if (page.predicted)
    page.notes.insert(page.notes.end(), page.predicted->second.notes.begin(), page.predicted->second.notes.end());
  if (!prices.problem().empty()) page.notes.push_back(prices.problem());
  return laid_out(page, arguments, "llmprof.whatif");
}

// ---- sweeps

struct DrawnName {
  std::string_view name;
  report::Drawn drawn;
};
constexpr DrawnName kDrawn[] = {{"ttft", report::Drawn::kTtft},
                                {"tpot", report::Drawn::kTpot},
                                {"tokens_per_s", report::Drawn::kTokensPerS},
                                {"memory", report::Drawn::kMemory}};

Result<report::Drawn> drawn_in(const Arguments& arguments, const std::string& across) {
  const std::string asked = arguments.get("--draw");
  if (asked.empty())
    return across == "batch"    ? report::Drawn::kTokensPerS
           : across == "prompt" ? report::Drawn::kTtft
                                : report::Drawn::kTpot;
  const auto* const found = std::ranges::find(kDrawn, asked, &DrawnName::name);
  if (found != std::end(kDrawn)) return found->drawn;
  return usage(fmt::format("--draw: '{}' is not known", asked), "ttft, tpot, tokens_per_s or memory");
}

// The run itself, where the setting is a size of its steps.
std::optional<report::PlotPoint> measured_point(const Asked& asked, const std::string& across, report::Drawn drawn) {
  const design::Options& o = asked.setup.options;
  const std::int64_t at = across == "batch"     ? o.batch
                          : across == "prompt"  ? o.prompt
                          : across == "context" ? o.context
                                                : 0;
  const std::string_view stage = drawn == report::Drawn::kTtft ? "prefill" : "decode";
  const auto found = std::ranges::find(asked.measured, stage, &design::MeasuredStage::stage);
  if (at == 0 || found == asked.measured.end() || drawn == report::Drawn::kMemory) return std::nullopt;
  const double y =
      drawn == report::Drawn::kTokensPerS ? static_cast<double>(o.batch) * 1e9 / found->ns : found->ns * 1e-9;
  return report::PlotPoint{static_cast<double>(at), y};
}

Result<std::string> sweep_page(const Arguments& arguments, Asked& asked) {
  const std::vector<std::string> changes = arguments.all("--set");
  LLMPROF_LET(std::vector<base::Axis> axes, base::parse_axes(arguments.get("--sweep")));
  const std::string across = axes.empty() ? "" : axes.back().name;
  const std::string file = arguments.get("--output");
  if (!file.empty()) LLMPROF_TRY(check_ending("-o", file, {".svg", ".png"}));
  LLMPROF_LET(WhatIfPrices prices, prices_of(arguments, asked));
  LLMPROF_LET(const Changes change, changed(asked.setup, changes));
  report::WhatIfSweepPage page{.subject = asked.subject, .changes = changes};
  LLMPROF_LET(page.drawn, drawn_in(arguments, across));
  LLMPROF_LET(page.sweep,
              design::sweep_changes(asked.setup, changes.empty() ? nullptr : &change.after,
                                    fmt::format("{}", fmt::join(changes, ", ")), std::move(axes), prices.pricer()));
  LLMPROF_LET(const design::Options held, design::complete(change.after.options, change.after.subject.config));
  page.held = held_sizes(held, page.sweep.axes);
  page.device = change.after.roof.device, page.device_bytes = change.after.roof.memory_bytes;
  page.measured = measured_point(asked, across, page.drawn);
  if (page.sweep.scaled)
    page.notes.emplace_back(
        "some operators were not measured in all of these shapes or types: their times follow their floors");
  if (!prices.problem().empty()) page.notes.push_back(prices.problem());
  page.with_plot = file.empty();
  if (!file.empty()) {
    LLMPROF_LET(const std::string bytes, report::plot_bytes(report::to_plot(page), file));
    LLMPROF_TRY(base::write_file(file, bytes, base::Readers::kAsTheUmaskSays));
  }
  return laid_out(page, arguments, "llmprof.whatif_sweep");
}

Result<std::string> make_page(const Arguments& arguments) {
  const std::string& name = arguments.positionals.at(0);
  if (asks_for_serving(arguments)) {
    if (is_run(name))
      return usage("--serving is of a model, not of a run", "llmprof whatif MODEL --serving vllm --rate 4");
    if (arguments.given("--sweep")) return usage("--sweep and --serving exclude each other", "");
    return whatif_serving_page(arguments);
  }
  if (arguments.given("--output") && !arguments.given("--sweep"))
    return usage("-o writes the picture of a --sweep", "llmprof whatif MODEL --sweep batch=1..256 -o sweep.svg");
  LLMPROF_LET(Asked asked, is_run(name) ? of_run(arguments, name) : of_model(arguments, name));
  return arguments.given("--sweep") ? sweep_page(arguments, asked) : steps_page(arguments, asked);
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
                   whatif_verb::run,
                   workload_options};

}  // namespace llmprof::app
