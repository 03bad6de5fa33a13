// The program of unnamed.cpp on a GPU, decode captured into a CUDA graph: nothing is announced, the model is given.
// Derived by hand:
//
// Prefill of 2 x 3 tokens: 15 calls of 100 ns from 1000 on, one every 200 ns, each launching one kernel of 100 ns that
// the
//   device begins 1000 ns later: host 1000…3900, device until 4900. The step's window is 3900 long: TTFT 3900.
// Capture from 20000 on: the 15 products of a pass over 2 sequences. No kernel executes, so this is no step.
// Launches at 30000, 40000 and 50000 execute from 500 ns later on for 2900 ns: a kernel of 100 ns every 200 ns. The
// first is
//   recorded node by node, the others are not. Each is a decode step of 3400 ns; two TPOT samples of 10000. Contexts 4,
//   5, 6.
// Kernel time: 15·100 a pass; of decode 3·1500, 2·1500 of it estimated. Every kernel has its module by the shape of its
// product.
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, )"
    R"("intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": false, "torch_dtype": "float32"})";
constexpr std::int64_t kGpu = 2, kGraph = 7, kCalls = 15, kFirstNode = 500, kFirstCaptured = 300;

class UnnamedBuilder : public Builder {
 public:
  explicit UnnamedBuilder(trace::RunWriter& writer) : Builder(writer, 60000), writer_(writer) {
    trace::DeviceRow gpu{.id = kGpu, .kind = name("gpu"), .name = name("Toy GPU"), .units = 4};
    gpu.memory_bytes = 1'000'000'000;
    gpu.cache_bytes = 1024;
    writer_.add(gpu);
  }

  // The products of a pass, `rows` of each sequence together.
  template <class Each>
  void pass(std::int64_t rows, Each each) {
    std::int64_t at = 0;
    for (int layer = 0; layer < 2; ++layer) {
      for (const std::int64_t out : {4, 2, 2, 4, 8, 8}) each(at++, Gemm{rows, out, 4});
      each(at++, Gemm{rows, 4, 8});
    }
    each(at++, Gemm{2, 10, 4});
  }

  void call(std::int64_t id, std::int64_t begin, Gemm shape, std::optional<std::int64_t> kernel_id) {
    trace::GemmRow row{.id = id, .begin_ns = begin, .end_ns = begin + 100, .kernel_id = kernel_id, .thread_id = 1};
    row.library = name("cublas");
    row.function = name("cublasSgemm");
    row.m = shape.m, row.n = shape.n, row.k = shape.k;
    row.type_a = row.type_b = row.type_c = name("float32");
    writer_.add(row);
  }

  void kernel(std::int64_t id, std::int64_t host, std::int64_t begin, trace::OptionalId gemm_id,
              trace::OptionalId launch_id = {}, trace::OptionalId node_id = {}) {
    trace::KernelRow row{.id = id, .begin_ns = begin, .end_ns = begin + 100, .name = name("gemm"), .device_id = kGpu};
    row.stream = 7;
    row.thread_id = 1;
    row.launch_begin_ns = host;
    row.gemm_id = gemm_id;
    row.graph_launch_id = launch_id;
    row.graph_node_id = node_id;
    writer_.add(row);
  }

  void node(std::int64_t at, std::int64_t captured_ns) {
    trace::GraphNodeRow row{.id = kFirstNode + at, .graph = kGraph, .node = 100 + at, .captured_node = at};
    row.name = name("gemm");
    row.gemm_id = kFirstCaptured + at;
    row.kind = name("kernel");
    row.captured_ns = captured_ns;
    row.thread_id = 1;
    writer_.add(row);
  }

  void launch(std::int64_t id, std::int64_t host, bool by_node) {
    trace::GraphLaunchRow row{.id = id, .begin_ns = host + 500, .end_ns = host + 3400, .graph = kGraph};
    row.device_id = kGpu;
    row.thread_id = 1;
    row.launch_begin_ns = host;
    row.launch_end_ns = host + 20;
    row.nodes_recorded = by_node;
    writer_.add(row);
    for (std::int64_t at = 0; by_node && at < kCalls; ++at)
      kernel(700 + at, host, host + 500 + 200 * at, {}, id, kFirstNode + at);
  }

 private:
  trace::RunWriter& writer_;
};

}  // namespace

Result<void> write_gpu_unnamed(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  UnnamedBuilder run(writer);
  run.thread(1);
  run.peak("flops", "float32", 1e10, "FLOP/s", kGpu);
  run.peak("bandwidth", "read", 5e9, "B/s", kGpu);
  run.pass(6, [&](std::int64_t at, Gemm shape) {
    const std::int64_t begin = 1000 + 200 * at;
    run.kernel(100 + at, begin + 50, begin + 1000, 200 + at);
    run.call(200 + at, begin, shape, 100 + at);
  });
  run.pass(2, [&](std::int64_t at, Gemm shape) {
    run.call(kFirstCaptured + at, 20000 + 200 * at, shape, {});
    run.node(at, 20050 + 200 * at);
  });
  run.launch(601, 30000, true);
  run.launch(602, 40000, false);
  run.launch(603, 50000, false);
  trace::RunInfo info = run_info({"python3", "generate.py"});
  info.models = {{"given", "--model tiny.json: tiny.json", kModel, {}}};
  return writer.finish(info);
}

}  // namespace llmprof::traces
