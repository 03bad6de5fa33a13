// Two layers, a prefill and three decode steps. What the golden files expect, derived by hand:
//
// Model: llama, 2 layers, hidden 4, 2 heads of 2, 1 KV head, MLP 8, vocabulary 10, float32.
//   Weights of a layer: q 4·4, k 4·2, v 4·2, o 4·4, gate, up, down 4·8 each = 144; two norms of 4 = 8. lm_head 40,
//   norm 4. One pass reads 2·(144 + 8) + 4 + 40 = 348 parameters = 1392 B, and 16 B for each embedding row it looks up.
//   Parameters with the 10 embedding rows: 348 + 40 = 388. The cache holds 1024 B, so MBU is shown; no tensor exceeds
//   it. FLOPs: 2·144 = 288 per layer and token; attention 4·2·2 = 16 per layer and pair of query and key; lm_head 80
//   per sequence. KV: 2·2·4 = 16 B per token and layer, the whole context read and the new tokens written.
// Prefill, 2 sequences of 3 tokens: 6 rows; 6 pairs per sequence.
//   FLOPs 2·(6·288 + 2·6·16) + 2·80 = 4000. Bytes 1392 + 6·16 + 2·(3 + 3)·2·16 = 1872.
// Decode, 2 sequences of 1 token, context 4, 5, 6: 2 rows.
//   FLOPs 2·(2·288 + 2·c·16) + 160 = 1568, 1632, 1696: 4896. Bytes 1392 + 32 + 2·(c + 1)·2·16 = 1744, 1808, 1872: 5424.
// Peaks 1 GFLOP/s and 0.5 GB/s. Prefill takes 10000 ns: MFU 0.4, MBU 0.3744; floor max(4000, 3744) = 4000 ns: compute.
//   Decode takes 3·8000 ns: MFU 4896/24000 = 0.204, MBU 5424/12000 = 0.452; floor 5424/0.5 = 10848 ns: memory.
// TTFT 10000. TPOT 50000 - 40000 = 10000 and 62000 - 50000 = 12000: p50 10000, p90 and p99 12000.
// Busy in prefill: 800 + 1800 + 800 + 1800 + 1800 = 7000; in decode 3·2·1800 + 1000 (worker) = 11800.
// Shapes: prefill 2·(2·4·6·4) + 2·(2·8·6·4) + 2·10·2·4 = 1312; decode 6·(2·8·2·4) = 768.
// Wall 100000, in steps 10000 (load) + 10000 + 24000 = 44000. Kernel time 7000 + 11800 + 500 outside any step = 19300.
// Waterfall of prefill: gaps 500 + 500; projections 2000 (q) + 4000 (up) against 2·192 + 2·384 = 1152: 4848; logits 2000 -
//   320 = 1680; sampling 500; embedding 500 - 192 = 308. Floors of all operators, by layer: q, k, v, o 192, 96, 96, 192,
//   gate, up, down 384 each, attention 384 (192 B), norms 2·32: 2176; with norm 32, lm_head 320, embedding 192: 4896. Not
//   seen 4896 - 1152 - 320 - 192 = 3232; one after another 4896 - 4000 = 896.
//   1000 + 4848 + 1680 + 500 + 308 + 896 - 3232 + 4000 = 10000.
// Waterfall of decode, two samples, 22000: between 2000 + 4000; gaps 8000 - 4000 - 1000 (worker) and 8000 - 4000; worker 1000
//   not matched; up_proj 2·4000 against 2·512: 6976; not seen (1744 + 1808)/0.5 - 1024 = 6080; floor 7104.
//   6000 + 7000 + 1000 + 6976 - 6080 + 7104 = 22000.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, )"
    R"("intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": false, "torch_dtype": "float32"})";

std::int64_t payload(std::int64_t batch, std::int64_t tokens, std::int64_t context) {
  return batch | tokens << 16 | context << 40;
}

void prefill(Builder& run) {
  run.range("stage", "prefill", 20000, 31000);
  run.range("step", "prefill", 20000, 30000, payload(2, 3, 3));
  run.range("module", "embed_tokens", 20000, 20500);
  run.product("layers.0.self_attn.q_proj", 21000, 22000, {4, 6, 4});
  run.product("layers.0.mlp.up_proj", 22000, 24000, {8, 6, 4});
  run.product("layers.1.self_attn.q_proj", 24000, 25000, {4, 6, 4});
  run.product("layers.1.mlp.up_proj", 25000, 27000, {8, 6, 4});
  run.product("lm_head", 27000, 29000, {10, 2, 4});
  run.range("module", "sampling", 29000, 29500);
}

void decode(Builder& run, std::int64_t begin, std::int64_t context) {
  run.range("step", "decode", begin, begin + 8000, payload(2, 1, context));
  run.product("layers.0.mlp.up_proj", begin + 1000, begin + 3000, {8, 2, 4});
  run.product("layers.1.mlp.up_proj", begin + 3000, begin + 5000, {8, 2, 4});
}

}  // namespace

Result<void> write_tiny_decode(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 100000);
  run.thread(1);
  run.thread(2);
  run.peak("flops", "float32", 1e9, "FLOP/s");
  run.peak("bandwidth", "read", 0.5e9, "B/s");
  run.range("model", kModel, 500, 500);
  run.range("stage", "load", 1000, 11000);
  prefill(run);
  run.range("stage", "decode", 40000, 80000);
  decode(run, 40000, 4);
  run.kernel("worker_copy", 46000, 47000, 2);  // on a thread without ranges: its step is inferred
  decode(run, 50000, 5);
  decode(run, 62000, 6);
  run.kernel("late_copy", 90000, 90500);  // after the last step: belongs nowhere
  // 20 ranges and a mark: 41 events; 11 products. At 10 and 50 ns: 410 + 550 = 960 ns, 0.96 % of the 100 us. Of decode:
  // 3 steps and 6 modules, 18 events, and 6 products: 180 + 300 = 480 ns, 2 % of its 24 us.
  run.cost({.ts_ns = 50000, .range_events = 20, .gemm_events = 6, .log_bytes = 500, .writer_cpu_ns = 1000});
  run.cost({.ts_ns = 99000, .range_events = 41, .gemm_events = 11, .log_bytes = 1200, .writer_cpu_ns = 3000});
  trace::RunInfo info = run_info({"tiny", "decode"});
  info.recorder_cpu_ns = 7000;
  info.window = "steps 0 to 4 of each process";
  return writer.finish(info);
}

}  // namespace llmprof::traces
