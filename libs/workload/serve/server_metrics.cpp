#include "workload/serve/server_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace llmprof::workload {
namespace {

std::vector<double> powers_of_two(std::int64_t most) {
  std::vector<double> bounds;
  for (std::int64_t bound = 1; bound <= most; bound *= 2) bounds.push_back(static_cast<double>(bound));
  return bounds;
}

// 1, 2 and 5 of every power of ten: of tokens, and of times that are long against a token's.
std::vector<double> one_two_five(double least, double most) {
  std::vector<double> bounds;
  for (double power = least; power <= most; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (power * factor <= most) bounds.push_back(power * factor);
    }
  }
  return bounds;
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

// A label's value may hold anything but these.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

}  // namespace

void Histogram::add(double value) {
  const auto above = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(above - bounds_.begin())];
  sum_ += value;
}

void Histogram::write(std::string& out, const std::string& name, const std::string& labels) const {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    const std::string bound = i < bounds_.size() ? fmt::format("{:g}", bounds_[i]) : "+Inf";
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, count);
  }
  out += fmt::format("{}_sum{{{}}} {:.9g}\n{}_count{{{}}} {}\n", name, labels, sum_, name, labels, count);
}

ServerMetrics::ServerMetrics(std::string model, const serving::EngineRules& rules, std::int64_t usable_blocks)
    : labels_(fmt::format("model_name=\"{}\",engine=\"0\"", escaped(model))),
      config_labels_(fmt::format("block_size=\"{}\",num_gpu_blocks=\"{}\",enable_prefix_caching=\"{}\",engine=\"0\"",
                                 rules.block_size, rules.num_gpu_blocks, rules.enable_prefix_caching)),
      usable_blocks_(usable_blocks),
      iteration_tokens_(powers_of_two(1 << 14)),
      ttft_s_(one_two_five(1e-4, 1e3)),
      itl_s_(one_two_five(1e-4, 1e2)),
      tpot_s_(one_two_five(1e-4, 1e2)),
      e2e_s_(one_two_five(1e-3, 1e4)),
      queue_s_(one_two_five(1e-5, 1e4)),
      prefill_s_(one_two_five(1e-4, 1e4)),
      decode_s_(one_two_five(1e-4, 1e4)),
      inference_s_(one_two_five(1e-4, 1e4)),
      prompt_lengths_(one_two_five(1, 1e6)),
      output_lengths_(one_two_five(1, 1e6)) {}

void ServerMetrics::scheduled(std::int32_t prompt_tokens, std::int32_t cached_tokens) {
  const std::lock_guard lock(mutex_);
  prefix_queries_ += prompt_tokens;
  prefix_hits_ += cached_tokens;
}

void ServerMetrics::token(std::int64_t since_last_ns, bool first, std::int32_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  ++generated_tokens_;
  if (first) prompt_tokens_ += prompt_tokens;
  (first ? ttft_s_ : itl_s_).add(seconds(since_last_ns));
}

// The intervals of vllm/v1/metrics/stats.py.
void ServerMetrics::ended(const Ended& ended) {
  const std::lock_guard lock(mutex_);
  ++ended_[static_cast<std::size_t>(ended.finish)];
  const RequestTimes& t = ended.times;
  if (t.first_token_ns == 0) return;
  prompt_lengths_.add(ended.prompt_tokens);
  output_lengths_.add(ended.output_tokens);
  e2e_s_.add(seconds(t.last_token_ns - t.arrival_ns));
  queue_s_.add(seconds(t.scheduled_ns - t.queued_ns));
  prefill_s_.add(seconds(t.first_token_ns - t.scheduled_ns));
  decode_s_.add(seconds(t.last_token_ns - t.first_token_ns));
  inference_s_.add(seconds(t.last_token_ns - t.scheduled_ns));
  if (ended.output_tokens > 1)
    tpot_s_.add(seconds(t.last_token_ns - t.first_token_ns) / (ended.output_tokens - 1));
}

void ServerMetrics::step(const StepReport& report) {
  const std::lock_guard lock(mutex_);
  preemptions_ += report.step.preempted;
  iteration_tokens_.add(static_cast<double>(report.step.batch.tokens()));
}

void ServerMetrics::load(std::int64_t running, std::int64_t waiting, std::int64_t blocks_used) {
  const std::lock_guard lock(mutex_);
  running_ = running, waiting_ = waiting, blocks_used_ = blocks_used;
}

std::string ServerMetrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  const auto gauge = [&](const char* name, const char* help, auto value) {
    head(out, name, "gauge", help);
    out += fmt::format("{}{{{}}} {}\n", name, labels_, value);
  };
  const auto counter = [&](const std::string& name, const char* help, std::int64_t value) {
    head(out, name + "_total", "counter", help);
    out += fmt::format("{}_total{{{}}} {}\n", name, labels_, value);
  };
  const auto histogram = [&](const std::string& name, const char* help, const Histogram& values) {
    head(out, name, "histogram", help);
    values.write(out, name, labels_);
  };
  gauge("vllm:num_requests_running", "Requests in the running batch.", running_);
  gauge("vllm:num_requests_waiting", "Requests waiting to be scheduled.", waiting_);
  gauge("vllm:kv_cache_usage_perc", "KV cache blocks in use; 1 is all of them.",
        usable_blocks_ > 0 ? static_cast<double>(blocks_used_) / static_cast<double>(usable_blocks_) : 0.0);
  counter("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", prefix_queries_);
  counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", prefix_hits_);
  counter("vllm:num_preemptions", "Requests that lost their KV cache to others.", preemptions_);
  counter("vllm:prompt_tokens", "Prompt tokens of requests that got their first token.", prompt_tokens_);
  counter("vllm:generation_tokens", "Tokens generated.", generated_tokens_);
  head(out, "vllm:request_success_total", "counter", "Requests that ended, by reason.");
  for (const auto& [finish, reason] : {std::pair{Finish::kStop, "stop"}, {Finish::kLength, "length"},
                                       {Finish::kAborted, "abort"}, {Finish::kFailed, "error"}})
    out += fmt::format("vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", labels_, reason,
                       ended_[static_cast<std::size_t>(finish)]);
  histogram("vllm:iteration_tokens_total", "Tokens of a step.", iteration_tokens_);
  histogram("vllm:time_to_first_token_seconds", "From the arrival of a request to its first token.", ttft_s_);
  histogram("vllm:inter_token_latency_seconds", "Between two tokens of a request.", itl_s_);
  histogram("vllm:request_time_per_output_token_seconds", "Mean of a request, without its first token.", tpot_s_);
  histogram("vllm:e2e_request_latency_seconds", "From the arrival of a request to its last token.", e2e_s_);
  histogram("vllm:request_queue_time_seconds", "From queued to scheduled.", queue_s_);
  histogram("vllm:request_prefill_time_seconds", "From scheduled to the first token.", prefill_s_);
  histogram("vllm:request_decode_time_seconds", "From the first token to the last.", decode_s_);
  histogram("vllm:request_inference_time_seconds", "From scheduled to the last token.", inference_s_);
  histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", prompt_lengths_);
  histogram("vllm:request_generation_tokens", "Output tokens of a request.", output_lengths_);
  head(out, "vllm:cache_config_info", "gauge", "Settings of the KV cache.");
  out += fmt::format("vllm:cache_config_info{{{}}} 1\n", config_labels_);
  return out;
}

}  // namespace llmprof::workload
