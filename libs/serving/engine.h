#pragma once
// How an inference engine schedules: the rules of a version (engines.json) with the user's settings on top. The names
// are those of vLLM's options, so that a command line can be copied.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::serving {

enum class SchedulerKind : std::uint8_t {
  kContinuous,  // vLLM v1: every step takes what fits
  kStatic,      // a batch is prefilled together and decoded until its last request ends
};
enum class Policy : std::uint8_t { kFcfs, kPriority };
enum class GraphMode : std::uint8_t { kNone, kPiecewise, kFullAndPiecewise };

// Where the value of a setting comes from: a line of engines.json, or the user.
struct RuleSource {
  std::string key, value, source;
};

struct EngineRules {
  std::string engine;   // "vllm"
  std::string version;  // "0.19", as asked for; "" where the engine has none
  SchedulerKind scheduler = SchedulerKind::kContinuous;
  Policy policy = Policy::kFcfs;
  std::int64_t max_num_seqs = 256;             // requests running at once
  std::int64_t max_num_batched_tokens = 2048;  // of a step; 0: no limit (static only)
  std::int64_t block_size = 16;                // tokens
  std::int64_t num_gpu_blocks = 0;             // one of them is reserved; 0: not known, see kv_blocks()
  std::int64_t long_prefill_token_threshold = 0;
  std::int64_t max_model_len = 0;  // tokens of prompt and output; 0: only the blocks limit it
  bool enable_chunked_prefill = true;
  bool enable_prefix_caching = true;
  bool async_scheduling = false;
  bool scheduler_reserve_full_isl = false;
  double gpu_memory_utilization = 0.9;
  double watermark = 0;  // fraction of the blocks that admission leaves free
  GraphMode cudagraph_mode = GraphMode::kNone;
  std::int64_t capture_limit = 512;
  std::int64_t capture_step_from_256 = 16;
  bool capture_batched_tokens = false;
  std::vector<RuleSource> sources;  // one per setting that was given, in the order of engines.json

  // Batch sizes for which graphs were captured, ascending; empty without graphs.
  std::vector<std::int64_t> capture_sizes() const;
};

// Only what the defaults depend on.
struct EngineDevice {
  double memory_bytes = 0;
  std::string name;            // vLLM has other defaults for the A100
  int compute_capability = 0;  // 10 of 10.3
};

// "vllm" (the newest known), "vllm@0.19", "vllm@0.19.1" or "static". "0.11" is its last patch release. An unknown
// engine or version is an error that lists those known.
Result<EngineRules> engine_rules(std::string_view engine, const EngineDevice& device);
inline Result<EngineRules> engine_rules(std::string_view engine, double device_memory_bytes) {
  return engine_rules(engine, EngineDevice{device_memory_bytes, "", 0});
}

std::vector<std::string_view> rule_keys();  // that set_rule() takes
// "max_num_seqs=64". Errors: an unknown key (with suggestions), a value that is none of its kind or out of range.
Result<void> set_rule(EngineRules& rules, std::string_view setting);
// Settings that exclude each other are an error: a limit of tokens below that of requests, no chunked prefill with a
// budget below max_model_len.
Result<void> check_rules(const EngineRules& rules);

// What the KV cache has to share a device with. All per device, in bytes.
struct MemoryUse {
  double device_bytes = 0;
  double weight_bytes = 0;
  double activation_bytes = 0;  // peak of a step of max_num_batched_tokens
  double graph_bytes = 0;       // what captured graphs hold
  double kv_bytes_per_token = 0;
};

// Blocks by the engine's rule: what gpu_memory_utilization leaves after everything else, in whole blocks. A model that
// does not fit is an error that names the quantity that exceeds the memory.
Result<std::int64_t> kv_blocks(const EngineRules& rules, const MemoryUse& use);

}  // namespace llmprof::serving
