#pragma once
// cuDNN's backend interface: descriptors made in one step, the plans that its heuristics propose for one operation, and
// their execution. For the files of this folder that call cuDNN; it includes cuDNN's header.

#include <cudnn.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dynlib.h"
#include "base/result.h"
#include "bench/cuda/dnn.h"
#include "bench/type.h"

namespace llmprof::bench::cuda {

// clang-format off
#define LLMPROF_GRAPH_CALLS(X) \
  X(create, cudnnBackendCreateDescriptor) X(destroy, cudnnBackendDestroyDescriptor) \
  X(finalize, cudnnBackendFinalize) X(set, cudnnBackendSetAttribute) X(get, cudnnBackendGetAttribute) \
  X(execute, cudnnBackendExecute)
// clang-format on
LLMPROF_API(GraphApi, LLMPROF_GRAPH_CALLS)

using Descriptor = std::shared_ptr<void>;  // a cudnnBackendDescriptor_t; destroyed with its last owner

struct Attribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  const void* values;
  Descriptor descriptor = nullptr;  // instead of values
};
inline Attribute link(cudnnBackendAttributeName_t name, Descriptor to) {
  return {name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, nullptr, std::move(to)};
}

struct GraphPlan {
  Descriptor plan;
  std::int64_t workspace_bytes = 0;
  std::int64_t engine = 0;                         // cuDNN's number of it
  std::vector<cudnnBackendNumericalNote_t> notes;  // "uses tensor cores", "rounds its inputs"
  bool has(cudnnBackendNumericalNote_t note) const;
};

// Copies share the library, which must outlive them and every descriptor.
class Graphs {
 public:
  static Result<Graphs> open(Dnn& dnn);

  // Created, given its attributes, finalised.
  Result<Descriptor> make(cudnnBackendDescriptorType_t type, const std::vector<Attribute>& attributes) const;

  enum class Place : std::uint8_t { kMemory, kVirtual, kByValue };  // kByValue: on the host, given with each call
  Result<Descriptor> tensor(std::int64_t id, cudnnDataType_t type, std::span<const std::int64_t> sizes,
                            std::span<const std::int64_t> strides, Place place = Place::kMemory) const;

  // What its heuristics propose for a graph of these operations, best guess first; no further once there are `enough`.
  // `wanted` judges by an engine's number and notes, before its plan is built; what cannot be built is left out.
  // kUnsupported if nothing remains.
  Result<std::vector<GraphPlan>> plans(const std::vector<Descriptor>& operations, std::size_t enough,
                                       const std::function<bool(const GraphPlan&)>& wanted) const;

  Result<void> execute(const GraphPlan& plan, std::span<const std::int64_t> ids, std::span<const Pointer> pointers,
                       Pointer workspace) const;

 private:
  Graphs(Dnn& dnn, const GraphApi& api) : dnn_(&dnn), api_(api) {}
  Result<Descriptor> create(cudnnBackendDescriptorType_t type) const;
  Result<std::vector<Descriptor>> proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode) const;
  Result<GraphPlan> describe(const Descriptor& configuration) const;
  Result<void> build(const Descriptor& configuration, GraphPlan& plan) const;

  Dnn* dnn_;
  GraphApi api_;
};

cudnnDataType_t dnn_type(Type type);

}  // namespace llmprof::bench::cuda
