#include "analyze/metrics_names.h"

namespace llmprof::analyze {
namespace {

using Role = MetricRole;

constexpr KnownMetric kMetrics[] = {
    {"vllm:num_requests_running", "vLLM", "requests running", Role::kNumber},
    {"vllm:num_requests_waiting", "vLLM", "requests waiting", Role::kNumber},
    {"vllm:kv_cache_usage_perc", "vLLM", "KV cache in use", Role::kShare},
    {"vllm:gpu_cache_usage_perc", "vLLM", "KV cache in use", Role::kShare},  // before version 1
    {"vllm:time_to_first_token_seconds", "vLLM", "time to first token", Role::kLatency},
    {"vllm:inter_token_latency_seconds", "vLLM", "time between tokens", Role::kLatency},
    {"vllm:time_per_output_token_seconds", "vLLM", "time between tokens (older name)", Role::kLatency},
    {"vllm:request_time_per_output_token_seconds", "vLLM", "time per token of a request", Role::kLatency},
    {"vllm:e2e_request_latency_seconds", "vLLM", "whole request", Role::kLatency},
    {"vllm:request_queue_time_seconds", "vLLM", "in the queue", Role::kLatency},
    {"vllm:request_prefill_time_seconds", "vLLM", "prefill", Role::kLatency},
    {"vllm:request_decode_time_seconds", "vLLM", "decode", Role::kLatency},
    {"vllm:prompt_tokens_total", "vLLM", "prompt tokens", Role::kCounter, "tokens"},
    {"vllm:generation_tokens_total", "vLLM", "generated tokens", Role::kCounter, "tokens"},
    {"vllm:request_success_total", "vLLM", "requests finished", Role::kCounter, "requests"},
    {"vllm:num_preemptions_total", "vLLM", "preemptions", Role::kCounter},
    {"vllm:prefix_cache_queries_total", "vLLM", "prefix cache, tokens looked up", Role::kPrefixQueries, "tokens"},
    {"vllm:prefix_cache_hits_total", "vLLM", "prefix cache, tokens found", Role::kPrefixHits, "tokens"},
    {"vllm:estimated_flops_per_gpu_total", "vLLM", "FLOPs per GPU, estimated", Role::kCounter, "FLOP"},
    {"vllm:estimated_read_bytes_per_gpu_total", "vLLM", "bytes read per GPU, estimated", Role::kCounter, "B"},
    {"vllm:estimated_write_bytes_per_gpu_total", "vLLM", "bytes written per GPU, estimated", Role::kCounter, "B"},
    {"sglang:num_running_reqs", "SGLang", "requests running", Role::kNumber},
    {"sglang:num_queue_reqs", "SGLang", "requests waiting", Role::kNumber},
    {"sglang:token_usage", "SGLang", "KV cache in use", Role::kShare},
    {"sglang:cache_hit_rate", "SGLang", "prefix cache, found of what was looked up", Role::kShare},
    {"sglang:gen_throughput", "SGLang", "generated tokens per second", Role::kNumber},
    {"sglang:time_to_first_token_seconds", "SGLang", "time to first token", Role::kLatency},
    {"sglang:inter_token_latency_seconds", "SGLang", "time between tokens", Role::kLatency},
    {"sglang:time_per_output_token_seconds", "SGLang", "time per token of a request", Role::kLatency},
    {"sglang:e2e_request_latency_seconds", "SGLang", "whole request", Role::kLatency},
    {"sglang:prompt_tokens_total", "SGLang", "prompt tokens", Role::kCounter, "tokens"},
    {"sglang:generation_tokens_total", "SGLang", "generated tokens", Role::kCounter, "tokens"},
    {"sglang:num_requests_total", "SGLang", "requests", Role::kCounter, "requests"},
    {"sglang:estimated_flops_per_gpu_total", "SGLang", "FLOPs per GPU, estimated", Role::kCounter, "FLOP"},
    {"sglang:estimated_read_bytes_per_gpu_total", "SGLang", "bytes read per GPU, estimated", Role::kCounter, "B"},
    {"sglang:estimated_write_bytes_per_gpu_total", "SGLang", "bytes written per GPU, estimated", Role::kCounter, "B"},
    {"nv_inference_pending_request_count", "Triton", "requests waiting", Role::kNumber},
    {"nv_inference_request_success", "Triton", "requests finished", Role::kCounter, "requests"},
    {"nv_inference_request_failure", "Triton", "requests failed", Role::kCounter, "requests"},
    {"nv_inference_count", "Triton", "inferences", Role::kCounter},
    {"nv_inference_exec_count", "Triton", "batches executed", Role::kCounter},
    {"nv_inference_request_duration_us", "Triton", "time of requests, added up", Role::kCounter, "s", 1e-6},
    {"nv_inference_queue_duration_us", "Triton", "time in the queue, added up", Role::kCounter, "s", 1e-6},
    {"nv_inference_compute_infer_duration_us", "Triton", "time of inference, added up", Role::kCounter, "s", 1e-6},
};

}  // namespace

std::span<const KnownMetric> known_metrics() { return kMetrics; }

}  // namespace llmprof::analyze
