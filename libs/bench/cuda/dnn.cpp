#include "bench/cuda/dnn.h"

#include <fmt/format.h>

#include <cudnn.h>
#include <dlfcn.h>
#include <algorithm>
#include <string_view>

#include "base/cuda_libraries.h"
#include "base/dynlib.h"
#include "bench/cuda/dnn_graph.h"

namespace llmprof::bench::cuda {

namespace {

constexpr std::string_view kLibrary = "libcudnn.so.9";

// clang-format off
#define LLMPROF_DNN_CALLS(X) \
  X(version, cudnnGetVersion) X(create, cudnnCreate) X(destroy, cudnnDestroy) X(set_stream, cudnnSetStream) \
  X(error_string, cudnnGetErrorString) X(last_error, cudnnGetLastErrorString)
// clang-format on
LLMPROF_API(DnnApi, LLMPROF_DNN_CALLS)

// libcudnn.so.9 opens its parts by name alone. Where the loader would not find them, they are opened here, from the
// folder beside it: a name that is already open is found. A missing part is an error of the function that needs it.
void preload_parts(const std::string& library) {
  const std::string folder = library.substr(0, library.rfind('/') + 1);
  for (const char* part :
       {"graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"}) {
    ::dlopen(fmt::format("{}libcudnn_{}.so.9", folder, part).c_str(), RTLD_LAZY | RTLD_LOCAL);
  }
}

struct Library {
  void* handle = nullptr;
  std::string path;
};

Result<Library> open_library() {
  std::string tried;
  for (const std::string& name : base::cuda_library_candidates(kLibrary)) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      if (name.find('/') != std::string::npos) preload_parts(name);
      return Library{handle, name};
    }
    tried += (tried.empty() ? "" : ", ") + name;
  }
  return Error{ErrorCode::kUnsupported, "cuDNN was not found: tried " + tried,
               "install cuDNN 9, or add its folder to LD_LIBRARY_PATH"};
}

// 9.19.0 is 91900.
std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// Of the hundreds of each thousand only the class matters: 1xxx is "not here" (a part or the driver is missing or too
// old), 3xxx "not this".
bool is_unsupported(int status) {
  return status / 1000 == CUDNN_STATUS_NOT_INITIALIZED / 1000 || status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
}

constexpr std::int64_t kMostProposals = 100;  // cuDNN has fewer engines
constexpr std::size_t kMostPlans = 12;        // of each kind of heuristics: each is built, and perhaps tried

// Newer headers mark these two as deprecated; older libraries want them.
constexpr auto kGraphHandle = static_cast<cudnnBackendAttributeName_t>(800);
constexpr auto kPlanHandle = static_cast<cudnnBackendAttributeName_t>(400);

}  // namespace

Result<std::shared_ptr<Dnn>> open_dnn(Context& context) {
  LLMPROF_LET(std::unique_ptr<Dnn> dnn, Dnn::open(context.stream()));
  return std::shared_ptr<Dnn>(std::move(dnn));
}

struct Dnn::State {
  Library library;
  DnnApi api;
  std::string version;
  cudnnHandle_t handle = nullptr;
};

Dnn::Dnn(std::unique_ptr<State> state) : state_(std::move(state)) {}

Dnn::~Dnn() {
  if (state_->handle != nullptr) state_->api.destroy(state_->handle);
}

Result<std::unique_ptr<Dnn>> Dnn::open(Stream stream) {
  LLMPROF_LET(const Library library, open_library());
  std::unique_ptr<Dnn> dnn(new Dnn(std::make_unique<State>()));
  State& state = *dnn->state_;
  state.library = library;
  LLMPROF_LET(state.api, dnn->api<DnnApi>(DnnApi::symbols()));
  state.version = version_text(state.api.version());
  if (state.api.version() / 10000 != CUDNN_MAJOR) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} is cuDNN {}, this build knows {}", library.path, state.version, CUDNN_MAJOR)};
  }
  LLMPROF_TRY(dnn->check(state.api.create(&state.handle), "cudnnCreate"));
  LLMPROF_TRY(dnn->check(state.api.set_stream(state.handle, reinterpret_cast<cudaStream_t>(stream)), "cudnnSetStream"));
  return dnn;
}

void* Dnn::handle() const { return state_->handle; }
const std::string& Dnn::version() const { return state_->version; }
const std::string& Dnn::path() const { return state_->library.path; }
void* Dnn::symbol(const char* name) const { return ::dlsym(state_->library.handle, name); }

Result<void> Dnn::check(int status, const char* what) const {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  char last[512] = "";
  state_->api.last_error(last, sizeof last);
  std::string message = fmt::format("{}: {}", what, state_->api.error_string(static_cast<cudnnStatus_t>(status)));
  if (last[0] != '\0') message += fmt::format(" ({})", last);
  return Error{is_unsupported(status) ? ErrorCode::kUnsupported : ErrorCode::kInternal, std::move(message), ""};
}

cudnnDataType_t dnn_type(Type type) {
  constexpr cudnnDataType_t kTypes[] = {CUDNN_DATA_DOUBLE,   CUDNN_DATA_FLOAT,    CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16, CUDNN_DATA_FP8_E4M3, CUDNN_DATA_INT8,  CUDNN_DATA_INT32};
  return kTypes[static_cast<std::size_t>(type)];  // in the order of Type; tf32 is stored as float32
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

Result<Descriptor> Graphs::make(cudnnBackendDescriptorType_t type, const std::vector<Attribute>& attributes) const {
  LLMPROF_LET(Descriptor made, create(type));
  for (const Attribute& a : attributes) {
    void* const other = a.descriptor.get();
    const void* const values = other != nullptr ? &other : a.values;
    LLMPROF_TRY(dnn_->check(api_.set(made.get(), a.name, a.type, a.count, values), "cudnnBackendSetAttribute"));
  }
  LLMPROF_TRY(dnn_->check(api_.finalize(made.get()), "cudnnBackendFinalize"));
  return made;
}

Result<Descriptor> Graphs::tensor(std::int64_t id, cudnnDataType_t type, std::span<const std::int64_t> sizes,
                                  std::span<const std::int64_t> strides, Place place) const {
  const std::int64_t alignment = 16;
  const auto count = static_cast<std::int64_t>(sizes.size());
  const bool is_virtual = place == Place::kVirtual, by_value = place == Place::kByValue;
  return make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
                                                {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
                                                {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, count, sizes.data()},
                                                {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, count, strides.data()},
                                                {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
                                                {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual},
                                                {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value}});
}

Result<std::vector<Descriptor>> Graphs::proposals(const Descriptor& graph, cudnnBackendHeurMode_t mode) const {
  LLMPROF_LET(const Descriptor heuristics, make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                                                {link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph),
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
  LLMPROF_LET(plan.plan, make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                              {{kPlanHandle, CUDNN_TYPE_HANDLE, 1, &handle},
                               link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)}));
  std::int64_t count = 0;
  return dnn_->check(api_.get(plan.plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                              &plan.workspace_bytes),
                     "the workspace of a plan");
}

Result<std::vector<GraphPlan>> Graphs::plans(const std::vector<Descriptor>& operations, std::size_t enough,
                                             const std::function<bool(const GraphPlan&)>& wanted) const {
  void* const handle = dnn_->handle();
  std::vector<void*> raw;
  for (const Descriptor& operation : operations) raw.push_back(operation.get());
  LLMPROF_LET(const Descriptor graph,
              make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
                   {{kGraphHandle, CUDNN_TYPE_HANDLE, 1, &handle},
                    {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(raw), raw.data()}}));
  std::vector<GraphPlan> found;
  std::string why = "its heuristics name none that is wanted";
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const auto configurations = proposals(graph, mode);
    if (!configurations) {
      why = configurations.error().message;
      continue;
    }
    const std::size_t most = std::min(enough, found.size() + kMostPlans);
    for (const Descriptor& configuration : *configurations) {
      if (found.size() >= most) break;
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
