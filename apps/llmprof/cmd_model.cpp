// llmprof model: what a model must cost, from its config alone.

#include "analyze/design/design.h"
#include "analyze/design/sweep.h"
#include "base/axis.h"
#include "base/file.h"
#include "given_names.h"
#include "model_verb.h"
#include "report/design/page.h"
#include "report_verb.h"

namespace llmprof::app {
namespace model_verb {
namespace {

namespace design = analyze::design;

constexpr Option kOptions[] = {
    {"--batch", "", "", "N", "1", "sequences that run together"},
    {"--prompt", "", "", "TOKENS", "", "new tokens of each sequence in prefill, or in training; 1024 if not given"},
    {"--context", "", "", "TOKENS", "",
     "tokens of each sequence in decode, the new one included; as --prompt if not given"},
    {"--mixed", "", "", "LIST", "", "a mixed pass as well: COUNTxTOKENS@CONTEXT, as in 8x1@2048,1x512@512"},
    {"--train", "", "", "", "", "forward, backward and optimizer (AdamW) instead of prefill and decode"},
    {"--recompute", "", "", "WHAT", "none", "training: results computed again instead of kept: none, cheap, layers"},
    {"--dtype", "", "", "TYPE", "",
     "type of the weights, if not the config's own; below 16 bits of the layers' matrices"},
    {"--kv-dtype", "", "", "TYPE", "", "type of the KV cache"},
    {"--activation-dtype", "", "", "TYPE", "", "type of the activations"},
    {"--arithmetic", "", "", "TYPE", "", "type of the products, whose peak counts: tf32, bfloat16, float8, …"},
    {"--mla", "", "", "HOW", "least", "latent attention: absorbed, expanded, or the least FLOPs of both"},
    {"--tp", "", "", "N", "1", "tensor parallel: heads, MLP and vocabulary are split"},
    {"--pp", "", "", "N", "1", "pipeline parallel: layers are split"},
    {"--ep", "", "", "N", "1", "expert parallel: routed experts are split"},
    {"--device", "-d", "LLMPROF_DEVICE", "NAME", "",
     "device for floors and fit (llmprof devices --all); else this machine's best"},
    {"--per-op", "", "", "", "", "table of operators: the default, and beside --per-layer if asked for"},
    {"--per-layer", "", "", "", "", "table of layers; equal ones stand together"},
    {"--top", "", "LLMPROF_TOP", "N", "15", "rows of each table of operators"},
    {"--sweep", "", "", "AXES", "",
     "many points: \"batch=1..256:x2 context=1k..128k:x2\"; axes are batch, prompt, context"},
    {"--plot", "", "", "FILE", "", "the sweep as an SVG picture"},
    {"--diff", "", "", "MODEL", "", "compare with another model, under the same conditions"},
    {"--diff-device", "", "", "NAME", "", "compare with another device; the same model unless --diff names one"},
    {"--diff-dtype", "", "", "TYPE", "", "compare with another type of the weights; likewise"},
    {"--measured-tps", "", "", "X", "", "measured tokens/s of all sequences: model-level MFU and MBU"},
    {"--measured-ttft", "", "", "TIME", "", "measured time to first token, as in 180ms"},
    {"--measured-tpot", "", "", "TIME", "", "measured time per output token, as in 21ms"},
    {"--measured", "", "", "FILE", "", "a table that torch.profiler printed: what it says about this model"},
    {"--measured-weights", "", "", "SIZE", "", "memory that the weights took, as in 4714.27MiB: tells their type"},
    {"--list", "", "", "", "", "list the built-in names"},
    {"--csv", "", "", "", "", "print the operators, layers, sweep or comparison as CSV"},
    {"--json", "", "", "", "", "print everything as JSON (docs/format/json-model.md)"},
};
constexpr Positional kPositionals[] = {{"MODEL", false}};

template <class Page>
std::string as_asked(const Page& page, const Arguments& arguments, std::string_view schema) {
  return arguments.on("--csv") ? report::to_csv(page) : laid_out(page, arguments, schema);
}

Result<std::string> sweep_page(const Arguments& arguments, const design::Subject& subject,
                               const design::Options& options, const design::Roof& roof) {
  LLMPROF_LET(std::vector<base::Axis> axes, base::parse_axes(arguments.get("--sweep")));
  LLMPROF_LET(design::Sweep sweep, design::sweep(subject, options, roof, std::move(axes)));
  LLMPROF_LET(design::Design fixed, design::make_design(subject, options, roof));
  const report::SweepPage page{.design = std::move(fixed), .sweep = std::move(sweep)};
  if (arguments.given("--plot")) {
    LLMPROF_TRY(base::write_file(arguments.get("--plot"), report::plot_svg(report::to_plot(page)),
                                 base::Readers::kAsTheUmaskSays));
  }
  return as_asked(page, arguments, "llmprof.model_sweep");
}

Result<std::string> diff_page(const Arguments& arguments, const design::Subject& subject,
                              const design::Options& options, const design::Roof& roof) {
  model::Types types = types_of(arguments);
  if (arguments.given("--diff-dtype")) types.weights = arguments.get("--diff-dtype");
  const std::string name = arguments.given("--diff") ? arguments.get("--diff") : arguments.positionals.at(0);
  LLMPROF_LET(const design::Subject other, open_subject(name, types));
  design::Roof other_roof = roof;
  if (arguments.given("--diff-device")) {
    LLMPROF_LET(other_roof, roof_of(arguments.get("--diff-device")));
  }
  LLMPROF_LET(design::Design a, design::make_design(subject, options, roof));
  LLMPROF_LET(design::Design b, design::make_design(other, options, other_roof));
  std::vector<design::DiffRow> rows = design::diff(a, b);
  const report::DesignDiffPage page{.a = std::move(a), .b = std::move(b), .rows = std::move(rows)};
  return as_asked(page, arguments, "llmprof.model_diff");
}

Result<std::string> design_page(const Arguments& arguments, const design::Subject& subject,
                                const design::Options& options, const design::Roof& roof) {
  LLMPROF_LET(const std::int64_t top, base::parse_count(arguments.get("--top")));
  LLMPROF_LET(const design::Measurement measured, measurement(arguments));
  LLMPROF_LET(design::Design design, design::make_design(subject, options, roof));
  LLMPROF_LET(std::vector<design::Reached> reached, design::reached(design, measured));
  const bool per_layer = arguments.on("--per-layer");
  const report::DesignPage page{.design = std::move(design),
                                .reached = std::move(reached),
                                .per_op = !per_layer || arguments.on("--per-op"),
                                .per_layer = per_layer,
                                .top = static_cast<std::size_t>(top)};
  return as_asked(page, arguments, "llmprof.model");
}

bool compares(const Arguments& arguments) {
  return arguments.given("--diff") || arguments.given("--diff-device") || arguments.given("--diff-dtype");
}

Result<void> check(const Arguments& arguments) {
  const auto refuse = [](std::string message) { return Error{ErrorCode::kUsage, std::move(message), ""}; };
  if (arguments.on("--csv") && arguments.on("--json")) return refuse("--csv and --json exclude each other");
  if (arguments.given("--sweep") && compares(arguments)) return refuse("--sweep and --diff exclude each other");
  if (arguments.given("--plot") && !arguments.given("--sweep")) return refuse("--plot draws a --sweep");
  if (arguments.given("--plot")) LLMPROF_TRY(check_ending("--plot", arguments.get("--plot"), {".svg"}));
  if (arguments.given("--measured-weights") && !arguments.given("--measured"))
    return refuse("--measured-weights goes with --measured");
  return {};
}

Result<std::string> make_page(const Arguments& arguments) {
  LLMPROF_TRY(check(arguments));
  LLMPROF_LET(const design::Options options, design_options(arguments));
  LLMPROF_LET(const design::Subject subject, open_subject(arguments.positionals.at(0), types_of(arguments)));
  LLMPROF_LET(const design::Roof roof, roof_of(arguments.get("--device")));
  if (arguments.given("--measured")) return measured_page(arguments, subject, roof);
  if (arguments.given("--sweep")) return sweep_page(arguments, subject, options, roof);
  if (compares(arguments)) return diff_page(arguments, subject, options, roof);
  return design_page(arguments, subject, options, roof);
}

Result<int> run(const Arguments& arguments) {
  if (arguments.positionals.empty() || arguments.on("--list")) return list_models(arguments);
  LLMPROF_LET(const std::string page, make_page(arguments));
  print(page);
  return 0;
}

}  // namespace
}  // namespace model_verb

extern const Verb kModel;
const Verb kModel{"model",
                  "say what a model must cost: memory, FLOPs, bytes, least times",
                  model_verb::kOptions,
                  model_verb::kPositionals,
                  false,
                  model_verb::run};

}  // namespace llmprof::app
