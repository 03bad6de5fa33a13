// A build without CUDA's headers or compiler: every way in answers so, and nothing else is ever reached.

#include "bench/cuda/blas.h"
#include "bench/cuda/context.h"
#include "bench/cuda/cupti.h"
#include "bench/cuda/events.h"

namespace llmprof::bench::cuda {

namespace {

Error no_cuda() {
  return {ErrorCode::kUnsupported, "this llmprof was built without CUDA",
          "build it where nvcc is found (CUDA_HOME), or use --device cpu"};
}

}  // namespace

struct Context::State {};

Result<std::unique_ptr<Context>> Context::open(int) { return no_cuda(); }
Result<int> Context::device_count() { return no_cuda(); }
Context::Context(std::unique_ptr<State> state) : state_(std::move(state)) {}
Context::~Context() = default;
const Properties& Context::properties() const {
  static const Properties none;
  return none;
}
Stream Context::stream() const { return nullptr; }
bool Context::broken() const { return true; }
Result<void> Context::synchronize() { return no_cuda(); }
Result<Buffer> Context::allocate(std::int64_t) { return no_cuda(); }
Result<std::int64_t> Context::free_bytes() { return no_cuda(); }
Result<void> Context::copy_in(Pointer, const void*, std::int64_t) { return no_cuda(); }
Result<void> Context::copy_out(void*, Pointer, std::int64_t) { return no_cuda(); }
Result<void> Context::copy(Pointer, Pointer, std::int64_t) { return no_cuda(); }
Result<void> Context::set_bytes(Pointer, std::uint8_t, std::int64_t) { return no_cuda(); }
Result<void> Context::launch(std::string_view, const Launch&, std::initializer_list<Argument>) { return no_cuda(); }
Result<int> Context::blocks_per_multiprocessor(std::string_view, int, std::int64_t) { return no_cuda(); }
Result<double> Context::time(const std::function<Result<void>()>&) { return no_cuda(); }
Result<Context::Graph> Context::capture(const std::function<Result<void>()>&) { return no_cuda(); }
Result<Blas*> Context::blas() { return no_cuda(); }
Result<Dnn*> Context::dnn() { return no_cuda(); }

Context::Graph::~Graph() = default;
Result<void> Context::Graph::launch() { return no_cuda(); }

Buffer::~Buffer() = default;

struct CuptiApi {};
Cupti::~Cupti() = default;
Result<Cupti*> Cupti::get() { return no_cuda(); }
Result<void> Cupti::start() { return no_cuda(); }
Result<std::vector<Activity>> Cupti::stop() { return no_cuda(); }

Result<EventPairs> EventPairs::create(Context&, std::size_t) { return no_cuda(); }
EventPairs::~EventPairs() = default;
Result<void> EventPairs::record(std::size_t) { return no_cuda(); }
Result<double> EventPairs::seconds(std::size_t) const { return no_cuda(); }

Result<LaunchGate> LaunchGate::create(Context&) { return no_cuda(); }
LaunchGate::~LaunchGate() = default;
Result<void> LaunchGate::close() { return no_cuda(); }
void LaunchGate::open() {}
bool LaunchGate::gave_up() const { return false; }

struct BlasState {
  std::string text;
};

Blas::Blas(std::unique_ptr<BlasState> state) : state_(std::move(state)) {}
Blas::~Blas() = default;
const std::string& Blas::version() const { return state_->text; }
Result<PreparedMatmul> Blas::prepare(const Matmul&, const Search&) { return no_cuda(); }
Result<PreparedMatmul> Blas::prepare_grouped(const GroupedMatmul&) { return no_cuda(); }

Result<PinnedBuffer> PinnedBuffer::allocate(std::int64_t) { return no_cuda(); }
PinnedBuffer::~PinnedBuffer() = default;

}  // namespace llmprof::bench::cuda
