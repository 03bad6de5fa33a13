"""Damaged results of load generators and benchmarks, and spans. cases() -> name: content."""
import json

SERVE = {"backend": "openai", "model_id": "m", "num_prompts": 2, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": None,
         "duration": 1.5, "completed": 2, "total_input_tokens": 30, "total_output_tokens": 7, "request_throughput": 1.33,
         "total_token_throughput": 24.67, "input_lens": [10, 20], "output_lens": [2, 3], "ttfts": [0.05, 0.1],
         "itls": [[0.01], [0.3, 0.1]], "start_times": [101.25, 101.5], "errors": ["", ""], "mean_ttft_ms": 75.0}
SGLANG = {"tag": None, "dataset_name": "random", "request_rate": float("inf"), "sharegpt_output_len": None, "duration": 2.0,
          "completed": 1, "total_output_tokens": 2, "request_throughput": 0.5, "total_throughput": 5.0, "input_lens": [8],
          "output_lens": [2], "ttfts": [0.05], "itls": [[0.02]], "errors": [""]}
RECORD = {"metadata": {"x_request_id": "a", "request_start_ns": 1759813207532900363, "request_end_ns": 1759813207832900363,
                       "benchmark_phase": "profiling", "was_cancelled": False},
          "metrics": {"time_to_first_token": {"value": 255.9, "unit": "ms"}, "request_latency": {"value": 299.0, "unit": "ms"},
                      "inter_chunk_latency": {"value": [4.9], "unit": "ms"}, "output_sequence_length": {"value": 2, "unit": "tokens"},
                      "input_sequence_length": {"value": 9, "unit": "tokens"}}, "error": None}
LLAMA = {"build_commit": "8cf427ff", "build_number": 5163, "model_filename": "m.gguf", "model_type": "t", "n_prompt": 512, "n_gen": 0,
         "avg_ns": 75, "stddev_ns": 5, "avg_ts": 71.0, "stddev_ts": 1.5, "samples_ns": [70, 80], "samples_ts": [70.0, 72.0]}
SPAN = {"traceId": "0a", "spanId": "aa", "name": "llm_request", "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000000120000000", "attributes": [
            {"key": "gen_ai.request.id", "value": {"stringValue": "cmpl-1"}},
            {"key": "gen_ai.latency.time_to_first_token", "value": {"doubleValue": 0.04}}]}


def line(value, **changes):
    return json.dumps({**value, **changes}).encode() + b"\n"


def spans(*all_spans):
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(all_spans)}]}]}).encode()


def cases():
    return {
        "vllm.json": line(SERVE),
        "vllm_appended.json": line(SERVE) + line(SERVE, request_rate=4.0),
        "vllm_torn.json": line(SERVE) + line(SERVE)[:200] + b"\n" + line(SERVE, request_rate=4.0),
        "vllm_cut.json": line(SERVE)[:300],
        "vllm_lists_differ.json": line(SERVE, ttfts=[0.1]),
        "vllm_negative.json": line(SERVE, ttfts=[-1.0, 0.1]),
        "vllm_huge_times.json": line(SERVE, start_times=[1e300, 101.5]),
        "vllm_lists_of_text.json": line(SERVE, ttfts=["a", "b"], itls="x"),
        "sglang_infinity.jsonl": line(SGLANG),
        "sglang_trace_rate.jsonl": line(SGLANG, request_rate="trace") + line(SGLANG, request_rate=16),
        "aiperf_cut.jsonl": line(RECORD) + line(RECORD)[:150],
        "aiperf_no_begin.jsonl": line(RECORD) + line(RECORD, metadata={"x_request_id": "b"}),
        "aiperf_odd_units.jsonl": line(RECORD, metrics={"time_to_first_token": {"value": 1, "unit": "fortnights"},
                                                         "inter_chunk_latency": {"value": "x", "unit": "ms"}}),
        "aiperf_metrics_list.jsonl": line(RECORD, metrics=[1, 2]),
        "llama_bench_null.json": b"[\n" + line(LLAMA, samples_ts=[None, "a"], avg_ts=None) + b",\n" + line(LLAMA) + b"]\n",
        "llama_bench_empty.json": (b"[]", ["--as", "llama-bench"]),
        "trtexec_unescaped.json": b'[\n  { "count" : 2 }\n, { "name" : "a "b" \\ c", "timeMs" : 1, "averageMs" : 0.5, '
                                  b'"medianMs" : 0.5, "percentage" : 100 }\n]\n',
        "trtexec_times_backwards.json": b'[{ "startEnqMs" : 5, "endEnqMs" : 1, "startComputeMs" : 2, "endComputeMs" : 3, '
                                        b'"computeMs" : 1, "latencyMs" : 1 }]',
        "otel_no_requests.json": spans({**SPAN, "name": "GET /"}),
        "otel_end_before_begin.json": spans(SPAN, {**SPAN, "endTimeUnixNano": "1"}),
        "otel_attributes_object.json": spans({**SPAN, "attributes": {"a": 1}, "events": "x"}),
        "deep.json": (b'{"a":' * 1000 + b"1" + b"}" * 1000, ["--as", "vllm-bench"]),
        "brackets.json": (b"[" * 100000, ["--as", "otel"]),
        "not_utf8.json": line(SERVE).replace(b'"m"', b'"\xff\xfe"'),
    }
