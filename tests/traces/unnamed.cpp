// The model of tiny_decode.cpp run by a program that announces nothing: a prompt of 2 x 3 tokens and two tokens more
// for each of the 2 sequences. The model is known by --model; stages and modules come from the shapes. Derived by hand:
//
// A call takes 100 ns and the next begins 100 ns later. A pass has 2 layers of q, k, v, o, gate, up, down, and the
// logits:
//   15 calls, 2900 ns from the first begin to the last end. Prefill begins at 1000; the passes of decode at 5000 and
//   9000, so each pass but the last ends where the next begins: 4000, 4000 and 2900 ns. TTFT 4000, TPOT 4000 (one
//   sample).
// FLOPs by model: 4000; 1568 + 1632 = 3200 (contexts 4 and 5). By shapes: attention makes no calls here, so
//   2·6·288 + 2·80 = 3616; 2·(2·2·288 + 160) = 2624. Tokens 6, and 4.
// Each module is one call of 100 ns in each step: 15 x 100 ns are matched, of prefill 4000 - 1500 = 2500 ns are not, of
//   decode 6900 - 3000 = 3900 ns.
// Peaks 10 GFLOP/s and 5 GB/s: prefill MFU 4000 / 4000 / 10 = 0.1, floor max(400, 1872 / 5 = 374) = 400 ns; decode
// bytes
//   1744 + 1808 = 3552, floor 710 ns.
// Confidence 0.9: every product of each pass was found.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, )"
    R"("intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": false, "torch_dtype": "float32"})";

void pass(Builder& run, std::int64_t begin, std::int64_t rows) {
  const auto product = [&](std::int64_t in, std::int64_t out, std::int64_t of_rows) {
    run.gemm(begin, begin + 100, {of_rows, out, in});
    begin += 200;
  };
  for (int layer = 0; layer < 2; ++layer) {
    for (const std::int64_t out : {4, 2, 2, 4, 8, 8}) product(4, out, rows);
    product(8, 4, rows);
  }
  product(4, 10, 2);
}

}  // namespace

Result<void> write_unnamed(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 20000);
  run.thread(1);
  run.peak("flops", "float32", 1e10, "FLOP/s");
  run.peak("bandwidth", "read", 5e9, "B/s");
  pass(run, 1000, 6);
  pass(run, 5000, 2);
  pass(run, 9000, 2);
  trace::RunInfo info = run_info({"python3", "generate.py"});
  info.models = {{"given", "--model tiny.json: tiny.json", kModel, {}}};
  return writer.finish(info);
}

// The same with its steps declared and still no modules: the calls of each step are matched within it.
Result<void> write_steps_only(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  Builder run(writer, 20000);
  run.thread(1);
  const auto payload = [](std::int64_t batch, std::int64_t tokens, std::int64_t context) {
    return batch | tokens << 16 | context << 40;
  };
  run.range("step", "prefill", 900, 4900, payload(2, 3, 3));
  run.range("step", "decode", 4900, 8900, payload(2, 1, 4));
  pass(run, 1000, 6);
  pass(run, 5000, 2);
  pass(run, 9000, 2);  // in no step
  trace::RunInfo info = run_info({"python3", "generate.py"});
  info.models = {{"opened", "/models/tiny/config.json, opened by process 100", kModel, {}}};
  return writer.finish(info);
}

}  // namespace llmprof::traces
