#include "bench/cuda/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/cuda/clock.h"
#include "bench/cuda/cupti.h"
#include "bench/cuda/events.h"
#include "bench/statistics.h"

namespace llmprof::bench::cuda {

namespace {

// A stream takes about a thousand launches before the host must wait for the device; behind the gate that would be a
// deadlock until its deadline.
constexpr std::size_t kMostQueued = 256;
constexpr std::size_t kOwnLaunches = 5;      // flush, marker, events around each call
constexpr std::size_t kAssumedKernels = 16;  // of a call, where nobody counts them
constexpr std::size_t kMostSamples = 64;     // of a batch
constexpr std::size_t kEventsEvery = 4;      // batches: one of them by events, as the cross-check
constexpr int kMostLosses = 3;               // batches in a row that CUPTI may lose
constexpr int kMostTimesGateGaveUp = 2;

enum class By { kCupti, kEvents };

class Impl final : public GpuSampler {
 public:
  Impl(Context& context, Calls calls) : context_(context), calls_(std::move(calls)) {}

  Result<void> prepare(bool flush) {
    LLMPROF_LET(gate_, LaunchGate::create(context_));
    LLMPROF_LET(clock_, ClockProbe::create(context_));
    LLMPROF_LET(events_, EventPairs::create(context_, kMostSamples));
    if (flush) {
      LLMPROF_LET(flush_, CacheFlush::create(context_));
    }
    // Once without the gate: a first call may load code or allocate, which waits for the device.
    LLMPROF_TRY(calls_.enqueue(0));
    LLMPROF_TRY(context_.synchronize());
    const Result<Cupti*> cupti = Cupti::get();
    if (!cupti) {
      use_events(cupti.error());
      return {};
    }
    cupti_ = *cupti;
    // One sample alone tells how many kernels a call has: how many calls may be queued.
    const Result<std::vector<double>> first = batch(1, By::kCupti);
    if (!first && !lost_by_cupti_) return first.error();
    return {};
  }

  Result<std::vector<Sample>> next(std::size_t wanted) override {
    const std::size_t size = std::clamp<std::size_t>(wanted, 1, most_per_batch());
    if (cupti_ != nullptr && batches_ % kEventsEvery == 0) {
      LLMPROF_LET(const std::vector<double> seconds, batch(size, By::kEvents));
      by_events_.insert(by_events_.end(), seconds.begin(), seconds.end());
    }
    ++batches_;
    Result<std::vector<double>> seconds = batch(size, cupti_ != nullptr ? By::kCupti : By::kEvents);
    while (!seconds && lost_by_cupti_ && cupti_ != nullptr) {
      if (++losses_ == kMostLosses) use_events(seconds.error());
      seconds = batch(size, cupti_ != nullptr ? By::kCupti : By::kEvents);
    }
    LLMPROF_TRY(seconds);
    losses_ = 0;
    if (cupti_ == nullptr) by_events_.insert(by_events_.end(), seconds->begin(), seconds->end());
    LLMPROF_LET(const double mhz, clock_.mhz());
    std::vector<Sample> samples;
    for (const double time : *seconds) samples.push_back({.seconds = time, .clock_mhz = mhz});
    return samples;
  }

  std::string_view timer() const override { return cupti_ != nullptr ? "CUPTI" : "CUDA events"; }
  std::string why_no_cupti() const override { return why_no_cupti_; }
  std::optional<double> event_seconds() const override {
    if (by_events_.empty()) return std::nullopt;
    return statistics(by_events_).median;
  }

  const std::vector<std::string>& kernels() const override { return kernels_; }

 private:
  Result<std::vector<double>> batch(std::size_t size, By by) {
    lost_by_cupti_ = false;
    if (by == By::kEvents) {
      LLMPROF_TRY(finish(enqueue(size, by)));
      return read_events(size);
    }
    LLMPROF_TRY(lost_if_failed(cupti_->start()));
    const Result<void> finished = finish(enqueue(size, by));
    Result<std::vector<Activity>> activities = cupti_->stop();  // also after an error: it must not go on
    LLMPROF_TRY(finished);
    LLMPROF_TRY(lost_if_failed(activities));
    Result<std::vector<TimedCall>> calls = calls_of(std::move(*activities), size);
    LLMPROF_TRY(lost_if_failed(calls));
    std::vector<double> seconds;
    for (const TimedCall& call : *calls) seconds.push_back(call.seconds);
    if (kernels_.empty()) kernels_ = std::move(calls->front().kernels);
    return seconds;
  }

  // Behind the gate: [clock] then for each sample [flush] [marker] call, with events around it or without; [clock].
  Result<void> enqueue(std::size_t size, By by) {
    const OpensGate opens(gate_);
    if (gate_gave_up_ < kMostTimesGateGaveUp) LLMPROF_TRY(gate_.close());
    LLMPROF_TRY(clock_.begin());
    for (std::size_t i = 0; i < size; ++i) {
      if (flush_) LLMPROF_TRY(flush_->enqueue());
      LLMPROF_TRY(context_.launch(kMarkerKernel, {}, {}));
      if (by == By::kEvents) LLMPROF_TRY(events_.begin(i));
      LLMPROF_TRY(calls_.enqueue(next_set_));
      if (by == By::kEvents) LLMPROF_TRY(events_.end(i));
      next_set_ = (next_set_ + 1) % std::max<std::size_t>(calls_.sets, 1);
    }
    return clock_.end();
  }

  // Waits for the device, whatever became of queueing: what was queued still runs.
  Result<void> finish(const Result<void>& enqueued) {
    const Result<void> done = context_.synchronize();
    LLMPROF_TRY(enqueued);
    if (gate_gave_up_ < kMostTimesGateGaveUp && gate_.gave_up()) ++gate_gave_up_;
    return done;
  }

  Result<std::vector<double>> read_events(std::size_t size) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < size; ++i) {
      LLMPROF_LET(const double time, events_.seconds(i));
      seconds.push_back(time);
    }
    return seconds;
  }

  template <class T>
  const Result<T>& lost_if_failed(const Result<T>& result) {
    lost_by_cupti_ = !result;
    return result;
  }
  std::size_t most_per_batch() const {
    const std::size_t launches = kOwnLaunches + (kernels_.empty() ? kAssumedKernels : kernels_.size());
    return std::clamp<std::size_t>(kMostQueued / launches, 1, kMostSamples);
  }

  void use_events(const Error& why) {
    cupti_ = nullptr;
    why_no_cupti_ = why.message;
  }

  Context& context_;
  Calls calls_;
  Cupti* cupti_ = nullptr;
  std::string why_no_cupti_;
  std::optional<CacheFlush> flush_;
  LaunchGate gate_;
  ClockProbe clock_;
  EventPairs events_;
  std::size_t next_set_ = 0;
  std::size_t batches_ = 0;
  bool lost_by_cupti_ = false;  // the last batch ran, but its records are not all there
  int losses_ = 0;
  int gate_gave_up_ = 0;
  std::vector<double> by_events_;
  std::vector<std::string> kernels_;
};

constexpr std::int64_t kUnknownCacheBytes = std::int64_t{64} << 20;

constexpr int kKernels = 500;  // queued without the host having to wait
constexpr int kRounds = 11;

Result<void> launch_many(Context& context) {
  for (int i = 0; i < kKernels; ++i) LLMPROF_TRY(context.launch("llmprof_timing_empty", {}, {}));
  return {};
}

// Median over rounds, per kernel.
Result<double> median(const std::function<Result<double>()>& round) {
  std::vector<double> seconds;
  for (int i = 0; i < kRounds; ++i) {
    LLMPROF_LET(const double time, round());
    seconds.push_back(time / kKernels);
  }
  return statistics(seconds).median;
}

Result<double> host_round(Context& context) {
  const auto begin = std::chrono::steady_clock::now();
  LLMPROF_TRY(launch_many(context));
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  LLMPROF_TRY(context.synchronize());
  return spent.count();
}

Result<double> gated_round(Context& context, LaunchGate& gate, EventPairs& events,
                           const std::function<Result<void>()>& enqueue) {
  {
    const OpensGate opens(gate);
    LLMPROF_TRY(gate.close());
    LLMPROF_TRY(events.begin(0));
    LLMPROF_TRY(enqueue());
    LLMPROF_TRY(events.end(0));
  }
  LLMPROF_TRY(context.synchronize());
  return events.seconds(0);
}

// The time of a call inside a replayed graph.

constexpr double kGraphSeconds = 1e-3;  // of work in one graph: launching it is lost in that
constexpr std::int64_t kMostCalls = 256;
constexpr std::size_t kReplays = 4;  // between two events
constexpr std::size_t kMostRounds = 20;

// One round: queued behind the gate, so that the host's time to launch the graphs is not part of it.
Result<double> round(Context& context, Context::Graph& graph, LaunchGate& gate, EventPairs& events) {
  {
    const OpensGate opens(gate);
    LLMPROF_TRY(gate.close());
    LLMPROF_TRY(events.begin(0));
    for (std::size_t i = 0; i < kReplays; ++i) LLMPROF_TRY(graph.launch());
    LLMPROF_TRY(events.end(0));
  }
  LLMPROF_TRY(context.synchronize());
  return events.seconds(0);
}

constexpr std::uint32_t kMostMultiprocessors = 1024;
constexpr std::int64_t kHalfBytes = kMostMultiprocessors * sizeof(ClockStamp);

constexpr std::int64_t kMostPermuted = std::int64_t{1} << 27;
constexpr std::int64_t kPackBytes = 16, kBlockThreads = 256, kBlocksPerMultiprocessor = 32;

std::uint64_t mixed(std::uint64_t z) {  // the finaliser of splitmix64, as in fill.cu
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::uint64_t key_of(std::uint64_t seed) { return mixed(seed + 0x9e3779b97f4a7c15ull); }

Result<void> fill_permutation(Context& context, Pointer to, const TensorSpec& spec, std::uint64_t key) {
  if (spec.elements > kMostPermuted) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: a permutation of {} values is more than fits here", spec.name, spec.elements)};
  }
  std::vector<double> values(static_cast<std::size_t>(spec.elements));
  std::iota(values.begin(), values.end(), 0.0);
  for (std::size_t left = values.size(); left > 1; --left) {
    key += 0x9e3779b97f4a7c15ull;
    std::swap(values[left - 1], values[mixed(key) % left]);  // the bias of % is below 2^-36 here
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(spec.bytes()));
  encode(values, spec.type, bytes.data());
  return context.copy_in(to, bytes.data(), spec.bytes());
}

}  // namespace

Result<std::unique_ptr<GpuSampler>> GpuSampler::create(Context& context, Calls calls, bool flush) {
  auto sampler = std::make_unique<Impl>(context, std::move(calls));
  LLMPROF_TRY(sampler->prepare(flush));
  return std::unique_ptr<GpuSampler>(std::move(sampler));
}

Result<CacheFlush> CacheFlush::create(Context& context) {
  const std::int64_t cache = context.properties().l2_bytes > 0 ? context.properties().l2_bytes : kUnknownCacheBytes;
  CacheFlush flush;
  flush.context_ = &context;
  LLMPROF_LET(flush.buffer_, context.allocate(2 * cache));
  LLMPROF_TRY(context.set_bytes(flush.buffer_.pointer(), 0, flush.buffer_.bytes()));
  return flush;
}

Result<void> CacheFlush::enqueue() {
  const std::int64_t packs = buffer_.bytes() / kPackBytes;
  const Launch launch{.grid_x = std::max<std::int64_t>(context_->properties().multiprocessors, 1) * 4, .block_x = 512};
  return context_->launch("llmprof_timing_flush", launch, {buffer_.pointer(), packs});
}

Result<LaunchCost> launch_cost(Context& context) {
  LLMPROF_LET(LaunchGate gate, LaunchGate::create(context));
  LLMPROF_LET(EventPairs events, EventPairs::create(context, 1));
  LLMPROF_LET(Context::Graph graph, context.capture([&] { return launch_many(context); }));
  LLMPROF_TRY(graph.launch());
  LLMPROF_TRY(host_round(context));
  LaunchCost cost;
  LLMPROF_LET(cost.host_seconds, median([&] { return host_round(context); }));
  LLMPROF_LET(cost.device_seconds,
              median([&] { return gated_round(context, gate, events, [&] { return launch_many(context); }); }));
  LLMPROF_LET(cost.graph_node_seconds,
              median([&] { return gated_round(context, gate, events, [&] { return graph.launch(); }); }));
  return cost;
}

Result<double> graph_seconds(Context& context, const Calls& calls, double limit_seconds) {
  const auto begin = std::chrono::steady_clock::now();
  LLMPROF_LET(LaunchGate gate, LaunchGate::create(context));
  LLMPROF_LET(EventPairs events, EventPairs::create(context, 1));
  LLMPROF_TRY(calls.enqueue(0));  // what a first call does once must not be captured
  LLMPROF_LET(const double estimate, context.time([&] { return calls.enqueue(0); }));
  const auto count =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(kGraphSeconds / std::max(estimate, 1e-6)), 1, kMostCalls);
  LLMPROF_LET(Context::Graph graph, context.capture([&]() -> Result<void> {
    for (std::int64_t i = 0; i < count; ++i) {
      LLMPROF_TRY(calls.enqueue(static_cast<std::size_t>(i) % std::max<std::size_t>(calls.sets, 1)));
    }
    return {};
  }));
  LLMPROF_TRY(graph.launch());  // the first uploads it
  LLMPROF_TRY(context.synchronize());
  std::vector<double> per_call;
  do {
    LLMPROF_LET(const double seconds, round(context, graph, gate, events));
    per_call.push_back(seconds / static_cast<double>(kReplays) / static_cast<double>(count));
  } while (per_call.size() < kMostRounds &&
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < limit_seconds);
  return statistics(per_call).median;
}

Result<ClockProbe> ClockProbe::create(Context& context) {
  ClockProbe probe;
  probe.context_ = &context;
  LLMPROF_LET(probe.stamps_, context.allocate(2 * kHalfBytes));
  LLMPROF_TRY(context.set_bytes(probe.stamps_.pointer(), 0, 2 * kHalfBytes));
  return probe;
}

Result<void> ClockProbe::begin() {
  const Pointer nothing = 0;
  return context_->launch("llmprof_timing_stamp", {.grid_x = context_->properties().multiprocessors},
                          {stamps_.pointer(), nothing, kMostMultiprocessors});
}

Result<void> ClockProbe::end() {
  const Pointer end = stamps_.pointer() + kHalfBytes;
  return context_->launch("llmprof_timing_stamp", {.grid_x = context_->properties().multiprocessors},
                          {end, stamps_.pointer(), kMostMultiprocessors});
}

Result<double> ClockProbe::mhz() {
  std::vector<ClockStamp> stamps(2 * kMostMultiprocessors);
  LLMPROF_TRY(context_->copy_out(stamps.data(), stamps_.pointer(), 2 * kHalfBytes));
  return mhz_between(std::span(stamps).first(kMostMultiprocessors), std::span(stamps).last(kMostMultiprocessors));
}

Result<double> clock_mhz(Context& context) {
  LLMPROF_LET(ClockProbe probe, ClockProbe::create(context));
  LLMPROF_TRY(probe.begin());
  LLMPROF_TRY(probe.end());
  return probe.mhz();
}

double mhz_between(std::span<const ClockStamp> begin, std::span<const ClockStamp> end) {
  constexpr std::uint64_t kLeastNs = 40'000;  // a tick of 1 us on each side is 5 % then
  std::vector<double> mhz;
  for (std::size_t i = 0; i < std::min(begin.size(), end.size()); ++i) {
    const ClockStamp &a = begin[i], &b = end[i];
    if (a.nanoseconds == 0 || b.nanoseconds < a.nanoseconds + kLeastNs || b.cycles <= a.cycles) continue;
    mhz.push_back(static_cast<double>(b.cycles - a.cycles) * 1e3 / static_cast<double>(b.nanoseconds - a.nanoseconds));
  }
  if (mhz.empty()) return 0;
  const auto middle = mhz.begin() + static_cast<std::ptrdiff_t>(mhz.size() / 2);
  std::nth_element(mhz.begin(), middle, mhz.end());
  return *middle;
}

// Random data in the device's memory: made there by fill.cu, but for permutations, which are made here.

Result<void> fill_random(Context& context, Pointer to, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.elements <= 0) return {};
  const std::uint64_t key = key_of(seed);
  if (spec.fill.kind == Fill::Kind::kZero) return context.set_bytes(to, 0, spec.bytes());
  if (spec.fill.kind == Fill::Kind::kPermutation) return fill_permutation(context, to, spec, key);
  const int kind = static_cast<int>(spec.fill.kind);
  const auto limit = static_cast<std::uint64_t>(std::max<std::int64_t>(spec.fill.limit, 1));
  const Type stored = spec.type == Type::kTf32 ? Type::kFloat32 : spec.type;
  const std::int64_t packs = (spec.bytes() + kPackBytes - 1) / kPackBytes;
  const std::int64_t blocks =
      std::min((packs + kBlockThreads - 1) / kBlockThreads,
               kBlocksPerMultiprocessor * std::max<std::int64_t>(context.properties().multiprocessors, 1));
  return context.launch("llmprof_fill_" + std::string(type_name(stored)), {.grid_x = blocks, .block_x = kBlockThreads},
                        {to, spec.elements, kind, spec.fill.scale, limit, key});
}

}  // namespace llmprof::bench::cuda
