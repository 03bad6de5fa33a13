// Training steps of a one-layer GPT-2 on thread 1, others on threads 2 and 3. What the golden files expect, by hand:
//
// Model: gpt2, 1 layer, hidden 4, 2 heads of 2, MLP 16, vocabulary 10, 8 positions, float32, tied.
//   Parameters: wte 40, wpe 32, ln_1 8, c_attn 48 + 12, c_proj 16 + 4, ln_2 8, c_fc 64 + 16, mlp.c_proj 64 + 4, ln_f 8:
//   324. One pass reads all but the tables, and wte for the logits: 292 = 1168 B. The cache holds 1024 B, so MBU is
//   shown; no tensor exceeds it (6 rows of 16 values are 384 B).
// A pass, 2 sequences of 3 tokens: 6 rows, 6 pairs of query and key in each sequence.
//   Forward FLOPs 2·6·(48 + 16 + 64 + 64 + 40) + 2·2·(2 + 2)·6·2 = 2784 + 192 = 2976; bytes (292 + 6·4 + 3·4)·4 = 1312.
//   Backward FLOPs 5952; bytes: c_attn 48 + 60, c_proj 16 + 20, c_fc 64 + 80, mlp.c_proj 64 + 68, three norms 4 + 8,
//   lm_head 40 + 40, wte 2·6·4 + 3·4: 108 + 36 + 144 + 132 + 36 + 80 + 60 = 596 = 2384 B.
//   Optimizer: no FLOPs; 324·28 = 9072 B.
// Thread 1: step 0 has one pass each way; step 1 adds up two batches (gradient accumulation); a last forward pass has
// no
//   update yet: step 2. Totals 24500 - 10000 = 14500, 61000 - 30000 = 31000, 74000 - 70000 = 4000.
//   Forward has 4 passes on this thread and 3 on the others: FLOPs 7·2976 = 20832; backward 3 + 2: 5·5952 = 29760;
//   optimizer 2: 18144 B.
// Peaks 10 GFLOP/s and 20 GB/s: forward's floor 7·2976/10 = 2083 ns, backward's 2976, the optimizer's 18144/20 = 907
// ns. Thread 2 never updates: two steps, each ends before the next forward. Totals 3000 and 3500. Thread 3 only goes
// forward: no training.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr const char* kModel =
    R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 4, "n_head": 2, "n_positions": 8, "vocab_size": 10, "torch_dtype": "float32"})";
constexpr std::int64_t kPayload = 2 | 3 << 16 | std::int64_t{3} << 40;

void forward(Builder& run, std::int64_t begin) {
  run.range("step", "forward", begin, begin + 4000, kPayload);
  run.range("module", "wte", begin, begin + 100);
  run.range("module", "h.0", begin + 100, begin + 3000);
  run.product("h.0.mlp.c_fc", begin + 1000, begin + 2000, {6, 16, 4});
  run.product("lm_head", begin + 3000, begin + 3500, {6, 10, 4});
  run.range("module", "loss", begin + 3500, begin + 4000);
}

// The product for the input's gradient, then that for the matrix's.
void backward(Builder& run, std::int64_t begin) {
  run.range("step", "backward", begin, begin + 8000, kPayload);
  run.range("module", "h.0", begin + 1000, begin + 7000);
  run.range("module", "h.0.mlp.c_fc", begin + 2000, begin + 6000);
  run.gemm(begin + 2000, begin + 3000, {6, 4, 16});
  run.gemm(begin + 3000, begin + 5000, {16, 4, 6});
}

void optimizer(Builder& run, std::int64_t begin) {
  run.range("step", "optimizer", begin, begin + 2000, kPayload);
  run.range("module", "wte", begin, begin + 500);
  run.range("module", "h.0", begin + 500, begin + 1900);
}

}  // namespace

Result<void> write_tiny_train(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 100000);
  for (const std::int64_t id : {1, 2, 3}) run.thread(id);
  run.peak("flops", "float32", 10e9, "FLOP/s");
  run.peak("bandwidth", "read", 20e9, "B/s");
  run.range("model", kModel, 500, 500);
  run.range("stage", "train_step", 9000, 25000);
  forward(run, 10000);
  backward(run, 14000);
  optimizer(run, 22500);
  run.range("stage", "train_step", 30000, 61500);
  forward(run, 30000);
  backward(run, 34000);
  forward(run, 45000);
  backward(run, 50000);
  optimizer(run, 59000);
  run.range("stage", "train_step", 69000, 75000);
  forward(run, 70000);
  run.range("step", "forward", 80000, 81000, kPayload, 2);
  run.range("step", "backward", 81000, 83000, kPayload, 2);
  run.range("step", "forward", 84000, 85500, kPayload, 2);
  run.range("step", "backward", 85500, 87500, kPayload, 2);
  run.range("step", "forward", 90000, 91000, kPayload, 3);
  return writer.finish(run_info({"tiny", "train"}));
}

}  // namespace llmprof::traces
