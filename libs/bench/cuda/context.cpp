#include "bench/cuda/context.h"

#include <fmt/format.h>

#include <cuda.h>
#include <array>
#include <atomic>
#include <map>
#include <utility>

#include "base/asset.h"
#include "base/dynlib.h"
#include "base/errors.h"
#include "base/result.h"
#include "bench/cuda/events.h"

namespace llmprof::bench_kernels {
std::span<const base::Asset> assets();  // made by llmprof_embed_kernels
}

namespace llmprof::bench::cuda {

// The functions of CUDA's driver library that are called, by the names that both CUDA 12 and 13 drivers export.

// clang-format off
#define LLMPROF_DRIVER_CALLS(X) \
  X(init, cuInit) X(driver_version, cuDriverGetVersion) X(error_name, cuGetErrorName) \
  X(error_text, cuGetErrorString) X(device_count, cuDeviceGetCount) X(device, cuDeviceGet) \
  X(device_name, cuDeviceGetName) X(device_memory, cuDeviceTotalMem_v2) X(device_attribute, cuDeviceGetAttribute) \
  X(device_bus_id, cuDeviceGetPCIBusId) X(context_retain, cuDevicePrimaryCtxRetain) \
  X(context_release, cuDevicePrimaryCtxRelease_v2) X(context_reset, cuDevicePrimaryCtxReset_v2) \
  X(context_set_current, cuCtxSetCurrent) X(memory_info, cuMemGetInfo_v2) X(allocate, cuMemAlloc_v2) \
  X(free, cuMemFree_v2) X(host_allocate, cuMemHostAlloc) X(host_free, cuMemFreeHost) \
  X(host_pointer, cuMemHostGetDevicePointer_v2) X(copy_in, cuMemcpyHtoDAsync_v2) X(copy_out, cuMemcpyDtoHAsync_v2) \
  X(copy, cuMemcpyDtoDAsync_v2) X(set_bytes, cuMemsetD8Async) X(stream_create, cuStreamCreate) \
  X(stream_destroy, cuStreamDestroy_v2) X(stream_synchronize, cuStreamSynchronize) X(event_create, cuEventCreate) \
  X(event_destroy, cuEventDestroy_v2) X(event_record, cuEventRecord) X(event_synchronize, cuEventSynchronize) \
  X(event_elapsed_ms, cuEventElapsedTime) X(module_load, cuModuleLoadData) X(module_unload, cuModuleUnload) \
  X(module_function, cuModuleGetFunction) X(function_attribute, cuFuncSetAttribute) X(launch, cuLaunchKernel) \
  X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor) X(capture_begin, cuStreamBeginCapture_v2) \
  X(capture_end, cuStreamEndCapture) X(graph_instantiate, cuGraphInstantiateWithFlags) \
  X(graph_launch, cuGraphLaunch) X(graph_exec_destroy, cuGraphExecDestroy) X(graph_destroy, cuGraphDestroy)
// clang-format on
LLMPROF_API(DriverApi, LLMPROF_DRIVER_CALLS)

namespace {

Result<DriverApi> load_driver() {
  const std::string names[] = {"libcuda.so.1"};
  Result<DriverApi> api = base::load_api<DriverApi>(names, DriverApi::symbols());
  if (!api) {
    return Error{ErrorCode::kUnsupported, "no CUDA driver: " + api.error().message,
                 "on a machine with an NVIDIA GPU install its driver; without one, use --device cpu"};
  }
  if (const CUresult result = api->init(0); result != CUDA_SUCCESS) {
    const char* name = "unknown";
    api->error_name(result, &name);
    return Error{ErrorCode::kUnsupported, fmt::format("the CUDA driver does not start: {}", name),
                 "`nvidia-smi` tells whether the GPU is visible here; without one, use --device cpu"};
  }
  return api;
}

// Loaded and initialised once; the same answer every time.
const Result<DriverApi>& driver() {
  static const Result<DriverApi> api = load_driver();
  return api;
}

// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY, out of memory"
Error cuda_error(CUresult result, std::string_view call) {
  const char *name = "unknown error", *text = "";
  if (driver()) {
    driver()->error_name(result, &name);
    driver()->error_text(result, &text);
  }
  const bool unsupported = result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_NOT_SUPPORTED ||
                           result == CUDA_ERROR_NO_BINARY_FOR_GPU;
  return {unsupported ? ErrorCode::kUnsupported : ErrorCode::kInternal, fmt::format("{}: {}, {}", call, name, text),
          result == CUDA_ERROR_NO_BINARY_FOR_GPU
              ? "this build has no kernels for this GPU: configure it here, or with -DLLMPROF_CUDA_TARGETS='75;80;90'"
              : ""};
}

Result<void> checked(CUresult result, std::string_view call) {
  if (result == CUDA_SUCCESS) return {};
  return cuda_error(result, call);
}

Result<Properties> read_properties(const DriverApi& api, CUdevice device) {
  Properties p;
  std::array<char, 128> name{};
  LLMPROF_TRY(checked(api.device_name(name.data(), name.size(), device), "cuDeviceGetName"));
  p.name = name.data();
  if (api.device_bus_id(name.data(), name.size(), device) == CUDA_SUCCESS) p.bus_id = name.data();
  std::size_t bytes = 0;
  LLMPROF_TRY(checked(api.device_memory(&bytes, device), "cuDeviceTotalMem"));
  p.memory_bytes = static_cast<std::int64_t>(bytes);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return api.device_attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
  };
  p.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  p.minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  p.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  p.shared_bytes_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  p.shared_bytes_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  p.clock_mhz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000.0;
  api.driver_version(&p.driver_version);
  return p;
}

constexpr std::uint64_t kDeadlineNs = 250'000'000;
constexpr std::size_t kGo = 0, kGaveUp = 16;  // a cache line apart

}  // namespace

struct Context::State {
  const DriverApi* api = nullptr;
  CUdevice device = 0;
  Properties properties;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  bool retained = false;
  bool broken = false;
  std::vector<CUmodule> modules;  // all of ours, loaded with the first kernel
  std::map<std::string, CUfunction, std::less<>> functions;
  std::shared_ptr<Blas> blas;
  std::shared_ptr<Dnn> dnn;

  Result<void> check(CUresult result, std::string_view call) {
    if (result == CUDA_SUCCESS) return {};
    // After these the context answers everything with the same error.
    broken = broken || result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_FAILED ||
             result == CUDA_ERROR_LAUNCH_TIMEOUT || result == CUDA_ERROR_MISALIGNED_ADDRESS ||
             result == CUDA_ERROR_ILLEGAL_INSTRUCTION || result == CUDA_ERROR_INVALID_ADDRESS_SPACE ||
             result == CUDA_ERROR_INVALID_PC || result == CUDA_ERROR_ASSERT ||
             result == CUDA_ERROR_HARDWARE_STACK_ERROR;
    return cuda_error(result, call);
  }

  Result<CUfunction> function(std::string_view name);
  Result<void> load_modules();
};

Result<int> Context::device_count() {
  if (!driver()) return driver().error();
  int count = 0;
  LLMPROF_TRY(checked(driver()->device_count(&count), "cuDeviceGetCount"));
  return count;
}

Result<std::unique_ptr<Context>> Context::open(int index) {
  LLMPROF_LET(const int count, device_count());
  if (index < 0 || index >= count) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("there is no GPU cuda:{}; the driver reports {}", index,
                             count == 1 ? "one" : std::to_string(count)),
                 count == 0 ? "use --device cpu" : "the first is cuda:0"};
  }
  const DriverApi& api = *driver();
  auto state = std::make_unique<State>();
  state->api = &api;
  LLMPROF_TRY(checked(api.device(&state->device, index), "cuDeviceGet"));
  LLMPROF_LET(state->properties, read_properties(api, state->device));
  // The primary context: cuBLAS and cuDNN work in the same one.
  CUcontext context = nullptr;
  LLMPROF_TRY(checked(api.context_retain(&context, state->device), "cuDevicePrimaryCtxRetain"));
  state->retained = true;
  std::unique_ptr<Context> opened(new Context(std::move(state)));  // releases what follows if it fails
  State& s = *opened->state_;
  LLMPROF_TRY(checked(api.context_set_current(context), "cuCtxSetCurrent"));
  LLMPROF_TRY(checked(api.stream_create(&s.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  LLMPROF_TRY(checked(api.event_create(&s.begin, CU_EVENT_DEFAULT), "cuEventCreate"));
  LLMPROF_TRY(checked(api.event_create(&s.end, CU_EVENT_DEFAULT), "cuEventCreate"));
  return opened;
}

Context::Context(std::unique_ptr<State> state) : state_(std::move(state)) {}

Context::~Context() {
  State& s = *state_;
  s.blas.reset();
  s.dnn.reset();
  if (!s.broken) {
    if (s.stream != nullptr) s.api->stream_synchronize(s.stream);
    for (CUmodule module : s.modules) s.api->module_unload(module);
    if (s.begin != nullptr) s.api->event_destroy(s.begin);
    if (s.end != nullptr) s.api->event_destroy(s.end);
    if (s.stream != nullptr) s.api->stream_destroy(s.stream);
  }
  if (s.broken) s.api->context_reset(s.device);  // a fault stays until the context is made anew
  if (s.retained) s.api->context_release(s.device);
}

const Properties& Context::properties() const { return state_->properties; }
Stream Context::stream() const { return reinterpret_cast<Stream>(state_->stream); }
bool Context::broken() const { return state_->broken; }

Result<void> Context::synchronize() {
  return state_->check(state_->api->stream_synchronize(state_->stream), "cuStreamSynchronize");
}

Buffer::~Buffer() {
  if (*context_ != nullptr && !context_->state_->broken) context_->state_->api->free(pointer_);
}

Result<Buffer> Context::allocate(std::int64_t bytes) {
  Buffer buffer;
  if (bytes <= 0) return buffer;
  CUdeviceptr pointer = 0;
  if (const CUresult result = state_->api->allocate(&pointer, static_cast<std::size_t>(bytes));
      result != CUDA_SUCCESS) {
    LLMPROF_TRY(state_->check(result, fmt::format("cuMemAlloc of {} bytes", bytes)));
  }
  buffer.context_ = this;
  buffer.pointer_ = pointer;
  buffer.bytes_ = bytes;
  return buffer;
}

Result<std::int64_t> Context::free_bytes() {
  std::size_t free = 0, total = 0;
  LLMPROF_TRY(state_->check(state_->api->memory_info(&free, &total), "cuMemGetInfo"));
  return static_cast<std::int64_t>(free);
}

Result<void> Context::copy_in(Pointer to, const void* from, std::int64_t bytes) {
  if (bytes <= 0) return {};
  LLMPROF_TRY(
      state_->check(state_->api->copy_in(to, from, static_cast<std::size_t>(bytes), state_->stream), "cuMemcpyHtoD"));
  return synchronize();
}

Result<void> Context::copy_out(void* to, Pointer from, std::int64_t bytes) {
  if (bytes <= 0) return {};
  LLMPROF_TRY(
      state_->check(state_->api->copy_out(to, from, static_cast<std::size_t>(bytes), state_->stream), "cuMemcpyDtoH"));
  return synchronize();
}

Result<void> Context::copy(Pointer to, Pointer from, std::int64_t bytes) {
  if (bytes <= 0) return {};
  return state_->check(state_->api->copy(to, from, static_cast<std::size_t>(bytes), state_->stream), "cuMemcpyDtoD");
}

Result<void> Context::set_bytes(Pointer to, std::uint8_t value, std::int64_t bytes) {
  if (bytes <= 0) return {};
  return state_->check(state_->api->set_bytes(to, value, static_cast<std::size_t>(bytes), state_->stream),
                       "cuMemsetD8");
}

Result<void> Context::State::load_modules() {
  for (const base::Asset& asset : bench_kernels::assets()) {
    CUmodule module = nullptr;
    LLMPROF_TRY(check(api->module_load(&module, asset.bytes.data()), fmt::format("loading {}", asset.path)));
    modules.push_back(module);
  }
  return {};
}

Result<CUfunction> Context::State::function(std::string_view name) {
  if (const auto found = functions.find(name); found != functions.end()) return found->second;
  if (modules.empty()) LLMPROF_TRY(load_modules());
  const std::string text(name);
  for (CUmodule module : modules) {
    CUfunction function = nullptr;
    if (api->module_function(&function, module, text.c_str()) == CUDA_SUCCESS) {
      functions.emplace(text, function);
      return function;
    }
  }
  return unsupported_error("this build has no kernel {}", name);
}

Result<void> Context::launch(std::string_view kernel, const Launch& launch, std::initializer_list<Argument> arguments) {
  constexpr std::int64_t kMostBlocksX = 0x7fffffff, kMostBlocksYZ = 65535, kPlainSharedBytes = 48 * 1024;
  if (launch.grid_x < 1 || launch.grid_x > kMostBlocksX || launch.grid_y < 1 || launch.grid_y > kMostBlocksYZ ||
      launch.grid_z < 1 || launch.grid_z > kMostBlocksYZ) {
    return unsupported_error("{}: a grid of {} x {} x {} blocks is more than a GPU takes", kernel, launch.grid_x,
                             launch.grid_y, launch.grid_z);
  }
  LLMPROF_LET(CUfunction function, state_->function(kernel));
  if (launch.shared_bytes > kPlainSharedBytes) {
    LLMPROF_TRY(state_->check(state_->api->function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                              static_cast<int>(launch.shared_bytes)),
                              fmt::format("{} bytes of shared memory for {}", launch.shared_bytes, kernel)));
  }
  std::array<void*, 32> pointers{};
  if (arguments.size() > pointers.size()) return Error{ErrorCode::kInternal, "too many arguments of a kernel", ""};
  std::size_t count = 0;
  for (const Argument& argument : arguments) pointers[count++] = const_cast<void*>(argument.data);
  const auto size = [](std::int64_t value) { return static_cast<unsigned>(value); };
  return state_->check(state_->api->launch(function, size(launch.grid_x), size(launch.grid_y), size(launch.grid_z),
                                           size(launch.block_x), size(launch.block_y), size(launch.block_z),
                                           size(launch.shared_bytes), state_->stream, pointers.data(), nullptr),
                       kernel);
}

Result<int> Context::blocks_per_multiprocessor(std::string_view kernel, int block_threads, std::int64_t shared_bytes) {
  LLMPROF_LET(CUfunction function, state_->function(kernel));
  int blocks = 0;
  LLMPROF_TRY(state_->check(
      state_->api->occupancy(&blocks, function, block_threads, static_cast<std::size_t>(shared_bytes)), kernel));
  return blocks;
}

Result<double> Context::time(const std::function<Result<void>()>& enqueue) {
  State& s = *state_;
  LLMPROF_TRY(s.check(s.api->event_record(s.begin, s.stream), "cuEventRecord"));
  LLMPROF_TRY(enqueue());
  LLMPROF_TRY(s.check(s.api->event_record(s.end, s.stream), "cuEventRecord"));
  LLMPROF_TRY(s.check(s.api->event_synchronize(s.end), "cuEventSynchronize"));
  float milliseconds = 0;
  LLMPROF_TRY(s.check(s.api->event_elapsed_ms(&milliseconds, s.begin, s.end), "cuEventElapsedTime"));
  return milliseconds * 1e-3;
}

Context::Graph::~Graph() {
  if (*context_ == nullptr || context_->state_->broken) return;
  context_->state_->api->graph_exec_destroy(static_cast<CUgraphExec>(*executable_));
}

Result<void> Context::Graph::launch() {
  State& s = *context_->state_;
  return s.check(s.api->graph_launch(static_cast<CUgraphExec>(*executable_), s.stream), "cuGraphLaunch");
}

Result<Context::Graph> Context::capture(const std::function<Result<void>()>& enqueue) {
  State& s = *state_;
  LLMPROF_TRY(s.check(s.api->capture_begin(s.stream, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture"));
  const Result<void> enqueued = enqueue();
  CUgraph captured = nullptr;
  const CUresult ended = s.api->capture_end(s.stream, &captured);  // also after an error: the stream must leave capture
  if (!enqueued || ended != CUDA_SUCCESS) {
    if (captured != nullptr) s.api->graph_destroy(captured);
    if (!enqueued) return enqueued.error();
    return cuda_error(ended, "cuStreamEndCapture");
  }
  CUgraphExec executable = nullptr;
  const CUresult made = s.api->graph_instantiate(&executable, captured, 0);
  s.api->graph_destroy(captured);
  LLMPROF_TRY(s.check(made, "cuGraphInstantiate"));
  Graph graph;
  graph.context_ = this;
  graph.executable_ = executable;
  return graph;
}

Result<Blas*> Context::blas() {
  if (state_->blas == nullptr) {
    LLMPROF_LET(state_->blas, open_blas(*this));
  }
  return state_->blas.get();
}

Result<Dnn*> Context::dnn() {
  if (state_->dnn == nullptr) {
    LLMPROF_LET(state_->dnn, open_dnn(*this));
  }
  return state_->dnn.get();
}

Result<EventPairs> EventPairs::create(Context& context, std::size_t pairs) {
  EventPairs created;
  created.context_ = &context;
  for (std::size_t i = 0; i < 2 * pairs; ++i) {
    CUevent event = nullptr;
    LLMPROF_TRY(checked(driver()->event_create(&event, CU_EVENT_DEFAULT), "cuEventCreate"));
    (*created.events_).push_back(event);
  }
  return created;
}

EventPairs::~EventPairs() {
  if ((*events_).empty() || context_->broken()) return;
  for (void* event : *events_) driver()->event_destroy(static_cast<CUevent>(event));
}

Result<void> EventPairs::record(std::size_t event) {
  return checked(driver()->event_record(static_cast<CUevent>((*events_).at(event)),
                                        reinterpret_cast<CUstream>(context_->stream())),
                 "cuEventRecord");
}

Result<double> EventPairs::seconds(std::size_t pair) const {
  float milliseconds = 0;
  LLMPROF_TRY(checked(driver()->event_elapsed_ms(&milliseconds, static_cast<CUevent>((*events_).at(2 * pair)),
                                                 static_cast<CUevent>((*events_).at(2 * pair + 1))),
                      "cuEventElapsedTime"));
  return milliseconds * 1e-3;
}

Result<PinnedBuffer> PinnedBuffer::allocate(std::int64_t bytes) {
  if (!driver()) return driver().error();
  void* data = nullptr;
  LLMPROF_TRY(checked(driver()->host_allocate(&data, static_cast<std::size_t>(bytes), 0), "cuMemHostAlloc"));
  return PinnedBuffer(data);
}

PinnedBuffer::~PinnedBuffer() {
  if (*data_ != nullptr) (void)driver()->host_free(data_);
}

Result<LaunchGate> LaunchGate::create(Context& context) {
  LaunchGate gate;
  void* memory = nullptr;
  LLMPROF_TRY(checked(driver()->host_allocate(&memory, 128, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc"));
  gate.context_ = &context;
  gate.flags_ = static_cast<volatile std::uint32_t*>(memory);
  (*gate.flags_)[kGo] = 1;
  (*gate.flags_)[kGaveUp] = 0;
  CUdeviceptr pointer = 0;
  LLMPROF_TRY(checked(driver()->host_pointer(&pointer, memory, 0), "cuMemHostGetDevicePointer"));
  gate.device_flags_ = pointer;
  return gate;
}

LaunchGate::~LaunchGate() {
  if (*flags_ == nullptr) return;
  open();
  if (context_->broken()) return;
  static_cast<void>(context_->synchronize());  // the kernel reads the flags to its end
  driver()->host_free(const_cast<std::uint32_t*>(*flags_));
}

Result<void> LaunchGate::close() {
  (*flags_)[kGo] = 0;
  (*flags_)[kGaveUp] = 0;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const Pointer go = device_flags_ + kGo * sizeof(std::uint32_t);
  const Pointer gave_up = device_flags_ + kGaveUp * sizeof(std::uint32_t);
  return context_->launch("llmprof_timing_wait", {}, {go, gave_up, kDeadlineNs});
}

void LaunchGate::open() {
  if (*flags_ == nullptr) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  (*flags_)[kGo] = 1;
}

bool LaunchGate::gave_up() const { return *flags_ != nullptr && (*flags_)[kGaveUp] != 0; }

}  // namespace llmprof::bench::cuda
