#include "workload/train/train_summary.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/json.h"
#include "workload/kernels.h"
#include "workload/summary.h"
#include "workload/train/corpus.h"

namespace llmprof::workload {

std::string head_text(const TrainSummary& s) {
  const AdamWOptions& a = s.options.optimizer;
  return fmt::format(
      "model    gpt2, {} layers, hidden {}, {} parameters; weights, gradients and two moments take {}\n"
      "run      batch {}, {} tokens each, {} steps, AdamW with learning rate {}, seed {}, {}\n"
      "text     {} bytes, one token each\n",
      s.config.layers, s.config.hidden, base::human_count(static_cast<double>(s.parameters)),
      base::human_bytes(16.0 * static_cast<double>(s.parameters)), s.options.batch, s.options.tokens, s.options.steps,
      a.learning_rate, s.options.seed, place_text(s.threads, s.gpu), corpus().size());
}

std::string step_text(std::int64_t number, const TrainedStep& step) {
  return fmt::format("step {:<4} loss {:.4f}\n", number, step.loss);
}

std::string times_text(const TrainSummary& s) {
  const auto median = [&](std::int64_t TrainedStep::*field) {
    std::vector<std::int64_t> values;
    for (const TrainedStep& step : s.steps) values.push_back(step.*field);
    return percentile(std::move(values), 0.5);
  };
  const auto text = [&](std::int64_t TrainedStep::*field) {
    return base::human_ns(static_cast<double>(median(field)));
  };
  const auto tokens = static_cast<double>(s.options.batch * s.options.tokens);
  return fmt::format("load     {}\nstep     p50 {}: forward {}, backward {}, optimizer {}; {:.1f} tokens/s\n",
                     base::human_ns(static_cast<double>(s.load_ns)), text(&TrainedStep::total_ns),
                     text(&TrainedStep::forward_ns), text(&TrainedStep::backward_ns), text(&TrainedStep::optimizer_ns),
                     tokens * 1e9 / static_cast<double>(std::max<std::int64_t>(1, median(&TrainedStep::total_ns))));
}

std::string json_summary(const TrainSummary& s) {
  base::Json json;
  json["schema"] = "llmprof-workload-train";
  json["schema_version"] = 1;
  json["model"] = base::Json::parse(config_json(s.config));
  json["parameters"] = s.parameters;
  json["batch"] = s.options.batch;
  json["tokens"] = s.options.tokens;
  json["learning_rate"] = s.options.optimizer.learning_rate;
  json["seed"] = s.options.seed;
  json["threads"] = s.threads;
  json["kernels"] = kernels().name;
  json["device"] = s.gpu.empty() ? "cpu" : s.gpu;
  json["load_ns"] = s.load_ns;
  json["steps"] = base::Json::array();
  for (const TrainedStep& step : s.steps) {
    json["steps"].push_back({{"loss", step.loss},
                             {"forward_ns", step.forward_ns},
                             {"backward_ns", step.backward_ns},
                             {"optimizer_ns", step.optimizer_ns},
                             {"total_ns", step.total_ns}});
  }
  return base::to_text(json);
}

}  // namespace llmprof::workload
