// What a flame graph leaves out, folds and keeps: sums never change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "pictures/flame.h"
#include "pictures/flame_tree.h"
#include "pictures/flame_wrappers.h"

namespace llmprof::pictures {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> names(const Flame& flame) {
  std::vector<std::string> out;
  for (const FlameNode& node : flame.nodes) out.push_back(node.name);
  return out;
}

double sum(const Flame& flame, std::size_t weight = 0) {
  double sum = 0;
  for (const FlameNode& node : flame.nodes) sum += node.self[weight];
  return sum;
}

// A hundred call paths of a hundred frames each, every one to the same two kernels; the second takes most.
FlameTree deep_paths() {
  FlameTree tree;
  for (int path = 0; path < 100; ++path) {
    std::int32_t node = tree.child(FlameTree::kRoot, "decode", "stage");
    for (int depth = 0; depth < 100; ++depth)
      node = tree.child(node, "frame " + std::to_string(depth) + " of " + std::to_string(path), "python");
    tree.add(tree.child(node, "copy_kernel", "kernel"), 0, 1);
    tree.add(tree.child(node, "gemm", "kernel"), 0, 9);
    tree.add(node, 1, 5);
  }
  return tree;
}

TEST(FlameTree, KernelsStayWhateverFramesAreLeftOut) {
  const FlameTree tree = deep_paths();
  for (const std::size_t most : {10U, 100U, 1000U}) {
    const Flame flame = tree.cut(most);
    EXPECT_LE(flame.nodes.size(), most);
    EXPECT_EQ(sum(flame), 1000) << most;
    EXPECT_EQ(sum(flame, 1), 500) << most;
    std::map<std::string, double> of_kernels;
    for (const FlameNode& node : flame.nodes)
      if (node.kind == "kernel") of_kernels[node.name] += node.self[0];
    EXPECT_EQ(of_kernels["gemm"], 900) << most;
    EXPECT_EQ(of_kernels["copy_kernel"], 100) << most;
    EXPECT_THAT(names(flame), Contains("frames too small to draw"));
    EXPECT_GT(flame.aggregated[0], 0);
  }
}

TEST(FlameTree, AHeavyFrameStaysHoweverDeepItIs) {
  FlameTree tree = deep_paths();
  std::int32_t node = tree.child(FlameTree::kRoot, "decode", "stage");
  for (int depth = 0; depth < 150; ++depth) node = tree.child(node, "deep " + std::to_string(depth), "python");
  tree.add(node, 1, 400);
  const Flame flame = tree.cut(300);
  EXPECT_THAT(names(flame), Contains("deep 149"));
  EXPECT_THAT(names(flame), Not(Contains("frame 99 of 99")));
}

TEST(FlameTree, WithoutWrappersTheirTimeIsTheirCallers) {
  FlameTree tree;
  const std::int32_t stage = tree.child(FlameTree::kRoot, "decode", "stage");
  for (const char* wrapper : {"_call_impl (module.py:1)", "_call_impl (module.py:2)"}) {
    const std::int32_t forward = tree.child(stage, "forward (model.py:1)", "python");
    const std::int32_t wrapped = tree.child(forward, wrapper, "python", true);
    tree.add(wrapped, 1, 3);
    tree.add(tree.child(tree.child(wrapped, "forward (mlp.py:1)", "python"), "gemm", "kernel"), 0, 10, 7);
  }
  EXPECT_EQ(tree.wrappers(), 2U);
  const Flame all = tree.cut(100), shown = tree.without_wrappers().cut(100);
  EXPECT_EQ(names(shown),
            (std::vector<std::string>{"all", "decode", "forward (model.py:1)", "forward (mlp.py:1)", "gemm"}));
  EXPECT_EQ(shown.nodes[2].self[1], 6);
  EXPECT_EQ(shown.nodes[4].self[0], 20);
  EXPECT_EQ(shown.total, all.total);
  ASSERT_EQ(shown.layers.size(), 1U);  // both of layer 7
  EXPECT_EQ(shown.layers[0].node, 4);
  EXPECT_EQ(shown.layers[0].self[0], 20);
}

TEST(FlameTree, LayersFollowWhatIsLeftOut) {
  FlameTree tree;
  const std::int32_t stage = tree.child(FlameTree::kRoot, "decode", "stage");
  const std::int32_t layers = tree.child(stage, "layers.*", "module");
  for (int op = 0; op < 50; ++op) {
    for (std::int32_t layer = 0; layer < 4; ++layer)
      tree.add(tree.child(tree.child(layers, "op " + std::to_string(op), "module"), "gemm", "kernel"), 0, 1 + layer,
               layer);
  }
  for (const std::size_t most : {8U, 1000U}) {
    const Flame flame = tree.cut(most);
    std::map<std::int32_t, double> by_layer;
    for (const FlameLayer& layer : flame.layers) {
      ASSERT_LT(layer.node, static_cast<std::int32_t>(flame.nodes.size()));
      by_layer[layer.layer] += layer.self[0];
    }
    EXPECT_EQ(by_layer, (std::map<std::int32_t, double>{{0, 50}, {1, 100}, {2, 150}, {3, 200}})) << most;
  }
}

exporters::Frame python(std::string name, std::string file) { return {std::move(name), std::move(file), 1, "python"}; }
exporters::Frame native(std::string name, std::string file) { return {std::move(name), std::move(file), 0, "native"}; }

TEST(FlameWrappers, OnlyWhatPassesACallOn) {
  const auto hidden = [](const exporters::Frame& frame) { return is_wrapper(frame, false); };
  EXPECT_TRUE(hidden(python("Module._call_impl", "/x/site-packages/torch/nn/modules/module.py")));
  EXPECT_TRUE(hidden(python("Module._call_impl.<locals>.inner", "/x/torch/nn/modules/module.py")));
  EXPECT_TRUE(hidden(python("_find_and_load", "<frozen importlib._bootstrap>")));
  EXPECT_TRUE(hidden(python("Thread._bootstrap_inner", "/usr/lib/python3.12/threading.py")));
  EXPECT_TRUE(hidden(native("_PyEval_EvalFrameDefault", "/usr/bin/python3.12")));
  EXPECT_TRUE(hidden(native("c10::impl::wrap_kernel_functor_unboxed_::call", "libtorch_cpu.so")));
  EXPECT_TRUE(hidden(native("libc.so.6+0x2a1ca", "")));
  EXPECT_FALSE(is_wrapper(native("libc.so.6+0x2a1ca", ""), true));  // its own time
  EXPECT_FALSE(hidden(python("LlamaMLP.forward", "/x/transformers/models/llama/modeling_llama.py")));
  EXPECT_FALSE(hidden(python("run", "/home/me/train.py")));
  EXPECT_FALSE(hidden(python("inner", "/home/me/model.py")));
  EXPECT_FALSE(hidden(native("at::native::mul_kernel_cuda", "libtorch_cuda.so")));
  EXPECT_FALSE(hidden(native("cudaLaunchKernel", "libcudart.so.13")));
}

}  // namespace
}  // namespace llmprof::pictures
