// Copies between host and GPU, and what a launch costs.

#include <fmt/format.h>

#include <chrono>
#include <vector>

#include "base/human.h"
#include "bench/cuda/events.h"
#include "bench/cuda/sampler.h"
#include "bench/roofline/cuda.h"
#include "bench/statistics.h"

namespace llmprof::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBytes = 256ll << 20;
constexpr std::size_t kLeastCopies = 5;

struct Transfer {
  bool to_device = true;
  bool pinned = true;
  std::string type() const {
    return fmt::format("{}, {}", to_device ? "host to device" : "device to host", pinned ? "pinned" : "pageable");
  }
};

Result<hw::Peak> timed(cuda::Context& context, const Transfer& transfer, void* host, const cuda::Buffer& device,
                       double seconds, const GoOn& go_on) {
  std::vector<double> copies;
  const auto begin = Clock::now();
  // One more than is counted: the first touches pages and wakes the bus.
  while (copies.size() <= kLeastCopies || std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    if (!go_on()) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    const auto start = Clock::now();
    LLMPROF_TRY(transfer.to_device ? context.copy_in(device.pointer(), host, kBytes)
                                   : context.copy_out(host, device.pointer(), kBytes));
    copies.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  copies.erase(copies.begin());
  return hw::Peak{.quantity = "bandwidth",
                  .type = transfer.type(),
                  .value = static_cast<double>(kBytes) / statistics(copies).median,
                  .unit = "B/s",
                  .source = "measured",
                  .method = fmt::format("median of {} copies of {}", copies.size(),
                                        base::human_bytes(static_cast<double>(kBytes)))};
}

Result<hw::Peak> measure_transfer(cuda::Context& context, const Transfer& transfer, double seconds, const GoOn& go_on) {
  LLMPROF_LET(const cuda::Buffer device, context.allocate(kBytes));
  if (!transfer.pinned) {
    std::vector<std::byte> host(kBytes, std::byte{1});
    return timed(context, transfer, host.data(), device, seconds, go_on);
  }
  LLMPROF_LET(const cuda::PinnedBuffer host, cuda::PinnedBuffer::allocate(kBytes));
  return timed(context, transfer, host.data(), device, seconds, go_on);
}

hw::Peak latency(std::string type, double seconds, std::string method) {
  return {.quantity = "latency",
          .type = std::move(type),
          .value = seconds,
          .unit = "s",
          .source = "measured",
          .method = std::move(method)};
}

}  // namespace

std::vector<RooflineStep> cuda_transfer_steps(cuda::Context& context, const RooflineOptions& options) {
  const double seconds = options.quick ? 0.1 : 0.4;
  std::vector<RooflineStep> steps;
  for (const Transfer transfer :
       {Transfer{true, true}, Transfer{true, false}, Transfer{false, true}, Transfer{false, false}}) {
    steps.push_back({"copies, " + transfer.type(), seconds + 0.2, wanted_peak("bandwidth", transfer.type(), "B/s"),
                     one_peak([&context, transfer, seconds](const GoOn& go_on) {
                       return measure_transfer(context, transfer, seconds, go_on);
                     })});
  }
  return steps;
}

std::vector<RooflineStep> cuda_launch_steps(cuda::Context& context) {
  RooflineStep step{.name = "launches", .seconds = 0.5, .wanted = latency("kernel launch", 0, "")};
  step.run = [&context](const GoOn&) -> Result<std::vector<hw::PeakRow>> {
    LLMPROF_LET(const cuda::LaunchCost cost, cuda::launch_cost(context));
    return std::vector<hw::PeakRow>{
        {latency("kernel launch", cost.host_seconds, "host time to enqueue one empty kernel"), ""},
        {latency("kernel after kernel", cost.device_seconds, "between ends of empty kernels queued back to back"), ""},
        {latency("graph launch, per node", cost.graph_node_seconds, "replayed graph of empty kernels"), ""}};
  };
  return {step};
}

}  // namespace llmprof::bench
