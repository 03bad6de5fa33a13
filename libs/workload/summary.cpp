#include "workload/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/json.h"
#include "workload/kernels.h"
#include "workload/train/train.h"

namespace llmprof::workload {

namespace {

std::int64_t decode_ns(const Generated& generated) {
  return generated.decode.empty() ? 0 : generated.decode.back().end_ns - generated.decode.front().begin_ns;
}

double per_second(std::int64_t count, std::int64_t ns) {
  return ns > 0 ? static_cast<double>(count) * 1e9 / static_cast<double>(ns) : 0;
}

}  // namespace

std::int64_t percentile(std::vector<std::int64_t> samples, double fraction) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const auto rank = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(samples.size())));
  return samples[static_cast<std::size_t>(std::clamp<std::int64_t>(rank, 1, std::ssize(samples)) - 1)];
}

std::string place_text(std::int64_t threads, const std::string& gpu) {
  return gpu.empty() ? fmt::format("{} threads, {} kernels", threads, kernels().name) : "on " + gpu;
}

std::string text_summary(const RunSummary& s) {
  const auto ns = [](std::int64_t value) { return base::human_ns(static_cast<double>(value)); };
  const std::int64_t prefill_tokens = s.options.batch * s.options.prompt_tokens;
  const std::int64_t decode_tokens = s.options.batch * std::ssize(s.generated.decode);
  const std::vector<std::int64_t> tpot = tpot_samples_ns(s.generated);
  std::string out = fmt::format("model    {}, {} layers, hidden {}, {} parameters, {} of {} weights ({})\n",
                                family_name(s.config.family), s.config.layers, s.config.hidden,
                                base::human_count(static_cast<double>(s.parameters)),
                                base::human_bytes(static_cast<double>(s.weight_bytes)), name_of(s.type), s.weights);
  out +=
      fmt::format("run      batch {}, prompt {}, {} new tokens each, {}{}\n", s.options.batch, s.options.prompt_tokens,
                  s.options.new_tokens, place_text(s.threads, s.gpu), s.cuda_graph ? ", decode as a CUDA graph" : "");
  out += fmt::format("load     {}\n", ns(s.load_ns));
  out += fmt::format("prefill  TTFT {}, {:.1f} tokens/s\n", ns(ttft_ns(s.generated)),
                     per_second(prefill_tokens, ttft_ns(s.generated)));
  if (!s.generated.decode.empty()) {
    out += fmt::format("decode   TPOT p50 {}, p99 {}, {:.1f} tokens/s\n", ns(percentile(tpot, 0.5)),
                       ns(percentile(tpot, 0.99)), per_second(decode_tokens, decode_ns(s.generated)));
  }
  const auto& first = s.generated.tokens.front();
  const std::size_t shown = std::min<std::size_t>(first.size(), 8);
  out += fmt::format("tokens   {} generated; sequence 0: {}{}\n", s.options.batch * s.options.new_tokens,
                     fmt::join(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(shown), " "),
                     shown < first.size() ? " …" : "");
  return out;
}

namespace {

// (B, T): what a server has to be asked for the same tokens.
std::vector<std::vector<Token>> prompts_of(const RunSummary& s) {
  const std::vector<Token> all = random_prompts(s.config, s.options);
  std::vector<std::vector<Token>> prompts;
  for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(s.options.prompt_tokens))
    prompts.emplace_back(at, at + static_cast<std::ptrdiff_t>(s.options.prompt_tokens));
  return prompts;
}

}  // namespace

std::string json_summary(const RunSummary& s) {
  const std::vector<std::int64_t> tpot = tpot_samples_ns(s.generated);
  base::Json json;
  json["schema"] = "llmprof-workload";
  json["schema_version"] = 1;
  json["model"] = base::Json::parse(config_json(s.config, s.type));
  json["parameters"] = s.parameters;
  json["weight_bytes"] = s.weight_bytes;
  json["weights"] = s.weights;
  json["batch"] = s.options.batch;
  json["prompt_tokens"] = s.options.prompt_tokens;
  json["new_tokens"] = s.options.new_tokens;
  json["threads"] = s.threads;
  json["kernels"] = kernels().name;
  json["device"] = s.gpu.empty() ? "cpu" : s.gpu;
  json["type"] = name_of(s.type);
  json["cuda_graph"] = s.cuda_graph;
  json["load_ns"] = s.load_ns;
  json["ttft_ns"] = ttft_ns(s.generated);
  json["decode_steps"] = s.generated.decode.size();
  json["decode_ns"] = decode_ns(s.generated);
  if (!tpot.empty()) {
    json["tpot_p50_ns"] = percentile(tpot, 0.5);
    json["tpot_p99_ns"] = percentile(tpot, 0.99);
  }
  json["prompts"] = prompts_of(s);
  json["tokens"] = s.generated.tokens;
  return base::to_text(json);
}

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
