#include "bench/cuda/dnn_graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace llmprof::bench::cuda {

namespace {

constexpr std::int64_t kMostProposals = 100;  // cuDNN has fewer engines
constexpr std::size_t kMostPlans = 12;        // of each kind of heuristics: each is built, and perhaps tried

// Newer headers mark these two as deprecated; older libraries want them.
constexpr auto kGraphHandle = static_cast<cudnnBackendAttributeName_t>(800);
constexpr auto kPlanHandle = static_cast<cudnnBackendAttributeName_t>(400);

}  // namespace

cudnnDataType_t dnn_type(Type type) {
  switch (type) {
    case Type::kFloat64:
      return CUDNN_DATA_DOUBLE;
    case Type::kFloat16:
      return CUDNN_DATA_HALF;
    case Type::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    case Type::kFloat8E4m3:
      return CUDNN_DATA_FP8_E4M3;
    case Type::kInt8:
      return CUDNN_DATA_INT8;
    case Type::kInt32:
      return CUDNN_DATA_INT32;
    case Type::kFloat32:
    case Type::kTf32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

bool GraphPlan::has(cudnnBackendNumericalNote_t note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

Result<Graphs> Graphs::open(Dnn& dnn) {
  LLMPROF_LET(const GraphApi api, dnn.api<GraphApi>(GraphApi::symbols()));
  return Graphs(dnn, api);
}

Result<Descriptor> Graphs::create(cudnnBackendDescriptorType_t type) const {
  cudnnBackendDescriptor_t descriptor = nullptr;
  LLMPROF_TRY(dnn_->check(api_.create(type, &descriptor), "cudnnBackendCreateDescriptor"));
  return Descriptor(descriptor, api_.destroy);
}

Result<Descriptor> Graphs::make(cudnnBackendDescriptorType_t type, std::initializer_list<Attribute> attributes) const {
  LLMPROF_LET(Descriptor made, create(type));
  for (const Attribute& a : attributes) {
    LLMPROF_TRY(dnn_->check(api_.set(made.get(), a.name, a.type, a.count, a.values), "cudnnBackendSetAttribute"));
  }
  LLMPROF_TRY(dnn_->check(api_.finalize(made.get()), "cudnnBackendFinalize"));
  return made;
}

Result<Descriptor> Graphs::tensor(std::int64_t id, Type type, std::span<const std::int64_t> sizes,
                                  std::span<const std::int64_t> strides) const {
  const cudnnDataType_t data = dnn_type(type);
  const std::int64_t alignment = 16;
  const auto count = static_cast<std::int64_t>(sizes.size());
  return make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
                                                {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &data},
                                                {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, count, sizes.data()},
                                                {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, count, strides.data()},
                                                {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment}});
}

Result<std::vector<Descriptor>> Graphs::proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode) const {
  void* const of = graph.get();
  LLMPROF_LET(const Descriptor heuristics,
              make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                   {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of},
                    {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}}));
  std::int64_t count = 0;
  LLMPROF_TRY(dnn_->check(
      api_.get(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
      "cuDNN's heuristics"));
  std::vector<Descriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < std::min(count, kMostProposals); ++i) {
    LLMPROF_LET(const Descriptor made, create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    configurations.push_back(made);
    raw.push_back(made.get());
  }
  LLMPROF_TRY(dnn_->check(api_.get(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   static_cast<std::int64_t>(raw.size()), &count, raw.data()),
                          "cuDNN's heuristics"));
  configurations.resize(std::min(configurations.size(), static_cast<std::size_t>(std::max<std::int64_t>(count, 0))));
  return configurations;
}

Result<GraphPlan> Graphs::describe(const Descriptor& configuration) const {
  GraphPlan made;
  LLMPROF_LET(const Descriptor engine, create(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  void* raw = engine.get();
  std::int64_t count = 0;
  LLMPROF_TRY(dnn_->check(
      api_.get(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
      "an engine of cuDNN"));
  LLMPROF_TRY(dnn_->check(api_.get(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &made.engine),
                          "the number of an engine"));
  made.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  LLMPROF_TRY(dnn_->check(api_.get(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, made.notes.data()),
                          "the notes of an engine"));
  made.notes.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)));
  return made;
}

Result<void> Graphs::build(const Descriptor& configuration, GraphPlan& plan) const {
  void* const handle = dnn_->handle();
  void* const of = configuration.get();
  LLMPROF_LET(plan.plan, make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                              {{kPlanHandle, CUDNN_TYPE_HANDLE, 1, &handle},
                               {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of}}));
  std::int64_t count = 0;
  return dnn_->check(api_.get(plan.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                              &plan.workspace_bytes),
                     "the workspace of a plan");
}

Result<std::vector<GraphPlan>> Graphs::plans(const Descriptor& operation,
                                             const std::function<bool(const GraphPlan&)>& wanted) const {
  void* const handle = dnn_->handle();
  void* const of = operation.get();
  LLMPROF_LET(const Descriptor graph, make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
                                           {{kGraphHandle, CUDNN_TYPE_HANDLE, 1, &handle},
                                            {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of}}));
  std::vector<GraphPlan> found;
  std::string why = "its heuristics name none that is wanted";
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const auto configurations = proposals(graph, mode);
    if (!configurations) {
      why = configurations.error().message;
      continue;
    }
    const std::size_t most = found.size() + kMostPlans;
    for (const Descriptor& configuration : *configurations) {
      if (found.size() == most) break;
      auto plan = describe(configuration);
      if (!plan || !wanted(*plan)) continue;
      if (const auto built = build(configuration, *plan); built) {
        found.push_back(std::move(*plan));
      } else {
        why = built.error().message;
      }
    }
  }
  if (!found.empty()) return found;
  return Error{ErrorCode::kUnsupported, fmt::format("cuDNN {} has no engine for this: {}", dnn_->version(), why), ""};
}

Result<void> Graphs::execute(const GraphPlan& plan, std::span<const std::int64_t> ids,
                             std::span<const Pointer> pointers, Pointer workspace) const {
  const auto count = static_cast<std::int64_t>(ids.size());
  LLMPROF_LET(const Descriptor pack,
              make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                   {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data()},
                    {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data()},
                    {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace}}));
  auto* const handle = static_cast<cudnnHandle_t>(dnn_->handle());
  return dnn_->check(api_.execute(handle, plan.plan.get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace llmprof::bench::cuda
