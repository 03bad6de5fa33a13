#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/cuda/sampler.h"
#include "bench/roofline/cuda.h"
#include "bench/statistics.h"
#include "hw/gpu_usage.h"

namespace llmprof::bench {
namespace {

using Clock = std::chrono::steady_clock;

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
