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
#include "workload/config.h"
#include "workload/summary.h"
#include "workload/train/train.h"

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

TrainOptions choose_run(const Options& o, const TrainPreset& preset) {
  TrainOptions run{.batch = o.batch != 0 ? o.batch : preset.batch,
                   .tokens = o.tokens != 0 ? o.tokens : preset.tokens,
                   .steps = o.steps != 0 ? o.steps : preset.steps,
                   .seed = o.seed,
                   .optimizer = o.optimizer};
  run.optimizer.learning_rate = o.learning_rate >= 0 ? o.learning_rate : preset.learning_rate;
  return run;
}

// `load` makes the trainer.
template <class Load>
Result<void> train_model(const Options& o, TrainSummary& summary, const Load& load) {
  const std::int64_t begin_ns = now_ns();
  llmprof_stage_push("load", 0, 0, 0);
  auto trainer = load();
  llmprof_pop();
  if (!trainer) return trainer.error();
  summary.load_ns = now_ns() - begin_ns;
  summary.parameters = (*trainer)->weights().parameters();
  if (!o.json) print(head_text(summary));
  LLMPROF_LET(summary.steps, train(**trainer, summary.options, [&](std::int64_t number, const TrainedStep& step) {
                if (!o.json) print(step_text(number, step));
              }));
  return {};
}

Result<std::unique_ptr<cuda::DeviceTrainer>> load_on_gpu(cuda::Device& gpu, const TrainSummary& s) {
  cuda::DeviceWeights weights(gpu, s.config, ElementType::kFloat32);
  weights.fill(Start::kUntrained, s.options.seed);
  auto trainer = std::make_unique<cuda::DeviceTrainer>(s.config, std::move(weights), s.options, gpu);
  LLMPROF_TRY(gpu.finish());
  return trainer;
}

Result<TrainSummary> train_as_told(const Options& o) {
  LLMPROF_LET(const ChosenDevice device, choose_device_and_tell(o.device));
  const bool on_gpu = device.gpu != nullptr;
  LLMPROF_LET(const TrainPreset preset, find_train_preset(!o.preset.empty() ? o.preset : on_gpu ? "demo-gpu" : "demo"));
  LLMPROF_LET(const ModelConfig config, with_sizes(preset.config, o.sizes));
  TrainSummary summary{.config = config, .options = choose_run(o, preset)};
  LLMPROF_TRY(check_training(config, summary.options));
  LLMPROF_LET(summary.threads, choose_threads(on_gpu ? 1 : o.threads));
  ThreadPool pool(summary.threads);
  llmprof_model(config_json(config).c_str());
  if (on_gpu) {
    summary.gpu = device.gpu->name();
    LLMPROF_TRY(train_model(o, summary, [&] { return load_on_gpu(*device.gpu, summary); }));
  } else {
    LLMPROF_TRY(train_model(o, summary, [&]() -> Result<std::unique_ptr<Trainer>> {
      return std::make_unique<Trainer>(config, Weights::untrained(config, o.seed, pool), summary.options, pool);
    }));
  }
  return summary;
}

int run(const Options& o) {
  if (o.list_presets) return list_presets(train_presets(), 8);
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
