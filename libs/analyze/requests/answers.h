#pragma once
// What is asked of requests beyond their latencies: what they used and cost, what their client saw of them, what the
// longest times to first token are made of, and what another setting of the engine would have done.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/context.h"
#include "analyze/requests/requests_summary.h"
#include "serving/engine.h"
#include "trace/run.h"

namespace llmprof::analyze {

// The q-quantile of n sorted values is the ceil(q n)-th, as in the rest of the report.
std::int64_t quantile_rank(std::int64_t count, double q);

struct ServedStep {
  std::int64_t id = 0, process_id = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  // behind those before it in its process
  std::int64_t tokens = 0, prompt_tokens = 0, members = 0, padding = 0, pairs = 0;
  std::int64_t blocks_used = 0, blocks = 0;  // of the KV cache; 0 blocks: not marked
  bool warm_up = false, preempted = false;   // preempted: somebody was, for it
  std::int64_t time_ns() const { return end_ns - begin_ns; }
};

struct PromptPart {  // of a request in a step
  std::int64_t step_id = 0, request_id = 0, tokens = 0, time_ns = 0;
};

// What an engine did, step by step.
struct Served {
  std::vector<ServedStep> steps;    // that say their members, by process and time
  std::vector<PromptPart> prompts;  // by step
  std::optional<serving::EngineRules> rules;
  std::string rules_why;  // why they are unknown
};

// `engine`: what the user says of it, over the run's own note; what neither says is the engine's default on the device.
Result<Served> read_served(const trace::Run& run, const std::string& engine, const serving::EngineDevice& device);
// "vllm@0.19 max_num_seqs=64 num_gpu_blocks=1000"
Result<serving::EngineRules> parse_engine(const std::string& text, const serving::EngineDevice& device = {});

// Distributions of what requests used; money where `price_per_hour` of a device is known.
void add_cost(std::optional<double> price_per_hour, std::int64_t devices, Requests& all);
void add_amounts(Requests& all);

// Joined by name; `clock_error_ns`: between the two; nullopt: unknown, and nothing between them is told.
void add_sides(const std::vector<RequestFigures>& client, std::optional<std::int64_t> clock_error_ns, Requests& all);

void add_slow_ttft(const Served& served, Requests& all);  // and engine_time
void add_replay(const Served& served, Requests& all);

}  // namespace llmprof::analyze
