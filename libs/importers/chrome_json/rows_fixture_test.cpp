// Real traces (tests/imports) against numbers that Python's json module gives on the same files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "importers/importer.h"
#include "importers/input.h"
#include "importers/testing_sink.h"

namespace llmprof::importers {
namespace {

using namespace trace;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

struct Imported {
  explicit Imported(const std::string& name) {
    auto input = Input::open(std::string(LLMPROF_SOURCE_DIR) + "/tests/imports/" + name);
    EXPECT_TRUE(input) << name;
    const auto head = input->head();
    EXPECT_TRUE(head);
    const Importer* const importer = sniff(*head);
    EXPECT_NE(importer, nullptr);
    EXPECT_EQ(importer->name, "kineto");
    const Result<void> parsed = importer->parse(*input, sink);
    EXPECT_TRUE(parsed) << parsed.error().message;
    sink.flush();
  }
  std::map<std::string, int> ranges(std::string_view domain = "") const {
    std::map<std::string, int> count;
    for (const RangeRow& row : sink.rows<RangeRow>())
      if (sink.text(row.domain) == domain) ++count[std::string(sink.text(row.name))];
    return count;
  }
  // The name of the innermost range of the thread at that moment that is no module.
  std::string stage_at(Id thread, std::int64_t at_ns) const {
    std::string name;
    std::int32_t depth = -1;
    for (const RangeRow& row : sink.rows<RangeRow>()) {
      const bool inside = row.thread_id == thread && row.begin_ns <= at_ns && at_ns < row.end_ns;
      if (!inside || row.depth <= depth || sink.text(row.category) == "module") continue;
      depth = row.depth;
      name = sink.text(row.name);
    }
    return name;
  }
  std::map<std::string, double> flops_by_stage() const {
    std::map<Id, KernelRow> kernels;
    for (const KernelRow& row : sink.rows<KernelRow>()) kernels[row.id] = row;
    std::map<std::string, double> flops;
    for (const GemmRow& row : sink.rows<GemmRow>()) {
      const KernelRow& kernel = kernels.at(row.kernel_id.value());
      flops[stage_at(kernel.thread_id, kernel.launch_begin_ns.value())] +=
          2.0 * static_cast<double>(row.m * row.n * row.k * row.batch);
    }
    return flops;
  }
  std::vector<std::string> stack(Id id) const {
    std::map<Id, std::string> frames;
    for (const FrameRow& row : sink.rows<FrameRow>()) {
      frames[row.id] = std::string(sink.text(row.file)) + (row.line ? ":" + std::to_string(*row.line) + " " : "") +
                       std::string(sink.text(row.function));
    }
    std::map<int, std::string> stack;
    for (const StackRow& row : sink.rows<StackRow>())
      if (row.stack_id == id) stack[row.depth] = frames.at(row.frame_id);
    std::vector<std::string> names;
    for (const auto& [depth, name] : stack) names.push_back(name);
    return names;
  }
  MemorySink sink;
};

std::int64_t kernel_ns(const MemorySink& sink) {
  std::int64_t total = 0;
  for (const KernelRow& row : sink.rows<KernelRow>()) total += row.end_ns - row.begin_ns;
  return total;
}

// Counts of categories, sums of "dur" as decimals: sum(1 for e in traceEvents if e["cat"] == …).
TEST(KinetoRows, InferenceWithEverythingRecorded) {
  const Imported run("kineto_llama_full.json.gz");
  const MemorySink& sink = run.sink;
  EXPECT_EQ(sink.rows<KernelRow>().size(), 745U);
  EXPECT_EQ(kernel_ns(sink), 1'761'502);
  EXPECT_EQ(sink.rows<CopyRow>().size(), 4U);
  EXPECT_EQ(sink.rows<ApiRow>().size(), 664U + 136U);
  EXPECT_EQ(sink.rows<OpRow>().size(), 2697U);
  EXPECT_THAT(run.ranges(), ElementsAre(Pair("LlamaForCausalLM", 4), Pair("LlamaModel", 4), Pair("decode", 1),
                                        Pair("decode_step", 3), Pair("prefill", 1)));
  for (const KernelRow& row : sink.rows<KernelRow>()) {  // every kernel's correlation is that of a call
    EXPECT_NE(row.thread_id, 0);
    EXPECT_TRUE(row.launch_begin_ns && *row.launch_begin_ns <= row.begin_ns);
    EXPECT_TRUE(row.op_id);
    EXPECT_TRUE(row.stack_id);
  }
  int waits = 0;
  for (const ApiRow& row : sink.rows<ApiRow>()) waits += row.waits ? 1 : 0;
  EXPECT_EQ(waits, 5);  // names with "Synchronize"
  EXPECT_THAT(sink.losses, ElementsAre(Pair(Loss::kNoRank, 1)));
  // 1790857026 s + 3850981 s: 2026-11-15, the day it was recorded.
  EXPECT_EQ(sink.clock.wall_of_zero_ns, 1'790'857'026'000'000'000);
}

TEST(KinetoRows, DeviceProcessAndThread) {
  const Imported run("kineto_llama_full.json.gz");
  const MemorySink& sink = run.sink;
  ASSERT_EQ(sink.rows<DeviceRow>().size(), 1U);
  const DeviceRow device = sink.rows<DeviceRow>().front();
  EXPECT_EQ(sink.text(device.name), "NVIDIA H200");
  EXPECT_EQ(sink.text(device.kind), "gpu");
  EXPECT_EQ(device.units, 132);
  EXPECT_EQ(device.memory_bytes, 150'109'880'320);
  EXPECT_EQ(device.ordinal, 0);
  ASSERT_EQ(sink.rows<ProcessRow>().size(), 1U);  // not "Spans", not the device
  EXPECT_EQ(sink.rows<ProcessRow>().front().pid, 872);
  EXPECT_EQ(sink.text(sink.rows<ProcessRow>().front().executable), "python3");
  ASSERT_EQ(sink.rows<ThreadRow>().size(), 1U);
  EXPECT_EQ(sink.rows<ThreadRow>().front().tid, 872);
}

// A config with hidden 1024, intermediate 2816, 16 heads of 64, 4 of them for keys and values, 4 layers, vocabulary
// 32000: q and o 1024 x 1024, k and v 1024 x 256, gate and up 1024 x 2816, down 2816 x 1024, logits 1024 x 32000 make
// 4 * 11,272,192 + 32,768,000 = 77,856,768 weights. Prefill has 2 x 128 rows, a decode step 2 rows; the rotary
// embedding adds bmm of 32 x 1 by 1 x positions: 2 * 32 * 128, and 2 * 32 * 1 in each of 3 decode steps.
TEST(KinetoRows, ProductsAndTheirFlops) {
  const Imported run("kineto_llama_full.json.gz");
  EXPECT_EQ(run.sink.rows<GemmRow>().size(), 120U);  // 29 + 1 in each of 4 passes
  EXPECT_THAT(run.flops_by_stage(), ElementsAre(Pair("decode_step", 3 * (2.0 * 2 * 77'856'768 + 64)),
                                                Pair("prefill", 2.0 * 256 * 77'856'768 + 8192)));
  int kernels = 0;  // some products are two kernels (split in k)
  for (const KernelRow& row : run.sink.rows<KernelRow>()) kernels += row.gemm_id ? 1 : 0;
  EXPECT_EQ(kernels, 132);
  for (const GemmRow& row : run.sink.rows<GemmRow>()) {
    EXPECT_EQ(run.sink.text(row.layout), "row");
    if (row.n != 32000) continue;
    EXPECT_EQ(run.sink.text(row.type_a), "bfloat16");
    EXPECT_EQ(run.sink.text(row.transpose_a), "n");
    EXPECT_EQ(run.sink.text(row.transpose_b), "t");  // strides [1, 1024]
  }
  const auto attentions = run.sink.rows<AttentionRow>();
  ASSERT_EQ(attentions.size(), 16U);
  const AttentionRow& first = attentions.front();
  EXPECT_EQ(run.sink.text(first.function), "aten::_cudnn_attention_forward");
  EXPECT_EQ(std::tuple(first.batch, first.heads, first.kv_heads, first.queries, first.keys, first.head_size),
            std::tuple(2, 16, 4, 128, 128, 64));
  EXPECT_EQ(first.causal, true);
  EXPECT_TRUE(first.kernel_id);
  EXPECT_EQ(attentions.back().keys, 131);
  EXPECT_EQ(attentions.back().causal, false);
}

// By "Python id" and "Python parent id" from the innermost function that contains the launch of the kernel that stands
// 101st in the file.
TEST(KinetoRows, StackOfALaunch) {
  const Imported run("kineto_llama_full.json.gz");
  std::optional<Id> stack;
  for (const KernelRow& row : run.sink.rows<KernelRow>())
    if (row.begin_ns == 3'850'981'969'600'467) stack = row.stack_id;
  ASSERT_TRUE(stack);
  const std::vector<std::string> names = run.stack(*stack);
  ASSERT_EQ(names.size(), 16U);
  EXPECT_EQ(names[0], "<built-in method to of Tensor object>");
  EXPECT_EQ(names[1], "transformers/models/llama/modeling_llama.py:62 forward");
  EXPECT_EQ(names[2], "torch/nn/modules/module.py:1783 _call_impl");
  EXPECT_EQ(names[13], "fix.py:22 infer");
  EXPECT_EQ(names[15], "fix.py:53 <module>");
  int with_stack = 0;
  for (const OpRow& row : run.sink.rows<OpRow>()) with_stack += row.stack_id ? 1 : 0;
  EXPECT_EQ(with_stack, 2697);
}

// 232 calls of 58 modules in 4 passes; the model (LlamaForCausalLM, LlamaModel) is not a part of itself.
TEST(KinetoRows, ModulesByClassAndPlace) {
  const Imported run("kineto_llama_full.json.gz");
  const std::map<std::string, int> modules = run.ranges("llmprof");
  EXPECT_EQ(modules.at("LlamaDecoderLayer.3"), 4);
  EXPECT_EQ(modules.at("Embedding"), 4);
  EXPECT_EQ(modules.at("LlamaMLP"), 16);
  EXPECT_EQ(modules.at("Linear_0"), 32);  // q and gate of 4 layers
  EXPECT_EQ(modules.at("Linear_3"), 16);  // o alone
  EXPECT_EQ(modules.at("Linear"), 4);     // the logits
  EXPECT_FALSE(modules.contains("Linear_4"));
  int calls = 0;
  for (const auto& [name, count] : modules) calls += count;
  EXPECT_EQ(calls, 232 - 8);
}

// Every allocation is freed; 769 of the device and 48 of the host. 255,874,048 - 2,048 bytes were there before.
TEST(KinetoRows, Allocations) {
  const Imported run("kineto_llama_full.json.gz");
  int device = 0, host = 0, open = 0;
  for (const AllocationRow& row : run.sink.rows<AllocationRow>()) {
    if (!row.end_ns) {
      ++open;
      EXPECT_EQ(row.bytes, 255'872'000);
      continue;
    }
    (row.device_id ? device : host) += 1;
    EXPECT_TRUE(row.stack_id);
  }
  EXPECT_EQ(device, 769);
  EXPECT_EQ(host, 48);
  EXPECT_EQ(open, 1);
}

TEST(KinetoRows, Training) {
  const Imported run("kineto_llama_train.json.gz");
  const MemorySink& sink = run.sink;
  EXPECT_EQ(sink.rows<KernelRow>().size(), 586U);
  EXPECT_EQ(kernel_ns(sink), 2'941'664);
  EXPECT_EQ(sink.rows<OpRow>().size(), 3073U);
  std::map<std::string, std::int64_t> bytes;
  for (const CopyRow& row : sink.rows<CopyRow>()) bytes[std::string(sink.text(row.direction))] += row.bytes;
  EXPECT_THAT(bytes, ElementsAre(Pair("device_to_device", 9 * 524'288), Pair("fill", 36)));
  EXPECT_THAT(run.ranges(),
              ElementsAre(Pair("Optimizer.step#AdamW.step", 1), Pair("Optimizer.zero_grad#AdamW.zero_grad", 1),
                          Pair("backward", 1), Pair("forward", 1), Pair("optimizer", 1)));
  // 128 rows forward; backward, on a thread of its own, twice that but for the rotary embedding.
  EXPECT_THAT(run.flops_by_stage(),
              ElementsAre(Pair("", 4.0 * 128 * 77'856'768), Pair("forward", 2.0 * 128 * 77'856'768 + 4096)));
  EXPECT_EQ(sink.rows<ThreadRow>().size(), 2U);
  int sequenced = 0;
  for (const OpRow& row : sink.rows<OpRow>()) sequenced += row.sequence == 619 ? 1 : 0;
  EXPECT_EQ(sequenced, 5);                             // three of the loss forward, two backward
  for (const RangeRow& row : sink.rows<RangeRow>()) {  // Optimizer.step lies in the range "optimizer"
    if (!sink.text(row.name).starts_with("Optimizer.step")) continue;
    EXPECT_EQ(row.depth, 1);
  }
}

// 4 launches of a graph of 68 kernels and 3 fills or copies, which was captured in the same file.
TEST(KinetoRows, GraphLaunches) {
  const Imported run("kineto_graph.json.gz");
  const MemorySink& sink = run.sink;
  EXPECT_EQ(sink.rows<KernelRow>().size(), 721U);
  EXPECT_EQ(kernel_ns(sink), 1'768'045);
  const auto launches = sink.rows<GraphLaunchRow>();
  ASSERT_EQ(launches.size(), 4U);
  std::set<std::int64_t> graphs;
  for (const GraphLaunchRow& row : launches) {
    graphs.insert(row.graph);
    EXPECT_TRUE(row.nodes_recorded);
    EXPECT_LT(row.launch_begin_ns, row.begin_ns);
    EXPECT_EQ(run.stage_at(row.thread_id, *row.launch_begin_ns), "decode_step");
  }
  EXPECT_EQ(graphs.size(), 1U);
  const auto nodes = sink.rows<GraphNodeRow>();
  EXPECT_EQ(nodes.size(), 71U);
  int kernels = 0, products = 0;
  std::set<Id> gemms;
  for (const KernelRow& row : sink.rows<KernelRow>()) {
    if (!row.graph_launch_id) continue;
    ++kernels;
    EXPECT_TRUE(row.graph_node_id);
    if (row.gemm_id) ++products, gemms.insert(*row.gemm_id);
  }
  EXPECT_EQ(kernels, 4 * 68);
  // A decode step multiplies 9 times, as prefill does: captured once, launched 4 times, some as two kernels.
  EXPECT_EQ(gemms.size(), 9U);
  EXPECT_EQ(products % 4, 0);
  EXPECT_EQ(sink.rows<GemmRow>().size(), 54U + 9U);
  double captured_flops = 0;
  for (const GemmRow& row : sink.rows<GemmRow>())
    if (!row.kernel_id) captured_flops += 2.0 * static_cast<double>(row.m * row.n * row.k * row.batch);
  // 2 layers of 1024 x 1536, 1024 x 1024, 1024 x 5632 and 2816 x 1024, logits 1024 x 8000, one row.
  EXPECT_EQ(captured_flops, 2.0 * (2 * (1'572'864 + 1'048'576 + 5'767'168 + 2'883'584) + 8'192'000));
}

TEST(KinetoRows, Rank) {
  const Imported run("kineto_nccl_rank1.json.gz");
  EXPECT_EQ(run.sink.rows<ProcessRow>().front().rank, 1);
  EXPECT_EQ(run.sink.rows<ProcessRow>().front().world, 2);
  const auto groups = run.sink.rows<trace::CommunicatorRow>();
  ASSERT_FALSE(groups.empty());
  EXPECT_EQ(run.sink.text(groups.front().name), "0");
  EXPECT_EQ(run.sink.text(groups.front().description), "default_pg");
  EXPECT_EQ(run.sink.text(groups.front().ranks), "0 1");
  EXPECT_EQ(groups.front().size, 2);
  EXPECT_EQ(run.sink.rows<KernelRow>().size(), 54U);
  EXPECT_EQ(run.sink.lost(Loss::kNoRank), 0);
  bool found = false;
  for (const OpRow& row : run.sink.rows<OpRow>()) {
    if (run.sink.text(row.name) != "record_param_comms") continue;
    found = run.sink.text(row.shapes).find("allreduce BFloat16, 8192 in, 8192 out, 2 ranks") != std::string_view::npos;
    break;
  }
  EXPECT_TRUE(found);
}

// XLA: kernels are what lies on "Stream #14(Compute)" of the process "/device:GPU:0".
TEST(KinetoRows, Jax) {
  const Imported run("kineto_jax.json.gz");
  const auto kernels = run.sink.rows<KernelRow>();
  ASSERT_EQ(kernels.size(), 12U);
  for (const KernelRow& row : kernels) {
    EXPECT_EQ(row.stream, 14);
    EXPECT_TRUE(row.launch_begin_ns);
    EXPECT_EQ(run.stage_at(row.thread_id, *row.launch_begin_ns).empty(), false);
  }
  EXPECT_EQ(run.sink.text(kernels.front().name), "gemm_fusion_dot_1");
  EXPECT_EQ(kernels.front().grid_x, 352);
  EXPECT_EQ(kernels.front().block_x, 128);
  EXPECT_EQ(kernels.front().registers, 43);
  EXPECT_EQ(kernels.front().shared_bytes, 36864);
  EXPECT_EQ(run.ranges().at("decode_step"), 3);
  EXPECT_FALSE(run.sink.clock.wall_of_zero_ns);
  EXPECT_EQ(run.sink.facts.tool, "XLA profiler (JAX, TensorFlow), Chrome trace");
}

}  // namespace
}  // namespace llmprof::importers
