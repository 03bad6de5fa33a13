// Bandwidths of a GPU: its memory, its L2 cache, the shared memory of its multiprocessors.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "base/human.h"
#include "bench/cuda/events.h"
#include "bench/cuda/sampler.h"
#include "bench/roofline/cuda.h"
#include "bench/statistics.h"
#include "hw/gpu/usage.h"

namespace llmprof::bench {

namespace {

constexpr std::int64_t kThreads = 256, kVectorBytes = 16;
constexpr std::int64_t kBlockBytes = kThreads * 4 * kVectorBytes;  // what a block of a stream moves: roofline.cu
constexpr std::uint32_t kNever = 0x9e3779b9;                       // what folded random data is not, but for chance

Result<cuda::Buffer> random_buffer(cuda::Context& context, std::int64_t bytes, std::uint64_t seed) {
  const TensorSpec spec{.name = "stream", .type = Type::kFloat32, .elements = bytes / 4};
  LLMPROF_LET(cuda::Buffer buffer, context.allocate(bytes));
  LLMPROF_TRY(cuda::fill_random(context, buffer.pointer(), spec, seed));
  return buffer;
}

// Of each array: far larger than the L2 cache, and a few fit the free memory.
Result<std::int64_t> array_bytes(cuda::Context& context) {
  constexpr std::int64_t kMost = 4ll << 30;
  LLMPROF_LET(const std::int64_t free, context.free_bytes());
  const std::int64_t bytes = std::min(kMost, free / 8) / kBlockBytes * kBlockBytes;
  if (bytes < 8 * context.properties().l2_bytes || bytes == 0) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("only {} of the GPU's memory are free", base::human_bytes(static_cast<double>(free))),
                 "end what uses the GPU"};
  }
  return bytes;
}

hw::Peak bandwidth(std::string type, double bytes_per_second, std::string method) {
  return hw::measured_peak("bandwidth", std::move(type), bytes_per_second, "B/s", std::move(method));
}

struct Streams {
  cuda::Context& context;
  std::int64_t bytes = 0;  // of each array
  cuda::Buffer a, b, c;

  Result<void> launch(const char* kernel, std::initializer_list<cuda::Argument> arguments) const {
    return context.launch(kernel, {.grid_x = bytes / kBlockBytes, .block_x = kThreads}, arguments);
  }
};

struct StreamKind {
  const char* type;
  double arrays;     // moved: a copy reads one and writes one
  const char* what;  // "kernel with 16-byte loads"
  std::function<Result<void>(const Streams&)> enqueue;
};

std::vector<StreamKind> stream_kinds() {
  return {
      {"read", 1, "fold",
       [](const Streams& s) {
         return s.launch("roofline_read", {s.a.pointer(), s.c.pointer(), kNever});
       }},
      {"write", 1, "fill",
       [](const Streams& s) {
         return s.launch("roofline_write", {s.c.pointer(), kNever});
       }},
      {"write", 1, "driver's memset", [](const Streams& s) { return s.context.set_bytes(s.c.pointer(), 1, s.bytes); }},
      {"copy", 2, "copy",
       [](const Streams& s) {
         return s.launch("roofline_copy", {s.c.pointer(), s.a.pointer()});
       }},
      {"copy", 2, "driver's copy",
       [](const Streams& s) { return s.context.copy(s.c.pointer(), s.a.pointer(), s.bytes); }},
      {"triad", 3, "a + b / 2",
       [](const Streams& s) {
         return s.launch("roofline_triad", {s.c.pointer(), s.a.pointer(), s.b.pointer()});
       }},
  };
}

// Of two ways to move the same bytes the faster one counts.
void keep_best(std::vector<hw::PeakRow>& rows, hw::Peak peak) {
  for (hw::PeakRow& row : rows) {
    if (row.peak.type != peak.type) continue;
    if (peak.value > row.peak.value) row.peak = std::move(peak);
    return;
  }
  rows.push_back({std::move(peak), ""});
}

Result<std::vector<hw::PeakRow>> measure_streams(cuda::Context& context, double seconds, const GoOn& go_on) {
  LLMPROF_LET(const std::int64_t bytes, array_bytes(context));
  Streams streams{.context = context, .bytes = bytes};
  LLMPROF_LET(streams.a, random_buffer(context, bytes, 1));
  LLMPROF_LET(streams.b, random_buffer(context, bytes, 2));
  LLMPROF_LET(streams.c, context.allocate(bytes));
  std::vector<hw::PeakRow> rows;
  for (const StreamKind& kind : stream_kinds()) {
    const Load load{.enqueue = [&]() { return kind.enqueue(streams); }, .seconds = seconds};
    LLMPROF_LET(const Sustained run, sustain(context, load, go_on));
    const double moved = kind.arrays * static_cast<double>(bytes);
    keep_best(rows, bandwidth(kind.type, moved / run.seconds,
                              fmt::format("{}, arrays of {}, random data, {}", kind.what,
                                          base::human_bytes(static_cast<double>(bytes)), sustained_text(run))));
  }
  return rows;
}

Result<hw::Peak> measure_l2(cuda::Context& context, double seconds, const GoOn& go_on) {
  const cuda::Properties& gpu = context.properties();
  constexpr std::int64_t kBlock = 512, kBlocksPerMultiprocessor = 2;
  constexpr int kPasses = 64;
  const std::int64_t step = gpu.multiprocessors * kBlocksPerMultiprocessor * kBlock * 4;  // vectors of all threads, x4
  // A quarter of the cache, but at least one step of all threads.
  const std::int64_t vectors = std::max<std::int64_t>(1, gpu.l2_bytes / 4 / kVectorBytes / step) * step;
  if (vectors * kVectorBytes > gpu.l2_bytes / 2) {
    return unsupported_error("the L2 cache of {} is too small to be told from the memory",
                             base::human_bytes(static_cast<double>(gpu.l2_bytes)));
  }
  LLMPROF_LET(const cuda::Buffer data, random_buffer(context, vectors * kVectorBytes, 3));
  LLMPROF_LET(const cuda::Buffer out, context.allocate(256));
  const cuda::Launch launch{.grid_x = gpu.multiprocessors * kBlocksPerMultiprocessor, .block_x = kBlock};
  const Load load{.enqueue =
                      [&]() {
                        return context.launch("roofline_l2_read", launch,
                                              {data.pointer(), vectors, kPasses, out.pointer(), kNever});
                      },
                  .seconds = seconds};
  LLMPROF_LET(const Sustained run, sustain(context, load, go_on));
  const double bytes = static_cast<double>(vectors * kVectorBytes);
  return bandwidth("read, L2", kPasses * bytes / run.seconds,
                   fmt::format("{} of {}, read past the first-level caches, {}", base::human_bytes(bytes),
                               base::human_bytes(static_cast<double>(gpu.l2_bytes)), sustained_text(run)));
}

Result<hw::Peak> measure_shared(cuda::Context& context, double seconds, const GoOn& go_on) {
  const cuda::Properties& gpu = context.properties();
  constexpr std::int64_t kBlock = 512, kBlocksPerMultiprocessor = 2;
  constexpr int kRounds = 2000;
  LLMPROF_LET(const cuda::Buffer out, context.allocate(256));
  const cuda::Launch launch{.grid_x = gpu.multiprocessors * kBlocksPerMultiprocessor, .block_x = kBlock};
  const Load load{.enqueue =
                      [&]() {
                        return context.launch("roofline_shared_read", launch, {out.pointer(), kRounds, kNever});
                      },
                  .seconds = seconds};
  LLMPROF_LET(const Sustained run, sustain(context, load, go_on));
  const double bytes = 16.0 * kVectorBytes * kRounds * static_cast<double>(launch.grid_x * kBlock);
  return bandwidth("read, shared memory", bytes / run.seconds,
                   fmt::format("16-byte loads without conflicts on {} multiprocessors, {}", gpu.multiprocessors,
                               sustained_text(run)));
}

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
  return hw::measured_peak(
      "bandwidth", transfer.type(), static_cast<double>(kBytes) / statistics(copies).median, "B/s",
      fmt::format("median of {} copies of {}", copies.size(), base::human_bytes(static_cast<double>(kBytes))));
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
  return hw::measured_peak("latency", std::move(type), seconds, "s", std::move(method));
}

constexpr double kBatchSeconds = 0.01;  // the gaps between calls in it are microseconds, the events around it too
constexpr auto kPause = std::chrono::milliseconds(30);

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Result<double> time_calls(cuda::Context& context, const Load& load, std::int64_t calls) {
  LLMPROF_LET(const double seconds, context.time([&]() -> Result<void> {
    for (std::int64_t i = 0; i < calls; ++i) LLMPROF_TRY(load.enqueue());
    return {};
  }));
  return seconds / static_cast<double>(calls);
}

// NVML is asked while calls run, the clock is read right behind them.
Result<void> read_clock(cuda::Context& context, const Load& load, double call_seconds, Sustained& run) {
  const double seconds = load.pauses ? kBatchSeconds : 4 * kBatchSeconds;
  if (load.pauses) std::this_thread::sleep_for(kPause);
  const auto calls = static_cast<std::int64_t>(std::ceil(seconds / std::max(call_seconds, 1e-6)));
  for (std::int64_t i = 0; i < calls; ++i) LLMPROF_TRY(load.enqueue());
  if (const Result<hw::GpuUsage> usage = hw::gpu_usage(context.properties().bus_id)) {
    for (const std::string& limit : usage->clock_limits) run.limits += (run.limits.empty() ? "" : ", ") + limit;
  }
  if (const Result<double> mhz = cuda::clock_mhz(context)) run.clock_mhz = *mhz;
  return context.synchronize();
}

}  // namespace

std::vector<RooflineStep> cuda_memory_steps(cuda::Context& context, const RooflineOptions& options) {
  const double seconds = options.quick ? 0.1 : 0.5;
  return {{"memory bandwidth", 6 * (seconds + 0.06) + 0.1, wanted_peak("bandwidth", "read", "B/s"),
           [&context, seconds](const GoOn& go_on) { return measure_streams(context, seconds, go_on); }},
          {"L2 bandwidth", seconds + 0.06, wanted_peak("bandwidth", "read, L2", "B/s"),
           one_peak([&context, seconds](const GoOn& go_on) { return measure_l2(context, seconds, go_on); })},
          {"shared-memory bandwidth", seconds + 0.06, wanted_peak("bandwidth", "read, shared memory", "B/s"),
           one_peak([&context, seconds](const GoOn& go_on) { return measure_shared(context, seconds, go_on); })}};
}

// Copies between host and GPU, and what a launch costs.

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

std::vector<hw::Peak> launch_latencies(const cuda::LaunchCost& cost) {
  return {latency("kernel launch", cost.host_seconds, "host time to enqueue one empty kernel"),
          latency("kernel after kernel", cost.device_seconds, "between ends of empty kernels queued back to back"),
          latency("graph launch, per node", cost.graph_node_seconds, "replayed graph of empty kernels")};
}

std::vector<RooflineStep> cuda_launch_steps(cuda::Context& context) {
  RooflineStep step{.name = "launches", .seconds = 0.5, .wanted = latency("kernel launch", 0, "")};
  step.run = [&context](const GoOn&) -> Result<std::vector<hw::PeakRow>> {
    LLMPROF_LET(const cuda::LaunchCost cost, cuda::launch_cost(context));
    std::vector<hw::PeakRow> rows;
    for (const hw::Peak& peak : launch_latencies(cost)) rows.push_back({peak, ""});
    return rows;
  };
  return {step};
}

Result<Sustained> sustain(cuda::Context& context, const Load& load, const GoOn& go_on) {
  LLMPROF_TRY(time_calls(context, load, 1));  // loads what is loaded on first use
  LLMPROF_LET(const double first, time_calls(context, load, 1));
  const auto calls =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kBatchSeconds / std::max(first, 1e-7)), 1, 10'000);
  std::vector<double> batches;
  Sustained run{.pauses = load.pauses};
  for (const auto begin = Clock::now(); batches.size() < load.least_batches || seconds_since(begin) < load.seconds;) {
    if (!go_on()) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    if (load.pauses) std::this_thread::sleep_for(kPause);
    LLMPROF_LET(const double seconds, time_calls(context, load, calls));
    batches.push_back(seconds);
  }
  run.seconds = statistics(batches).median;
  run.batches = batches.size();
  if (load.clock) LLMPROF_TRY(read_clock(context, load, run.seconds, run));
  return run;
}

std::string sustained_text(const Sustained& run) {
  std::string text = fmt::format("median of {} batches of 10 ms{}", run.batches, run.pauses ? " with pauses" : "");
  if (run.clock_mhz > 0) text += fmt::format(", at {:.0f} MHz", run.clock_mhz);
  if (!run.limits.empty()) text += fmt::format(" ({})", run.limits);
  return text;
}

}  // namespace llmprof::bench
