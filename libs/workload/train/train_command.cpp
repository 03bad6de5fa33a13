// llmprof-workload train: the training step of GPT-2, over and over. Standard output holds what does not depend on the
// time of day, so that it is the same with and without a profiler; times go to standard error.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "llmprof/annotate.h"
#include "workload/command.h"
#include "workload/cuda/device_trainer.h"
#include "workload/generate.h"
#include "workload/train/train.h"
#include "workload/train/train_presets.h"
#include "workload/train/train_summary.h"

namespace llmprof::workload {
namespace {

struct Options {
  std::string preset;  // "": the demo of the device
  std::string device = "cpu";
  ModelConfig sizes;                                           // 0: as the preset says
  std::int64_t batch = 0, tokens = 0, steps = 0, threads = 0;  // 0: as the preset says
  double learning_rate = -1;                                   // negative: as the preset says
  AdamWOptions optimizer;
  std::uint64_t seed = 0;
  bool json = false;
  bool list_presets = false;
};

void describe(CLI::App& train, Options& o) {
  train.add_option("--preset", o.preset, "model and run to start from (default: demo, on a GPU demo-gpu)");
  train.add_option("--device", o.device, "cpu, cuda, or auto: a GPU if there is one")->capture_default_str();
  train.add_option("--layers", o.sizes.layers, "number of layers");
  train.add_option("--hidden", o.sizes.hidden, "width of the residual stream");
  train.add_option("--heads", o.sizes.heads, "attention heads");
  train.add_option("--intermediate", o.sizes.intermediate, "width of the MLP");
  train.add_option("--vocab", o.sizes.vocab, "size of the vocabulary, at least 256");
  train.add_option("--positions", o.sizes.positions, "rows of the position table");
  train.add_option("--batch", o.batch, "sequences of a step");
  train.add_option("--tokens", o.tokens, "tokens of each sequence");
  train.add_option("--steps", o.steps, "training steps");
  train.add_option("--lr", o.learning_rate, "learning rate")->check(CLI::NonNegativeNumber);
  train.add_option("--beta1", o.optimizer.beta1, "decay of the first moment")->capture_default_str();
  train.add_option("--beta2", o.optimizer.beta2, "decay of the second moment")->capture_default_str();
  train.add_option("--weight-decay", o.optimizer.weight_decay, "of the matrices")->capture_default_str();
  train.add_option("--seed", o.seed, "of the weights and of the places in the text")->capture_default_str();
  train.add_option("--threads", o.threads, "threads (default: processors this process may use)");
  train.add_flag("--json", o.json, "print the summary as JSON, with every step");
  train.add_flag("--list-presets", o.list_presets, "list the presets and exit");
}

// A size given by hand replaces the preset's. What follows from it is derived again.
Result<ModelConfig> choose_model(const Options& o, const TrainPreset& preset) {
  ModelConfig config = preset.config;
  if (o.sizes.hidden != 0 || o.sizes.heads != 0) config.head_dim = 0;
  if (o.sizes.hidden != 0) config.intermediate = 0;
  for (const auto field : {&ModelConfig::layers, &ModelConfig::hidden, &ModelConfig::heads, &ModelConfig::intermediate,
                           &ModelConfig::vocab, &ModelConfig::positions}) {
    if (o.sizes.*field != 0) config.*field = o.sizes.*field;
  }
  return complete(config);
}

TrainOptions choose_run(const Options& o, const TrainPreset& preset) {
  TrainOptions run{.batch = o.batch != 0 ? o.batch : preset.batch,
                   .tokens = o.tokens != 0 ? o.tokens : preset.tokens,
                   .steps = o.steps != 0 ? o.steps : preset.steps,
                   .seed = o.seed,
                   .optimizer = o.optimizer};
  run.optimizer.learning_rate = o.learning_rate >= 0 ? o.learning_rate : preset.learning_rate;
  return run;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);  // a step of a large model takes seconds: show it when it is done
}

StepDone told(const Options& o) {
  return [&o](std::int64_t number, const TrainedStep& step) {
    if (!o.json) print(step_text(number, step));
  };
}

Result<void> train_on_cpu(const Options& o, ThreadPool& pool, TrainSummary& summary) {
  const std::int64_t begin_ns = now_ns();
  llmprof_stage_push("load", 0, 0, 0);
  Trainer trainer(summary.config, Weights::untrained(summary.config, o.seed, pool), summary.options.batch,
                  summary.options.tokens, pool);
  llmprof_pop();
  summary.load_ns = now_ns() - begin_ns;
  summary.parameters = trainer.weights().parameters();
  if (!o.json) print(head_text(summary));
  summary.steps = train(trainer, summary.options, told(o));
  return {};
}

Result<void> train_on_gpu(const Options& o, cuda::Device& gpu, TrainSummary& summary) {
  summary.gpu = gpu.name();
  const std::int64_t begin_ns = now_ns();
  llmprof_stage_push("load", 0, 0, 0);
  cuda::DeviceTrainer trainer(gpu, summary.config, summary.options);
  trainer.weights().fill(Start::kUntrained, o.seed);
  const Result<void> loaded = gpu.finish();
  llmprof_pop();
  LLMPROF_TRY(loaded);
  summary.load_ns = now_ns() - begin_ns;
  summary.parameters = trainer.weights().parameters();
  if (!o.json) print(head_text(summary));
  LLMPROF_LET(summary.steps, train(trainer, summary.options, told(o)));
  return {};
}

Result<TrainSummary> train_as_told(const Options& o) {
  LLMPROF_LET(const ChosenDevice device, choose_device_and_tell(o.device));
  const bool on_gpu = device.gpu != nullptr;
  LLMPROF_LET(const TrainPreset preset, find_train_preset(!o.preset.empty() ? o.preset : on_gpu ? "demo-gpu" : "demo"));
  LLMPROF_LET(const ModelConfig config, choose_model(o, preset));
  TrainSummary summary{.config = config, .options = choose_run(o, preset)};
  LLMPROF_TRY(check_training(config, summary.options));
  LLMPROF_LET(summary.threads, choose_threads(on_gpu ? 1 : o.threads));
  ThreadPool pool(summary.threads);
  llmprof_model(config_json(config).c_str());
  LLMPROF_TRY(on_gpu ? train_on_gpu(o, *device.gpu, summary) : train_on_cpu(o, pool, summary));
  return summary;
}

int run(const Options& o) {
  if (o.list_presets) {
    for (const TrainPreset& preset : train_presets()) fmt::print("{:<8} {}\n", preset.name, preset.summary);
    return 0;
  }
  const Result<TrainSummary> summary = train_as_told(o);
  if (!summary) return fail(summary.error());
  if (o.json) {
    print(json_summary(*summary));
  } else {
    fmt::print(stderr, "{}", times_text(*summary));
  }
  return 0;
}

}  // namespace

void add_train(CLI::App& app, std::function<int()>& chosen) {
  const auto options = std::make_shared<Options>();
  CLI::App& train = *app.add_subcommand("train", "forward, backward and update of GPT-2");
  describe(train, *options);
  train.callback([&chosen, options] { chosen = [options] { return run(*options); }; });
}

}  // namespace llmprof::workload
