// Decode replayed as a CUDA graph on an asynchronous GPU. What the golden files expect, derived by hand:
//
// Model and costs as in tiny_decode. Capture, in a range that says it is a warm-up, 900…2100: nodes
//   up0   layers.0.mlp.up_proj, product [8, 4] x [4, 2], captured at 1150     rope  layers.0.self_attn, at 1250
//   up1   layers.1.mlp.up_proj, at 1350     head  lm_head, product [10, 4] x [4, 2], at 1550     copy  no module, at
//   1650
//
// Ten decode steps of 2 sequences begin at b = 10000 i, i = 1…10, and last 300 on the host, which launches executable
// graph 7 at b + 100 and the kernel argmax at b + 200. The device begins the graph at b + 500.
//   i = 1, 2   recorded node by node, 8800 in all: up0 0…4000, beside it rope 1000…3000, up1 4500…7000, head 7250…8250,
//              copy 8500…8800; argmax 8900…9000 after the begin. Gaps 500 + 250 + 250 = 1000 of the 8800.
//   i > 2      one interval of 8000; argmax 8100…8200 after the begin.
// Shares: nodes and copy cover 7800 of a typical launch of 8000, so gaps shrink from 1000 to 200, each to a fifth:
//   up0 0…4000, rope 1000…3000, up1 4100…6600, head 6650…7650, copy 7700…8000, of 8000.
// Step windows: 9500 for i = 1, 2; 8700 for the others: decode takes 2·9500 + 8·8700 = 88600.
//   kernels    a step: 4 nodes + argmax = 5; durations 4000 + 2000 + 2500 + 1000 + 100 = 9600: 50 and 96000 of the
//   stage,
//              8·9500 = 76000 of it estimated
//   busy       up0, up1, head, argmax: 7500 + 100 a step: 76000
//   owners     a TPOT sample of 10000, i > 2: host until the launch 100 (gap), queued 400 + 200 in the graph + 100
//   before
//              argmax, kernels 7500 + 100, copy 300; after the window 1300 between steps
//              i = 1, 2: gap 100, queued 400 + 1000 + 100, kernels 7500 + 100, copy 300, between 500
//              nine samples: gap 900, queued 2·1500 + 7·700 = 7900, kernels 9·7600 = 68400, copy 2700, between 2·500 +
//              7·1300 = 10100; 900 + 7900 + 68400 + 2700 + 10100 = 90000
// A prefill step, 120000…120300, launches graph 8, another executable of the same capture, of which no launch was
// recorded node by node: 120500…124500. Its window is 4500. Shares as those of graph 7, of 4000 (the nodes alone would
// take 7800, so gaps vanish and all shrink): up0 0…4000/7800, …: kernel time 9500/7800·4000 = 4872. A launch of graph
// 9, whose nodes nobody knows, 1000 long, lies outside any step.
#include <array>

#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr const char* kModel =
    R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 4, "num_attention_heads": 2, "num_key_value_heads": 1, )"
    R"("intermediate_size": 8, "vocab_size": 10, "tie_word_embeddings": false, "torch_dtype": "float32"})";
constexpr std::int64_t kGpu = 2;

struct Node {
  std::string_view name, kind;
  std::int64_t captured_ns = 0, begin = 0, end = 0, gemm_id = 0, stack_id = 0;
};
constexpr std::array<Node, 5> kNodes = {{{"gemm_tn", "kernel", 1150, 0, 4000, 51, 1},
                                         {"rope", "kernel", 1250, 1000, 3000, 0, 1},
                                         {"gemm_tn", "kernel", 1350, 4500, 7000, 0, 1},
                                         {"gemm_nn", "kernel", 1550, 7250, 8250, 52, 1},
                                         {"", "memcpy", 1650, 8500, 8800, 0, 0}}};

class GraphBuilder : public Builder {
 public:
  explicit GraphBuilder(trace::RunWriter& writer) : Builder(writer, 140000), writer_(writer) {
    trace::DeviceRow gpu{.id = kGpu, .kind = name("gpu"), .name = name("Toy GPU"), .units = 4};
    gpu.memory_bytes = 1'000'000'000;
    gpu.cache_bytes = 1024;
    gpu.uuid = name("GPU-00112233");
    writer_.add(gpu);
  }

  void nodes(std::int64_t graph, std::int64_t first_id) {
    for (std::size_t i = 0; i < kNodes.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      trace::GraphNodeRow row{.id = first_id + at, .graph = graph, .node = first_id + at, .captured_node = 1 + at};
      row.name = name(kNodes[i].name);
      if (kNodes[i].stack_id != 0) row.stack_id = kNodes[i].stack_id;
      if (kNodes[i].gemm_id != 0) row.gemm_id = kNodes[i].gemm_id;
      row.kind = name(kNodes[i].kind);
      row.captured_ns = kNodes[i].captured_ns;
      row.thread_id = 1;
      writer_.add(row);
    }
  }

  void captured_product(std::int64_t id, std::int64_t begin, Gemm shape, std::string_view epilogue) {
    trace::GemmRow row{.id = id, .begin_ns = begin, .end_ns = begin + 80, .thread_id = 1};
    row.library = name("cublasLt");
    row.function = name("cublasLtMatmul");
    row.m = shape.m, row.n = shape.n, row.k = shape.k;
    row.type_a = row.type_b = row.type_c = name("float32");
    row.compute_type = name("tf32");
    row.epilogue = name(epilogue);
    row.algorithm = name("21/15");
    writer_.add(row);
  }

  std::int64_t launch(std::int64_t graph, std::int64_t host, std::int64_t begin, std::int64_t end, bool by_node) {
    trace::GraphLaunchRow row{.id = next_++, .begin_ns = begin, .end_ns = end, .graph = graph, .device_id = kGpu};
    row.stream = 7;
    row.thread_id = 1;
    row.launch_begin_ns = host;
    row.launch_end_ns = host + 20;
    row.nodes_recorded = by_node;
    row.stack_id = 3;
    writer_.add(row);
    return row.id;
  }

  void kernel(std::string_view text, std::int64_t host, std::int64_t begin, std::int64_t end, std::int64_t stack_id,
              std::optional<std::pair<std::int64_t, std::int64_t>> launch_and_node = {}) {
    trace::KernelRow row{.id = next_++, .begin_ns = begin, .end_ns = end, .name = name(text), .device_id = kGpu};
    row.stream = launch_and_node ? 7 : 9;
    row.thread_id = 1;
    row.launch_begin_ns = host;
    row.launch_end_ns = host + 20;
    row.stack_id = stack_id;
    if (launch_and_node) std::tie(row.graph_launch_id, row.graph_node_id) = *launch_and_node;
    writer_.add(row);
  }

  void copy(std::int64_t host, std::int64_t begin, std::int64_t end, std::int64_t launch_id, std::int64_t node_id) {
    trace::CopyRow row{.id = next_++, .begin_ns = begin, .end_ns = end, .direction = name("device_to_device")};
    row.bytes = 80;
    row.device_id = kGpu;
    row.thread_id = 1;
    row.launch_begin_ns = host;
    row.graph_launch_id = launch_id;
    row.graph_node_id = node_id;
    writer_.add(row);
  }

  void frame(std::int64_t id, std::string_view function, std::string_view file, std::int32_t line) {
    writer_.add(trace::FrameRow{
        .id = id, .kind = name("python"), .function = name(function), .file = name(file), .line = line});
  }

  void stack(std::int64_t id, std::initializer_list<std::int64_t> frames) {  // innermost first
    std::int32_t depth = 0;
    for (const std::int64_t frame : frames)
      writer_.add(trace::StackRow{.stack_id = id, .depth = depth++, .frame_id = frame});
  }

 private:
  trace::RunWriter& writer_;
  std::int64_t next_ = 1000;
};

void capture(GraphBuilder& run) {
  run.range("stage", "warm-up", 900, 2100);
  run.range("module", "layers.0.mlp.up_proj", 1100, 1200);
  run.range("module", "layers.0.self_attn", 1210, 1290);
  run.range("module", "layers.1.mlp.up_proj", 1300, 1400);
  run.range("module", "lm_head", 1500, 1600);
  run.captured_product(51, 1110, {8, 2, 4}, "bias");
  run.captured_product(52, 1510, {10, 2, 4}, "");
  run.nodes(7, 201);
  run.nodes(8, 301);
  run.frame(1, "forward", "/app/model.py", 10);
  run.frame(2, "sample", "/app/generate.py", 5);
  run.frame(3, "main", "/app/generate.py", 40);
  run.stack(1, {1, 3});
  run.stack(2, {2, 3});
  run.stack(3, {3});
}

void decode(GraphBuilder& run, std::int64_t i) {
  const std::int64_t b = 10000 * i, begin = b + 500;
  run.range("step", "decode", b, b + 300, 2 | 1 << 16 | (3 + i) << 40);
  const bool by_node = i <= 2;
  const std::int64_t end = begin + (by_node ? 8800 : 8000);
  const std::int64_t launch = run.launch(7, b + 100, begin, end, by_node);
  for (std::size_t n = 0; by_node && n < kNodes.size(); ++n) {
    const Node& node = kNodes[n];
    const std::int64_t id = 201 + static_cast<std::int64_t>(n);
    if (node.kind == "memcpy") {
      run.copy(b + 100, begin + node.begin, begin + node.end, launch, id);
    } else {
      run.kernel(node.name, b + 100, begin + node.begin, begin + node.end, 3, std::pair{launch, id});
    }
  }
  run.kernel("argmax", b + 200, end + 100, end + 200, 2);
}

}  // namespace

Result<void> write_gpu_graph(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  GraphBuilder run(writer);
  run.thread(1);
  run.peak("flops", "float32", 1e9, "FLOP/s", kGpu);
  run.peak("flops", "tf32", 4e9, "FLOP/s", kGpu);
  run.peak("bandwidth", "read", 0.5e9, "B/s", kGpu);
  run.range("model", kModel, 500, 500);
  capture(run);
  for (std::int64_t i = 1; i <= 10; ++i) decode(run, i);
  run.range("step", "prefill", 120000, 120300, 2 | 3 << 16 | std::int64_t{3} << 40);
  run.launch(8, 120100, 120500, 124500, false);
  run.launch(9, 130000, 130100, 131100, false);
  writer.add(trace::GapRow{.begin_ns = 55000, .end_ns = 56000, .process_id = 1, .why = run.name("buffers were taken")});
  writer.add(trace::NoteRow{.ts_ns = 900,
                            .process_id = 1,
                            .subject = run.name("graphs"),
                            .text = run.name("2 launches of each graph are recorded node by node")});
  return writer.finish(run_info({"gpu", "graph"}));
}

}  // namespace llmprof::traces
