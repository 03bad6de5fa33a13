// llmprof-workload infer: prefill, then decode.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <thread>

#include "llmprof/annotate.h"
#include "workload/command.h"
#include "workload/cuda/device_model.h"
#include "workload/generate.h"
#include "workload/config.h"
#include "workload/model_options.h"
#include "workload/ranks.h"
#include "workload/summary.h"

namespace llmprof::workload {
namespace {

struct Options {
  ModelOptions model;
  bool cuda_graph = false;
  std::string sampler = "greedy";
  std::int64_t batch = 0, prompt = 0, new_tokens = 0;  // 0: as the preset says
  std::int64_t k = 40, ranks = 1;
  std::string parallel = "dp";
  bool json = false;
  bool list_presets = false;
};

void describe(CLI::App& infer, Options& o) {
  describe_model(infer, o.model);
  infer.add_flag("--cuda-graph", o.cuda_graph, "on a GPU, decode as a CUDA graph");
  infer.add_option("--batch", o.batch, "sequences at once");
  infer.add_option("--prompt", o.prompt, "tokens in each prompt");
  infer.add_option("--new", o.new_tokens, "tokens to generate for each");
  infer.add_option("--sampler", o.sampler, "greedy or topk")->capture_default_str();
  infer.add_option("--k", o.k, "topk: how many tokens may be drawn")->capture_default_str();
  infer.add_option("--ranks", o.ranks, "processes that run it together, on the CPU")->capture_default_str();
  infer
      .add_option("--parallel", o.parallel,
                  "how: dp (each has prompts of its own) or tp (each has a part of the model)")
      ->capture_default_str();
  infer.add_flag("--json", o.json, "print the summary as JSON");
  infer.add_flag("--list-presets", o.list_presets, "list the presets and exit");
}

Result<GenerateOptions> choose_run(const Options& o, const Preset& preset) {
  GenerateOptions run{.batch = o.batch != 0 ? o.batch : preset.batch,
                      .prompt_tokens = o.prompt != 0 ? o.prompt : preset.prompt_tokens,
                      .new_tokens = o.new_tokens != 0 ? o.new_tokens : preset.new_tokens,
                      .prompt_seed = o.model.seed};
  run.sampler = {.k = o.k, .seed = o.model.seed};
  if (o.sampler == "topk") {
    run.sampler.kind = Sampler::Kind::kTopK;
  } else if (o.sampler != "greedy") {
    return Error{ErrorCode::kUsage, fmt::format("unknown sampler '{}'", o.sampler), "known: greedy, topk"};
  }
  return run;
}

Result<void> run_on_cpu(const Options& o, ThreadPool& pool, std::optional<Ranks>& ranks, RunSummary& summary) {
  const std::int64_t begin_ns = now_ns();
  const bool split = ranks && o.parallel == "tp";
  LLMPROF_LET(const ModelConfig config, part_of(summary.config, split ? ranks->count() : 1));
  llmprof_stage_push("load", 0, 0, 0);
  auto weights = make_weights(o.model, summary.config, pool);
  if (weights && split) weights = part_of(*weights, config, ranks->rank());
  llmprof_pop();
  if (!weights) return weights.error();
  summary.load_ns = now_ns() - begin_ns;
  summary.parameters = weights->parameters();
  summary.weight_bytes = weights->bytes();
  const auto model = make_model(config, std::move(*weights), pool, split ? &*ranks : nullptr);
  if (ranks) ranks->wait();
  summary.generated = generate(*model, summary.options);
  return {};
}

Result<std::unique_ptr<cuda::DeviceModel>> load_on_gpu(const Options& o, ThreadPool& pool, cuda::Device& gpu,
                                                       RunSummary& summary) {
  const llmprof::Stage stage("load");
  LLMPROF_LET(cuda::DeviceWeights weights, make_device_weights(o.model, summary.config, summary.type, pool, gpu));
  summary.parameters = weights.parameters();
  summary.weight_bytes = weights.bytes();
  auto model = make_device_model(summary.config, std::move(weights), gpu, summary.options);
  LLMPROF_TRY(gpu.finish());
  return model;
}

Result<void> run_on_gpu(const Options& o, ThreadPool& pool, cuda::Device& gpu, RunSummary& summary) {
  summary.gpu = gpu.name();
  summary.cuda_graph = o.cuda_graph;
  LLMPROF_TRY(cuda::check_heads(summary.config));
  const std::int64_t begin_ns = now_ns();
  LLMPROF_LET(auto model, load_on_gpu(o, pool, gpu, summary));
  summary.load_ns = now_ns() - begin_ns;
  cuda::DeviceRunner runner(gpu, std::move(model), summary.options,
                            o.cuda_graph ? cuda::Decode::kGraph : cuda::Decode::kLaunches);
  LLMPROF_LET(summary.generated, generate(runner, summary.options));
  return {};
}

Result<RunSummary> infer(const Options& o) {
  LLMPROF_LET(const ChosenDevice device, choose_device_and_tell(o.model.device));
  const bool on_gpu = device.gpu != nullptr;
  LLMPROF_LET(const Preset preset, choose_preset(o.model, device));
  LLMPROF_LET(const ModelConfig config, choose_model(o.model, preset));
  LLMPROF_LET(const GenerateOptions run, choose_run(o, preset));
  LLMPROF_TRY(check_run(config, run));
  LLMPROF_LET(std::optional<Ranks> ranks, Ranks::join());
  if (o.cuda_graph && o.model.device == "cpu") {
    return Error{ErrorCode::kUsage, "--cuda-graph needs a GPU", "--device cuda"};
  }
  RunSummary summary{.config = config, .options = run};
  if (ranks && o.parallel == "dp") summary.options.prompt_seed += static_cast<std::uint64_t>(ranks->rank());
  LLMPROF_LET(summary.type, choose_type(o.model.type, device));
  const bool idle = on_gpu && o.model.weights_path.empty();  // the CPU computes nothing
  const std::int64_t share =
      ranks && o.model.threads == 0
          ? std::max<std::int64_t>(1, std::int64_t{std::thread::hardware_concurrency()} / ranks->count())
          : 0;
  LLMPROF_LET(summary.threads, choose_threads(idle ? 1 : share != 0 ? share : o.model.threads));
  ThreadPool pool(summary.threads);
  llmprof_model(config_json(config, summary.type).c_str());
  if (ranks) llmprof_parallel(fmt::format("{}={}", o.parallel, ranks->count()).c_str());
  summary.weights = weights_text(o.model);
  LLMPROF_TRY(on_gpu ? run_on_gpu(o, pool, *device.gpu, summary) : run_on_cpu(o, pool, ranks, summary));
  return summary;
}

Result<int> launch(const Options& o) {
  if (o.parallel != "dp" && o.parallel != "tp")
    return Error{ErrorCode::kUsage, fmt::format("unknown --parallel '{}'", o.parallel), "known: dp, tp"};
  if (o.model.device != "cpu") return Error{ErrorCode::kUsage, "--ranks needs --device cpu", ""};
  return launch_ranks(o.ranks);
}

int run(const Options& o) {
  if (o.list_presets) return list_presets(presets(), 16);
  const auto joined = Ranks::join();
  if (!joined) return fail(joined.error());
  if (o.ranks != 1 && !*joined) {
    const Result<int> status = launch(o);
    return status ? *status : fail(status.error());
  }
  const Result<RunSummary> summary = infer(o);
  if (!summary) return fail(summary.error());
  if (*joined && (*joined)->rank() != 0) return 0;  // the first speaks for all
  print(o.json ? json_summary(*summary) : text_summary(*summary));
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
