// llmprof-workload infer: prefill, then decode.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "llmprof/annotate.h"
#include "workload/command.h"
#include "workload/generate.h"
#include "workload/presets.h"
#include "workload/summary.h"
#include "workload/weights_file.h"

namespace llmprof::workload {
namespace {

struct Options {
  std::string preset = "demo";
  std::string family, config_path, weights_path;
  std::string sampler = "greedy";
  ModelConfig sizes;                                   // 0: as the preset says
  std::int64_t batch = 0, prompt = 0, new_tokens = 0;  // 0: as the preset says
  std::int64_t k = 40, threads = 0;
  std::uint64_t seed = 0;
  bool json = false;
  bool list_presets = false;
};

void describe(CLI::App& infer, Options& o) {
  infer.add_option("--preset", o.preset, "model and run to start from")->capture_default_str();
  infer.add_option("--config", o.config_path, "Hugging Face config.json of the model, instead of the preset's");
  infer.add_option("--weights", o.weights_path, ".safetensors file with the weights (default: random by seed)");
  infer.add_option("--family", o.family, "gpt2 or llama");
  infer.add_option("--layers", o.sizes.layers, "number of layers");
  infer.add_option("--hidden", o.sizes.hidden, "width of the residual stream");
  infer.add_option("--heads", o.sizes.heads, "attention heads");
  infer.add_option("--kv-heads", o.sizes.kv_heads, "key-value heads (llama)");
  infer.add_option("--intermediate", o.sizes.intermediate, "width of the MLP");
  infer.add_option("--vocab", o.sizes.vocab, "size of the vocabulary");
  infer.add_option("--batch", o.batch, "sequences at once");
  infer.add_option("--prompt", o.prompt, "tokens in each prompt");
  infer.add_option("--new", o.new_tokens, "tokens to generate for each");
  infer.add_option("--sampler", o.sampler, "greedy or topk")->capture_default_str();
  infer.add_option("--k", o.k, "topk: how many tokens may be drawn")->capture_default_str();
  infer.add_option("--seed", o.seed, "of weights, prompts and sampler")->capture_default_str();
  infer.add_option("--threads", o.threads, "threads (default: processors this process may use)");
  infer.add_flag("--json", o.json, "print the summary as JSON");
  infer.add_flag("--list-presets", o.list_presets, "list the presets and exit");
}

// A size given by hand replaces the preset's. What follows from it is derived again.
Result<ModelConfig> choose_model(const Options& o, const Preset& preset) {
  if (!o.config_path.empty()) {
    LLMPROF_LET(const std::string text, base::read_file(o.config_path, 16 << 20));
    return parse_config(text, o.config_path);
  }
  ModelConfig config = preset.config;
  if (!o.family.empty()) {
    LLMPROF_LET(const Family family, parse_family(o.family));
    if (family != config.family) config.tied_embeddings = false;
    config.family = family;
  }
  if (o.sizes.hidden != 0 || o.sizes.heads != 0) config.head_dim = 0;
  if (o.sizes.hidden != 0) config.intermediate = 0;
  if (o.sizes.heads != 0) config.kv_heads = 0;
  for (const auto field : {&ModelConfig::layers, &ModelConfig::hidden, &ModelConfig::heads, &ModelConfig::kv_heads,
                           &ModelConfig::intermediate, &ModelConfig::vocab}) {
    if (o.sizes.*field != 0) config.*field = o.sizes.*field;
  }
  return complete(config);
}

Result<GenerateOptions> choose_run(const Options& o, const Preset& preset) {
  GenerateOptions run{.batch = o.batch != 0 ? o.batch : preset.batch,
                      .prompt_tokens = o.prompt != 0 ? o.prompt : preset.prompt_tokens,
                      .new_tokens = o.new_tokens != 0 ? o.new_tokens : preset.new_tokens,
                      .prompt_seed = o.seed};
  run.sampler = {.k = o.k, .seed = o.seed};
  if (o.sampler == "topk") {
    run.sampler.kind = Sampler::Kind::kTopK;
  } else if (o.sampler != "greedy") {
    return Error{ErrorCode::kUsage, fmt::format("unknown sampler '{}'", o.sampler), "known: greedy, topk"};
  }
  return run;
}

Result<RunSummary> infer(const Options& o) {
  LLMPROF_LET(const Preset preset, find_preset(o.preset));
  LLMPROF_LET(const ModelConfig config, choose_model(o, preset));
  LLMPROF_LET(const GenerateOptions run, choose_run(o, preset));
  LLMPROF_TRY(check_run(config, run));
  RunSummary summary{.config = config, .options = run};
  LLMPROF_LET(summary.threads, choose_threads(o.threads));
  ThreadPool pool(summary.threads);
  llmprof_model(config_json(config).c_str());

  const std::int64_t begin_ns = now_ns();
  llmprof_stage_push("load", 0, 0, 0);
  auto weights = o.weights_path.empty() ? Result<Weights>(Weights::random(config, o.seed, pool))
                                        : load_weights(config, o.weights_path);
  llmprof_pop();
  if (!weights) return weights.error();
  summary.load_ns = now_ns() - begin_ns;
  summary.weights = o.weights_path.empty() ? fmt::format("random, seed {}", o.seed) : o.weights_path;
  summary.parameters = weights->parameters();
  summary.weight_bytes = weights->bytes();
  const auto model = make_model(config, std::move(*weights), pool);
  summary.generated = generate(*model, run);
  return summary;
}

int run(const Options& o) {
  if (o.list_presets) {
    for (const Preset& preset : presets()) fmt::print("{:<16} {}\n", preset.name, preset.summary);
    return 0;
  }
  const Result<RunSummary> summary = infer(o);
  if (!summary) return fail(summary.error());
  const std::string text = o.json ? json_summary(*summary) : text_summary(*summary);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

void add_infer(CLI::App& app, std::function<int()>& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& infer = *app.add_subcommand("infer", "prefill, then decode");
  describe(infer, *options);
  infer.callback([&chosen, options] { chosen = [options] { return run(*options); }; });
}

}  // namespace llmprof::workload
