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

using RawDescriptor = cudnnBackendDescriptor_t;

// Makes descriptors, owns them, and keeps the first error: a graph is written down without a check at every step.
class Backend {
 public:
  Backend(const Dnn& dnn, const GraphApi& api) : dnn_(dnn), api_(api) {}
  ~Backend() {
    for (auto it = owned_.rbegin(); it != owned_.rend(); ++it) api_.destroy(*it);
  }
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const Result<void>& status() const { return status_; }
  void forget_error() { status_ = {}; }
  cudnnHandle_t handle() const { return static_cast<cudnnHandle_t>(dnn_.handle()); }
  const GraphApi& api() const { return api_; }

  RawDescriptor make(cudnnBackendDescriptorType_t type) {
    RawDescriptor made = nullptr;
    note(api_.create(type, &made), "cudnnBackendCreateDescriptor");
    if (made != nullptr) owned_.push_back(made);
    return made;
  }
  template <class T>
  void set(RawDescriptor to, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    note(api_.set(to, name, type, 1, &value), "cudnnBackendSetAttribute");
  }
  template <class T>
  void set_all(RawDescriptor to, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& values) {
    note(api_.set(to, name, type, static_cast<std::int64_t>(values.size()), values.data()), "cudnnBackendSetAttribute");
  }
  void link(RawDescriptor to, cudnnBackendAttributeName_t name, RawDescriptor value) {
    set(to, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value);
  }
  void finalize(RawDescriptor descriptor) { note(api_.finalize(descriptor), "cudnnBackendFinalize"); }
  void note(cudnnStatus_t status, const char* what) {
    if (status_ && status != CUDNN_STATUS_SUCCESS) status_ = dnn_.check(status, what);
  }

 private:
  const Dnn& dnn_;
  GraphApi api_;
  std::vector<RawDescriptor> owned_;
  Result<void> status_;
};

using Shape = std::array<std::int64_t, 4>;  // batch, heads, rows, columns

Shape packed_strides(const Shape& shape) { return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}; }

enum class Place : std::uint8_t { kMemory, kVirtual, kByValue };  // kByValue: on the host, handed over with each call

// Names of what is handed over with each call.
enum Uid : std::int64_t { kQ = 1, kK, kV, kOut, kScale, kMinusInfinity, kFirstVirtual };

// The operations of attention, each appended to a list that becomes the graph.
class AttentionGraph {
 public:
  explicit AttentionGraph(Backend& backend) : backend_(backend) {}

  RawDescriptor tensor(std::int64_t uid, const Shape& shape, const Shape& strides, cudnnDataType_t type, Place place) {
    const RawDescriptor made = backend_.make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    backend_.set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid);
    backend_.set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    backend_.set_all(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, shape);
    backend_.set_all(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
    backend_.set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
    backend_.set(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, place == Place::kVirtual);
    backend_.set(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, place == Place::kByValue);
    backend_.finalize(made);
    return made;
  }
  RawDescriptor scalar(std::int64_t uid) {
    return tensor(uid, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Place::kByValue);
  }
  RawDescriptor between(const Shape& shape, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(next_uid_++, shape, packed_strides(shape), type, Place::kVirtual);
  }

  RawDescriptor product(RawDescriptor a, RawDescriptor b, RawDescriptor c) {
    const RawDescriptor how = backend_.make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    backend_.set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    backend_.finalize(how);
    const RawDescriptor op = backend_.make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    backend_.link(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    backend_.link(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    backend_.link(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    backend_.link(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    return append(op, c);
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    RawDescriptor x = nullptr, b = nullptr, chosen_by = nullptr;
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    std::optional<std::int64_t> axis = std::nullopt;
  };
  RawDescriptor pointwise(const Pointwise& what, RawDescriptor y) {
    const RawDescriptor how = backend_.make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    backend_.set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, what.mode);
    backend_.set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, what.precision);
    if (what.axis) backend_.set(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, *what.axis);
    backend_.finalize(how);
    const RawDescriptor op = backend_.make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    backend_.link(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    backend_.link(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, what.x);
    if (what.b != nullptr) backend_.link(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, what.b);
    if (what.chosen_by != nullptr) backend_.link(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, what.chosen_by);
    backend_.link(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    return append(op, y);
  }

  RawDescriptor reduction(cudnnReduceTensorOp_t mode, RawDescriptor x, RawDescriptor y) {
    const RawDescriptor how = backend_.make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    backend_.set(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
    backend_.set(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    backend_.finalize(how);
    const RawDescriptor op = backend_.make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    backend_.link(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    backend_.link(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    backend_.link(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    return append(op, y);
  }

  RawDescriptor finish() {
    const RawDescriptor graph = backend_.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    backend_.set_all(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations_);
    backend_.set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, backend_.handle());
    backend_.finalize(graph);
    return graph;
  }

 private:
  RawDescriptor append(RawDescriptor operation, RawDescriptor result) {
    backend_.finalize(operation);
    operations_.push_back(operation);
    return result;
  }

  Backend& backend_;
  std::vector<RawDescriptor> operations_;
  std::int64_t next_uid_ = kFirstVirtual;
};

// The shape that cuDNN's fused engines recognise: product, scale, mask, softmax written out with its statistics,
// product.
RawDescriptor build_graph(Backend& backend, const CudnnAttention& a) {
  AttentionGraph graph(backend);
  const cudnnDataType_t type = a.type == Type::kFloat16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  const std::int64_t q_step = a.heads * a.head_dim, kv_step = a.kv_heads * a.head_dim;
  const Shape queries{a.batch, a.heads, a.queries, a.head_dim}, scores{a.batch, a.heads, a.queries, a.keys};
  const Shape rows{a.batch, a.heads, a.queries, 1}, query_strides{a.queries * q_step, a.head_dim, q_step, 1};
  const RawDescriptor q = graph.tensor(kQ, queries, query_strides, type, Place::kMemory);
  const RawDescriptor k = graph.tensor(kK, {a.batch, a.kv_heads, a.head_dim, a.keys},
                                       {a.keys * kv_step, a.head_dim, 1, kv_step}, type, Place::kMemory);  // transposed
  const RawDescriptor v = graph.tensor(kV, {a.batch, a.kv_heads, a.keys, a.head_dim},
                                       {a.keys * kv_step, a.head_dim, kv_step, 1}, type, Place::kMemory);
  const RawDescriptor out = graph.tensor(kOut, queries, query_strides, type, Place::kMemory);

  RawDescriptor score = graph.product(q, k, graph.between(scores));
  score = graph.pointwise({.mode = CUDNN_POINTWISE_MUL, .x = score, .b = graph.scalar(kScale)}, graph.between(scores));
  if (a.causal) {
    const RawDescriptor query =
        graph.pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .x = score, .precision = CUDNN_DATA_INT32, .axis = 2},
                        graph.between(scores, CUDNN_DATA_INT32));
    const RawDescriptor key =
        graph.pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .x = score, .precision = CUDNN_DATA_INT32, .axis = 3},
                        graph.between(scores, CUDNN_DATA_INT32));
    const RawDescriptor seen =
        graph.pointwise({.mode = CUDNN_POINTWISE_CMP_GE, .x = query, .b = key, .precision = CUDNN_DATA_BOOLEAN},
                        graph.between(scores, CUDNN_DATA_BOOLEAN));
    score = graph.pointwise(
        {.mode = CUDNN_POINTWISE_BINARY_SELECT, .x = score, .b = graph.scalar(kMinusInfinity), .chosen_by = seen},
        graph.between(scores));
  }
  const RawDescriptor highest = graph.reduction(CUDNN_REDUCE_TENSOR_MAX, score, graph.between(rows));
  RawDescriptor weight =
      graph.pointwise({.mode = CUDNN_POINTWISE_SUB, .x = score, .b = highest}, graph.between(scores));
  weight = graph.pointwise({.mode = CUDNN_POINTWISE_EXP, .x = weight}, graph.between(scores));
  const RawDescriptor sum = graph.reduction(CUDNN_REDUCE_TENSOR_ADD, weight, graph.between(rows));
  // The statistics of training, which nobody reads here: engines look for them.
  const RawDescriptor log_sum = graph.pointwise({.mode = CUDNN_POINTWISE_LOG, .x = sum}, graph.between(rows));
  graph.pointwise({.mode = CUDNN_POINTWISE_ADD, .x = highest, .b = log_sum}, graph.between(rows));
  weight = graph.pointwise({.mode = CUDNN_POINTWISE_DIV, .x = weight, .b = sum}, graph.between(scores, type));
  graph.product(weight, v, out);
  return graph.finish();
}

// The first of the heuristic's engines that takes the graph. nullptr: none, and the backend's status says why.
RawDescriptor plan_by(Backend& backend, RawDescriptor graph, cudnnBackendHeurMode_t mode) {
  const RawDescriptor heuristic = backend.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  backend.link(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  backend.set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  backend.finalize(heuristic);
  std::array<RawDescriptor, 8> configs{};
  for (RawDescriptor& config : configs) config = backend.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  std::int64_t found = 0;
  if (!backend.status()) return nullptr;
  backend.note(backend.api().get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 configs.size(), &found, configs.data()),
               "cudnnBackendGetAttribute");
  for (std::int64_t i = 0; i < found && i < static_cast<std::int64_t>(configs.size()); ++i) {
    backend.forget_error();
    const RawDescriptor plan = backend.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    backend.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, backend.handle());
    backend.link(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[static_cast<std::size_t>(i)]);
    backend.finalize(plan);
    if (backend.status()) return plan;
  }
  return nullptr;
}

// What a call needs for as long as it is called.
struct Planned {
  Planned(const Dnn& dnn, const GraphApi& api) : backend(dnn, api) {}
  Backend backend;
  RawDescriptor plan = nullptr;
  Buffer workspace;
  float scale = 1, minus_infinity = std::numeric_limits<float>::lowest();
  bool causal = false;
};

Result<void> execute(const Dnn& dnn, const Planned& planned, std::span<const Pointer> tensors) {
  Backend backend(dnn, planned.backend.api());
  std::vector<std::int64_t> uids{kQ, kK, kV, kOut, kScale};
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < 4; ++i) pointers.push_back(reinterpret_cast<const void*>(tensors[i]));
  pointers.push_back(&planned.scale);
  if (planned.causal) {
    uids.push_back(kMinusInfinity);
    pointers.push_back(&planned.minus_infinity);
  }
  const RawDescriptor pack = backend.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  backend.set_all(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids);
  backend.set_all(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
  backend.set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
              reinterpret_cast<void*>(planned.workspace.pointer()));
  backend.finalize(pack);
  LLMPROF_TRY(backend.status());
  return dnn.check(backend.api().execute(backend.handle(), planned.plan, pack), "cudnnBackendExecute");
}

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

Result<void> plan(Context& context, Planned& planned, const CudnnAttention& attention) {
  Backend& backend = planned.backend;
  const RawDescriptor graph = build_graph(backend, attention);
  if (!backend.status()) return refused(backend.status().error().message);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (planned.plan == nullptr) {
      backend.forget_error();
      planned.plan = plan_by(backend, graph, mode);
    }
  }
  if (planned.plan == nullptr) {
    return refused(backend.status() ? "no engine takes this graph" : backend.status().error().message);
  }
  std::int64_t bytes = 0, count = 0;
  backend.note(
      backend.api().get(planned.plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes),
      "cudnnBackendGetAttribute");
  LLMPROF_TRY(backend.status());
  LLMPROF_LET(planned.workspace, context.allocate(std::max<std::int64_t>(bytes, 1)));
  return {};
}

}  // namespace

Result<CudaCall> cudnn_attention(Context& context, const CudnnAttention& attention) {
  LLMPROF_TRY(check_limits(attention));
  LLMPROF_LET(const Dnn* const dnn, context.dnn());
  LLMPROF_LET(const GraphApi api, dnn->api<GraphApi>(GraphApi::symbols()));
  const auto planned = std::make_shared<Planned>(*dnn, api);
  planned->scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.head_dim)));
  planned->causal = attention.causal;
  LLMPROF_TRY(plan(context, *planned, attention));
  return CudaCall{
      .enqueue = [dnn, planned](std::span<const Pointer> tensors, Stream) { return execute(*dnn, *planned, tensors); },
      .method = fmt::format("cuDNN {} attention graph", dnn->version()),
      .workspace_bytes = planned->workspace.bytes()};
}

}  // namespace llmprof::bench::cuda
