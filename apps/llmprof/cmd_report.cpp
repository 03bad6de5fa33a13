// llmprof report: the answer on one screen, a part of it, or everything, as text or JSON.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analyze/bench.h"
#include "analyze/measures/totals_findings.h"
#include "analyze/summary.h"
#include "base/json.h"
#include "base/suggest.h"
#include "given_names.h"
#include "record/open_run.h"
#include "report/bench.h"
#include "report/explain.h"
#include "report/measured.h"
#include "report/page.h"
#include "report/table.h"
#include "report_verb.h"

namespace llmprof::app {
namespace report_verb {
namespace {

constexpr Option kOptions[] = {
    {"--full", "", "", "", "", "print everything instead of one screen"},
    {"--json", "", "", "", "", "print the report as JSON (docs/format/json.md)"},
    {"--model", "", "", "NAME|PATH", "",
     "the model: a built-in name, a folder, a config.json or a .gguf file; overrides what the run knows"},
    {"--parallel", "", "", "GROUPS", "",
     "how ranks divide the model: tp=2,pp=4,dp=2,ep=8 (tensor, pipeline, data, expert), in the order in which ranks "
     "are "
     "counted; overrides what the run knows"},
    {"--ranges", "", "LLMPROF_RANGES", "FILE", "",
     "rules for names of ranges, a TOML file; llmprof.toml of this folder unless given (llmprof ranges)"},
    {"--diagnosis", "", "", "", "", "only what was lost and the diagnosis: all evidence, all advice, every rule"},
    {"--explain", "", "", "NAME", "",
     "what a measure (decode.mbu) or a rule (wide_weights) means, and what it is in this run; list: all names"},
    {"--html", "", "", "FILE", "",
     "write a page that needs no network: diagnosis, timeline, flame graph, roofline; FILE.json: only its data"},
    {"--against", "", "", "RUN", "", "with --html: also this run, and what changed since it"},
    {"--host-names", "", "", "", "", "with --html: leave the names of hosts in the page"},
    {"--price", "", "LLMPROF_PRICE", "X", "",
     "price of a device for an hour, in any currency: what requests cost; unknown unless given"},
    {"--engine", "", "", "TEXT", "",
     "the server's engine and its settings, where the run does not say them: 'vllm@0.19 max_num_seqs=64'"},
    {"--stage", "", "", "NAME", "", "show only this stage"},
    {"--waterfall", "", "", "", "", "from the measured time down to the floor: every stage in full, as bars"},
    {"--by", "", "", "line|function|stack", "",
     "GPU time by what launched it, where stacks were recorded (record --stacks)"},
    {"--counters", "", "", "", "", "only what was lost and the hardware counters: every table in full"},
    {"--verbose", "", "", "", "", "also what only few readers need: serial numbers of devices"},
    {"--top", "", "LLMPROF_TOP", "N", "15",
     "rows of each table, and findings of the diagnosis (as many as fit a screen unless given)"},
};
constexpr Positional kPositionals[] = {{"RUN", false}, {"PART", false}};

bool is_part(const std::string& word) {
  return std::ranges::find(report::report_parts(), word, &report::ReportPart::name) != report::report_parts().end();
}

// One screen; a part, everything, or what an option asks for.
Result<std::string> text_of(const Arguments& arguments, const report::Page& page, const std::vector<std::string>& parts,
                            bool colour) {
  if (!parts.empty()) {
    if (is_part(parts.front())) return report::part_text(page, parts.front(), colour);
    std::vector<std::string_view> names;
    for (const report::ReportPart& part : report::report_parts()) names.push_back(part.name);
    return Error{ErrorCode::kUsage, "a report has no part '" + parts.front() + "'",
                 base::did_you_mean(parts.front(), names) + fmt::format("it has {}", fmt::join(names, ", "))};
  }
  const bool asked = page.diagnosis || page.counters || page.waterfall || !page.summary.gpu.by.empty();
  return arguments.on("--full") || asked ? report::to_text(page, colour) : report::screen_text(page, colour);
}

Result<analyze::Options> options_of(const Arguments& arguments, std::string by) {
  analyze::Options options{.model = arguments.get("--model"),
                           .by = std::move(by),
                           .parallel = arguments.get("--parallel"),
                           .ranges = arguments.get("--ranges"),
                           .engine = arguments.get("--engine")};
  if (arguments.get("--price").empty()) return options;
  LLMPROF_LET(options.price_per_hour, number_in<double>(arguments, "--price", "a price per hour of a device", 0, 1e9));
  return options;
}

// Of a run that holds only another tool's totals: what the model says of them.
Result<std::optional<report::MeasuredPage>> measured_page(const Arguments& arguments, const trace::Run& run,
                                                          const report::Page& page) {
  if (page.summary.imported.totals.empty()) return std::optional<report::MeasuredPage>();
  LLMPROF_LET(const analyze::Options options, options_of(arguments, ""));
  LLMPROF_LET(const analyze::AnalysisContext analysis, analyze::find_context(run, options));
  LLMPROF_LET(std::optional<analyze::MeasuredFindings> findings, analyze::totals_findings(run, analysis, page.summary));
  if (!findings) return std::optional<report::MeasuredPage>();
  return std::optional(report::MeasuredPage{
      analysis.model->config().family, analysis.devices.empty() ? "" : analysis.devices.front().name,
      page.summary.imported.sources.empty() ? page.run : page.summary.imported.sources.front().file,
      std::move(*findings)});
}

Result<std::string> explanation(const Arguments& arguments, const report::Page* page) {
  const std::string name = arguments.get("--explain");
  if (!arguments.on("--json")) return report::explain(name, page, {.colour = colour_wanted()});
  base::Json json = json_head("llmprof.explain");
  json["run"] = page == nullptr ? base::Json(nullptr) : base::Json(page->run);
  LLMPROF_TRY(report::explain(name, page, json));
  return base::to_text(json);
}

// A run of `llmprof bench` has points instead of kernels: its table says all there is.
Result<std::string> make_report(const Arguments& arguments) {
  if (arguments.positionals.empty() && arguments.given("--explain")) return explanation(arguments, nullptr);
  if (arguments.given("--html")) return write_html(arguments);
  const base::Progress progress = progress_line();
  // A run may be called like a part: then the run is meant.
  LLMPROF_LET(const RunArgument given,
              run_argument(arguments, [](const std::string& word) { return is_part(word) && !is_run(word); }));
  LLMPROF_LET(trace::Run run, record::open_run(given.run, progress));
  LLMPROF_LET(analyze::BenchResults bench, analyze::bench_results(run));
  if ((!bench.points.empty() || run.info().source == "bench") && !arguments.on("--json")) {
    return report::to_text(report::BenchPage{run.folder(), run.info(), std::move(bench)}, colour_wanted());
  }
  LLMPROF_LET(const report::Page page, make_page(arguments, run, progress));
  if (arguments.given("--explain")) return explanation(arguments, &page);
  if (!arguments.on("--json")) {
    LLMPROF_LET(const std::string text, text_of(arguments, page, given.rest, colour_wanted()));
    if (!arguments.on("--full")) return text;
    LLMPROF_LET(const std::optional<report::MeasuredPage> measured, measured_page(arguments, run, page));
    return text + (measured ? "\n" + report::to_text(*measured, colour_wanted()) : "");
  }
  LLMPROF_LET(const base::Json json, report_json(arguments, run, page));
  return base::to_text(json);
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const std::string text, make_report(arguments));
  print(text);
  return 0;
}

}  // namespace
}  // namespace report_verb

Result<void> check_stage(const report::Page& page) {
  std::vector<std::string> names;
  for (const analyze::Stage& stage : page.summary.stages) names.push_back(stage.name);
  return check_stage(page.stage, names);
}

Result<std::string> screen_of(const std::string& run_name, bool colour) {
  LLMPROF_LET(const Arguments arguments, parse_arguments(*find_verb("report"), {run_name}));
  const base::Progress progress = progress_line();
  LLMPROF_LET(trace::Run run, record::open_run(run_name, progress));
  LLMPROF_LET(report::Page page, make_page(arguments, run, progress));
  page.run = run_name;
  return report::screen_text(page, colour);
}

Result<OpenedRun> open_page(const Arguments& arguments, const std::string& name, const base::Progress& progress,
                            const std::vector<analyze::Section>& sections) {
  LLMPROF_LET(trace::Run run, record::open_run(name, progress));
  const analyze::Options options{
      .model = arguments.get("--model"), .parallel = arguments.get("--parallel"), .sections = sections};
  LLMPROF_LET(analyze::Summary summary, analyze::summarise(run, options, progress));
  report::Page page{.run = run.folder(), .info = run.info(), .summary = std::move(summary)};
  return OpenedRun{std::move(run), std::move(page)};
}

Result<report::Page> make_page(const Arguments& arguments, trace::Run& run, const base::Progress& progress) {
  LLMPROF_LET(const std::size_t top, top_in(arguments));
  const std::string by = arguments.get("--by");
  if (!by.empty() && by != "line" && by != "function" && by != "stack") {
    return Error{ErrorCode::kUsage, "--by wants line, function or stack, not '" + by + "'", ""};
  }
  LLMPROF_LET(const analyze::Options options, report_verb::options_of(arguments, by));
  LLMPROF_LET(analyze::Summary summary, analyze::summarise(run, options, progress));
  report::Page page{.run = run.folder(),
                    .info = run.info(),
                    .summary = std::move(summary),
                    .top = top,
                    .findings = arguments.given("--top") ? top : 0,
                    .stage = arguments.get("--stage"),
                    .diagnosis = arguments.on("--diagnosis"),
                    .counters = arguments.on("--counters"),
                    .waterfall = arguments.on("--waterfall"),
                    .unicode = unicode_wanted(),
                    .verbose = arguments.on("--verbose")};
  LLMPROF_TRY(check_stage(page));
  return page;
}

Result<base::Json> report_json(const Arguments& arguments, const trace::Run& run, const report::Page& page) {
  LLMPROF_LET(const std::optional<report::MeasuredPage> measured, report_verb::measured_page(arguments, run, page));
  LLMPROF_LET(const analyze::BenchResults bench, analyze::bench_results(run));
  base::Json json = json_head("llmprof.report");
  report::to_json(page, json);
  if (measured) report::to_json(*measured, json["measured"]);
  if (!bench.points.empty()) json["bench"] = report::bench_points_json(bench.points);
  json["tables"] = report::descriptions_json();
  return json;
}

extern const Verb kReport;
const Verb kReport{"report",
                   "show where time, FLOPs and bytes of a run went, and what would pay",
                   report_verb::kOptions,
                   report_verb::kPositionals,
                   false,
                   report_verb::run};

}  // namespace llmprof::app
