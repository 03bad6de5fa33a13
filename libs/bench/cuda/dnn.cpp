#include "bench/cuda/dnn.h"
#include "base/dynlib.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

#include "base/cuda_libraries.h"

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
                 fmt::format("{} is cuDNN {}, this build knows {}", library.path, state.version, CUDNN_MAJOR), ""};
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

}  // namespace llmprof::bench::cuda
