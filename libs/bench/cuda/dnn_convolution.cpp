#include "bench/cuda/dnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "bench/cuda/dnn_graph.h"

namespace llmprof::bench::cuda {

namespace {

constexpr std::array<std::int64_t, 3> kIds{1, 2, 3};  // x, weights, y
constexpr std::size_t kAllPlans = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kMostWorkspaceBytes = std::int64_t{1} << 30;

using Sizes = std::array<std::int64_t, 4>;  // N C H W, however they lie in memory

Sizes strides(const Sizes& s, bool channels_last) {
  if (channels_last) return {s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]};
  return {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
}

std::array<Sizes, 3> tensor_sizes(const model::Convolution& c) {
  return {{{c.batch, c.in_channels, c.height, c.width},
           {c.out_channels, c.in_channels, c.kernel, c.kernel},
           {c.batch, c.out_channels, c.out_height(), c.out_width()}}};
}

Result<Descriptor> operation(const Graphs& graphs, const DnnConvolution& convolution) {
  std::array<Descriptor, 3> tensors;
  const std::array<Sizes, 3> sizes = tensor_sizes(convolution.sizes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    LLMPROF_LET(tensors[i], graphs.tensor(kIds[i], dnn_type(convolution.type), sizes[i],
                                          strides(sizes[i], convolution.channels_last)));
  }
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::int64_t dimensions = 2, one[] = {1, 1};
  const std::int64_t stride[] = {convolution.sizes.stride, convolution.sizes.stride};
  const std::int64_t padding[] = {convolution.sizes.padding, convolution.sizes.padding};
  LLMPROF_LET(const Descriptor shape,
              graphs.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                          {{CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions},
                           {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute},
                           {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
                           {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding},
                           {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding},
                           {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one},
                           {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride}}));
  const float alpha = 1, beta = 0;
  return graphs.make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                     {link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, tensors[0]),
                      link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, tensors[1]),
                      link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, tensors[2]),
                      link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, shape),
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta}});
}

// float32 is not multiplied as tf32, which is a type of its own.
bool is_wanted(const GraphPlan& plan, Type type) {
  return type != Type::kFloat32 ||
         !(plan.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || plan.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
}

// Buffers that plans are tried with, and the workspace of the one that is kept.
struct Buffers {
  std::array<Buffer, 3> tensors;
  Buffer workspace;
  std::array<Pointer, 3> pointers() const { return {tensors[0].pointer(), tensors[1].pointer(), tensors[2].pointer()}; }
};

Result<Buffers> make_buffers(Context& context, const DnnConvolution& convolution, std::int64_t workspace_bytes) {
  Buffers made;
  const std::array<Sizes, 3> sizes = tensor_sizes(convolution.sizes);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t bytes = sizes[i][0] * sizes[i][1] * sizes[i][2] * sizes[i][3] * type_bytes(convolution.type);
    LLMPROF_LET(made.tensors[i], context.allocate(bytes));
    LLMPROF_TRY(context.set_bytes(made.tensors[i].pointer(), 0x3c, bytes));  // about 1 as float16, 0.01 as the others
  }
  LLMPROF_LET(made.workspace, context.allocate(workspace_bytes));
  return made;
}

// Seconds of one call, the least of three rounds of calls replayed from a graph, so that the host's pace does not
// matter; the first call loads what it needs and is not counted.
Result<double> try_plan(Context& context, const Graphs& graphs, const GraphPlan& plan, const Buffers& buffers) {
  constexpr int kCalls = 5;
  const auto call = [&] { return graphs.execute(plan, kIds, buffers.pointers(), buffers.workspace.pointer()); };
  const auto calls = [&]() -> Result<void> {
    for (int i = 0; i < kCalls; ++i) LLMPROF_TRY(call());
    return {};
  };
  LLMPROF_TRY(context.time(call));
  auto graph = context.capture(calls);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    LLMPROF_LET(const double seconds, context.time([&] { return graph ? graph->launch() : calls(); }));
    least = std::min(least, seconds / kCalls);
  }
  return least;
}

// A plan that fails is passed over. Without memory to try them on, the first is taken.
Result<GraphPlan> fastest(Context& context, const Graphs& graphs, const DnnConvolution& convolution,
                          std::span<const GraphPlan> plans) {
  std::int64_t most_workspace = 0;
  for (const GraphPlan& plan : plans) most_workspace = std::max(most_workspace, plan.workspace_bytes);
  const auto buffers = make_buffers(context, convolution, most_workspace);
  if (!buffers) return plans.front();
  const GraphPlan* best = nullptr;
  double best_seconds = std::numeric_limits<double>::infinity();
  Error last;
  for (const GraphPlan& plan : plans) {
    const auto seconds = try_plan(context, graphs, plan, *buffers);
    if (!seconds) {
      last = seconds.error();
      if (context.broken()) return last;
    } else if (*seconds < best_seconds) {
      best = &plan;
      best_seconds = *seconds;
    }
  }
  if (best == nullptr) return last;
  return *best;
}

}  // namespace

Result<CudaCall> dnn_convolution(Context& context, const DnnConvolution& convolution) {
  LLMPROF_LET(Dnn* const dnn, context.dnn());
  LLMPROF_LET(const Graphs graphs, Graphs::open(*dnn));
  LLMPROF_LET(const Descriptor convolve, operation(graphs, convolution));
  LLMPROF_LET(std::vector<GraphPlan> plans, graphs.plans({convolve}, kAllPlans, [&](const GraphPlan& plan) {
    return is_wanted(plan, convolution.type);
  }));
  std::erase_if(plans, [](const GraphPlan& plan) { return plan.workspace_bytes > kMostWorkspaceBytes; });
  if (plans.empty()) {
    return Error{ErrorCode::kUnsupported, "every engine of cuDNN wants more than 1 GiB of workspace for this", ""};
  }
  LLMPROF_LET(const GraphPlan best, fastest(context, graphs, convolution, plans));
  LLMPROF_LET(Buffer buffer, context.allocate(best.workspace_bytes));
  const auto workspace = std::make_shared<Buffer>(std::move(buffer));
  return CudaCall{
      .enqueue = [graphs, best, workspace](
                     std::span<const Pointer> tensors,
                     Stream) { return graphs.execute(best, kIds, tensors, workspace->pointer()); },
      .method = fmt::format("cuDNN {}, engine {}, the best of {} tried", dnn->version(), best.engine, plans.size()),
      .workspace_bytes = best.workspace_bytes};
}

}  // namespace llmprof::bench::cuda
