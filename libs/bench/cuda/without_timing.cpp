// A build without CUDA: what of the timing calls the driver. Never reached, because no Context opens.

#include "bench/cuda/cupti.h"
#include "bench/cuda/events.h"
#include "bench/cuda/launch_gate.h"

namespace llmprof::bench::cuda {
namespace {

Error no_cuda() { return {ErrorCode::kUnsupported, "this llmprof was built without CUDA", ""}; }

}  // namespace

struct CuptiApi {};
Cupti::~Cupti() = default;
Result<Cupti*> Cupti::get() { return no_cuda(); }
Result<void> Cupti::start() { return no_cuda(); }
Result<std::vector<Activity>> Cupti::stop() { return no_cuda(); }

Result<EventPairs> EventPairs::create(Context&, std::size_t) { return no_cuda(); }
EventPairs::EventPairs(EventPairs&&) noexcept = default;
EventPairs& EventPairs::operator=(EventPairs&&) noexcept = default;
EventPairs::~EventPairs() = default;
Result<void> EventPairs::record(std::size_t) { return no_cuda(); }
Result<double> EventPairs::seconds(std::size_t) const { return no_cuda(); }

Result<LaunchGate> LaunchGate::create(Context&) { return no_cuda(); }
LaunchGate::LaunchGate(LaunchGate&&) noexcept = default;
LaunchGate& LaunchGate::operator=(LaunchGate&&) noexcept = default;
LaunchGate::~LaunchGate() = default;
Result<void> LaunchGate::close() { return no_cuda(); }
void LaunchGate::open() {}
bool LaunchGate::gave_up() const { return false; }

}  // namespace llmprof::bench::cuda
