// Attention by cuDNN: its fused kernel, planned through the backend interface for one size.

#include <cudnn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "bench/cuda/dnn.h"
#include "bench/cuda/dnn_graph.h"

namespace llmprof::bench::cuda {
namespace {

using Place = Graphs::Place;
using Shape = std::array<std::int64_t, 4>;  // batch, heads, rows, columns

Shape packed_strides(const Shape& shape) { return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}; }

// Names of what is handed over with each call.
enum Uid : std::int64_t { kQ = 1, kK, kV, kOut, kScale, kMinusInfinity, kFirstVirtual };

// The operations of attention, each appended to a list that becomes the graph. Keeps the first error: a graph is
// written down without a check at every step.
class AttentionGraph {
 public:
  explicit AttentionGraph(const Graphs& graphs) : graphs_(graphs) {}

  const Result<void>& status() const { return status_; }
  const std::vector<Descriptor>& operations() const { return operations_; }

  Descriptor tensor(std::int64_t uid, const Shape& shape, const Shape& strides, cudnnDataType_t type, Place place) {
    return kept(graphs_.tensor(uid, type, shape, strides, place));
  }
  Descriptor scalar(std::int64_t uid) {
    return tensor(uid, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Place::kByValue);
  }
  Descriptor between(const Shape& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(next_uid_++, shape, packed_strides(shape), type, Place::kVirtual);
  }

  Descriptor product(const Descriptor& a, const Descriptor& b, const Descriptor& c) {
    const Descriptor how =
        make(CUDNN_BACKEND_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &kFloat}});
    return append(make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                       {link(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a), link(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b),
                        link(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c), link(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)}),
                  c);
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    Descriptor x = nullptr, b = nullptr, chosen_by = nullptr;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    std::optional<std::int64_t> axis = std::nullopt;
  };
  Descriptor pointwise(const Pointwise& what, const Descriptor& y) {
    std::vector<Attribute> kind{{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &what.mode},
                                {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &what.precision}};
    if (what.axis) kind.push_back({CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &*what.axis});
    std::vector<Attribute> links{
        link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, kind)),
        link(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, what.x), link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)};
    if (what.b != nullptr) links.push_back(link(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, what.b));
    if (what.chosen_by != nullptr) links.push_back(link(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, what.chosen_by));
    return append(make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, links), y);
  }

  Descriptor reduction(cudnnReduceTensorOp_t mode, const Descriptor& x, const Descriptor& y) {
    const Descriptor how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
                                {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode},
                                 {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &kFloat}});
    return append(make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                       {link(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x), link(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y),
                        link(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)}),
                  y);
  }

 private:
  static constexpr cudnnDataType_t kFloat = CUDNN_DATA_FLOAT;

  Descriptor kept(Result<Descriptor> made) {
    if (made) return *made;
    if (status_) status_ = made.error();
    return nullptr;
  }
  Descriptor make(cudnnBackendDescriptorType_t type, const std::vector<Attribute>& attributes) {
    return status_ ? kept(graphs_.make(type, attributes)) : nullptr;
  }
  Descriptor append(const Descriptor& operation, const Descriptor& result) {
    operations_.push_back(operation);
    return result;
  }

  const Graphs& graphs_;
  Result<void> status_;
  std::vector<Descriptor> operations_;
  std::int64_t next_uid_ = kFirstVirtual;
};

// The shape that cuDNN's fused engines recognise: product, scale, mask, softmax written out with its statistics,
// product.
void build_graph(AttentionGraph& graph, const CudnnAttention& a) {
  const cudnnDataType_t type = dnn_type(a.type);
  const std::int64_t q_step = a.heads * a.head_dim, kv_step = a.kv_heads * a.head_dim;
  const Shape queries{a.batch, a.heads, a.queries, a.head_dim}, scores{a.batch, a.heads, a.queries, a.keys};
  const Shape rows{a.batch, a.heads, a.queries, 1}, query_strides{a.queries * q_step, a.head_dim, q_step, 1};
  const Descriptor q = graph.tensor(kQ, queries, query_strides, type, Place::kMemory);
  const Descriptor k = graph.tensor(kK, {a.batch, a.kv_heads, a.head_dim, a.keys},
                                    {a.keys * kv_step, a.head_dim, 1, kv_step}, type, Place::kMemory);  // transposed
  const Descriptor v = graph.tensor(kV, {a.batch, a.kv_heads, a.keys, a.head_dim},
                                    {a.keys * kv_step, a.head_dim, kv_step, 1}, type, Place::kMemory);
  const Descriptor out = graph.tensor(kOut, queries, query_strides, type, Place::kMemory);

  Descriptor score = graph.product(q, k, graph.between(scores));
  score = graph.pointwise({.mode = CUDNN_POINTWISE_MUL, .x = score, .b = graph.scalar(kScale)}, graph.between(scores));
  if (a.causal) {
    const Descriptor query =
        graph.pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .x = score, .precision = CUDNN_DATA_INT32, .axis = 2},
                        graph.between(scores, CUDNN_DATA_INT32));
    const Descriptor key =
        graph.pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .x = score, .precision = CUDNN_DATA_INT32, .axis = 3},
                        graph.between(scores, CUDNN_DATA_INT32));
    const Descriptor seen =
        graph.pointwise({.mode = CUDNN_POINTWISE_CMP_GE, .x = query, .b = key, .precision = CUDNN_DATA_BOOLEAN},
                        graph.between(scores, CUDNN_DATA_BOOLEAN));
    score = graph.pointwise(
        {.mode = CUDNN_POINTWISE_BINARY_SELECT, .x = score, .b = graph.scalar(kMinusInfinity), .chosen_by = seen},
        graph.between(scores));
  }
  const Descriptor highest = graph.reduction(CUDNN_REDUCE_TENSOR_MAX, score, graph.between(rows));
  Descriptor weight = graph.pointwise({.mode = CUDNN_POINTWISE_SUB, .x = score, .b = highest}, graph.between(scores));
  weight = graph.pointwise({.mode = CUDNN_POINTWISE_EXP, .x = weight}, graph.between(scores));
  const Descriptor sum = graph.reduction(CUDNN_REDUCE_TENSOR_ADD, weight, graph.between(rows));
  // The statistics of training, which nobody reads here: engines look for them.
  const Descriptor log_sum = graph.pointwise({.mode = CUDNN_POINTWISE_LOG, .x = sum}, graph.between(rows));
  graph.pointwise({.mode = CUDNN_POINTWISE_ADD, .x = highest, .b = log_sum}, graph.between(rows));
  weight = graph.pointwise({.mode = CUDNN_POINTWISE_DIV, .x = weight, .b = sum}, graph.between(scores, type));
  graph.product(weight, v, out);
}

// What a call needs for as long as it is called.
struct Planned {
  Graphs graphs;
  GraphPlan plan;
  Buffer workspace;
  float scale = 1, minus_infinity = std::numeric_limits<float>::lowest();

  Result<void> execute(std::span<const Pointer> tensors, bool causal) const {
    std::vector<std::int64_t> uids{kQ, kK, kV, kOut, kScale};
    std::vector<Pointer> pointers{tensors[0], tensors[1], tensors[2], tensors[3], reinterpret_cast<Pointer>(&scale)};
    if (causal) {
      uids.push_back(kMinusInfinity);
      pointers.push_back(reinterpret_cast<Pointer>(&minus_infinity));
    }
    return graphs.execute(plan, uids, pointers, workspace.pointer());
  }
};

// Whatever cuDNN has against a problem: another implementation may know it.
Error refused(const std::string& why) {
  return {ErrorCode::kUnsupported, "cuDNN does not know this attention: " + why, ""};
}

// PyTorch keeps such problems from it, too (check_cudnn_tensor_shapes).
Result<void> check_limits(const CudnnAttention& attention) {
  if (attention.type != Type::kBfloat16 && attention.type != Type::kFloat16) {
    return refused(fmt::format("it takes bfloat16 and float16, not {}", type_name(attention.type)));
  }
  if (attention.keys == 1) return refused("one key");
  if (attention.head_dim % 8 != 0)
    return refused(fmt::format("head_dim {} is not a multiple of 8", attention.head_dim));
  return {};
}

}  // namespace

Result<CudaCall> cudnn_attention(Context& context, const CudnnAttention& attention) {
  LLMPROF_TRY(check_limits(attention));
  LLMPROF_LET(Dnn* const dnn, context.dnn());
  LLMPROF_LET(const Graphs graphs, Graphs::open(*dnn));
  AttentionGraph graph(graphs);
  build_graph(graph, attention);
  if (!graph.status()) return refused(graph.status().error().message);
  // The first of the heuristic's engines that takes the graph: building others takes seconds.
  Result<std::vector<GraphPlan>> plans = graphs.plans(graph.operations(), 1, [](const GraphPlan&) { return true; });
  if (!plans) return refused(plans.error().message);
  const auto planned = std::make_shared<Planned>(Planned{.graphs = graphs, .plan = plans->front()});
  planned->scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.head_dim)));
  LLMPROF_LET(planned->workspace, context.allocate(std::max<std::int64_t>(planned->plan.workspace_bytes, 1)));
  return CudaCall{.enqueue = [planned, causal = attention.causal](std::span<const Pointer> tensors,
                                                                  Stream) { return planned->execute(tensors, causal); },
                  .method = fmt::format("cuDNN {} attention graph", dnn->version()),
                  .workspace_bytes = planned->workspace.bytes()};
}

}  // namespace llmprof::bench::cuda
