#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"
#include "bench/check.h"
#include "bench/cuda/context.h"
#include "bench/cuda/sampler.h"
#include "bench/operator.h"
#include "bench/roofline/cuda.h"
#include "hw/gpu/usage.h"
#include "hw/resolve.h"

namespace llmprof::bench {

// Memory of a problem's tensors on a GPU: some sets of them in one allocation, filled with random data.

inline constexpr std::int64_t kCudaAlignment = 512;  // as frameworks align tensors

class CudaBuffers {
 public:
  // Inputs of each set are drawn anew; outputs are zero.
  static Result<CudaBuffers> create(cuda::Context& context, std::span<const TensorSpec> specs, std::int64_t sets,
                                    std::uint64_t seed) {
    const auto stride = static_cast<std::int64_t>(set_bytes(specs, kCudaAlignment));
    CudaBuffers buffers;
    LLMPROF_LET(buffers.memory_, context.allocate(stride * sets));
    cuda::Pointer at = buffers.memory_.pointer();
    for (std::int64_t set = 0; set < sets; ++set) {
      auto& tensors = buffers.sets_.emplace_back();
      for (const TensorSpec& spec : specs) {
        tensors.push_back(at);
        if (spec.bytes() > 0 && spec.role == Role::kOut) LLMPROF_TRY(context.set_bytes(at, 0, spec.bytes()));
        if (spec.bytes() > 0 && spec.role != Role::kOut) LLMPROF_TRY(cuda::fill_random(context, at, spec, ++seed));
        at += static_cast<cuda::Pointer>(set_bytes({&spec, 1}, kCudaAlignment));
      }
    }
    LLMPROF_TRY(context.synchronize());
    return buffers;
  }

  std::span<const cuda::Pointer> set(std::size_t index) const { return sets_[index]; }
  std::size_t sets() const { return sets_.size(); }

 private:
  cuda::Buffer memory_;
  std::vector<std::vector<cuda::Pointer>> sets_;
};

namespace {

// For what the driver and the libraries still want: a share of the memory, some at least.
constexpr double kMarginShare = 0.02, kLeastMarginBytes = 512 << 20;
constexpr std::int64_t kMostSets = 256;
constexpr double kLongCall = 5e-3;    // from here on a launch is lost in the call: a graph would show nothing
constexpr double kUnknownGap = 3e-6;  // between kernels, where launches could not be measured

// One implementation, made ready for a problem.
struct Prepared {
  const CudaImplementation* implementation = nullptr;
  CudaCall call;
};

class CudaBench final : public DeviceBench {
 public:
  CudaBench(int index, const BenchOptions& options, std::unique_ptr<cuda::Context> context)
      : DeviceBench(options), index_(index), context_(std::move(context)) {
    const cuda::Properties& properties = context_->properties();
    device_ = device_of(properties);
    peaks_ = hw::known_peaks(device_);
    notes_ = hw::gpu_notes(properties.bus_id, true);
    if (std::none_of(peaks_.begin(), peaks_.end(), [](const hw::Peak& peak) { return peak.source == "measured"; })) {
      notes_.push_back(peaks_.empty() ? "this GPU's peaks are unknown: llmprof roofline measures them"
                                      : "the roof is the vendor's: llmprof roofline measures this GPU's");
    }
    if (options_.measure.full_clock_mhz <= 0) options_.measure.full_clock_mhz = properties.clock_mhz;
    if (const auto cost = cuda::launch_cost(*context_)) {
      start_seconds_ = cost->device_seconds;
      peaks_ = hw::merged_peaks(peaks_, launch_latencies(*cost));  // a run of benchmarks says what launches cost
    }
  }

 private:
  Result<void> check_and_measure(const Operator& op, PointResult& result, const std::function<bool()>& go_on) override {
    LLMPROF_TRY(reopen_if_broken());
    LLMPROF_TRY(has_type(op, result.problem.type));
    const std::vector<TensorSpec> specs = op.tensors(result.problem);
    LLMPROF_TRY(planned(specs, result.work));  // before anybody allocates anything
    LLMPROF_LET(const Prepared prepared, prepare(op, result.problem));
    result.implementation = prepared.implementation->name;
    result.method = prepared.call.method;
    result.workspace_bytes = prepared.call.workspace_bytes;
    result.roof = roof_of(result.problem, result.work, peaks_);
    if (!go_on()) return Error{ErrorCode::kInterrupted, "interrupted before anything was measured", ""};
    if (options_.check) LLMPROF_TRY(check(op, specs, prepared, result));
    LLMPROF_LET(const BufferPlan plan, planned(specs, result.work));
    LLMPROF_LET(const CudaBuffers buffers, CudaBuffers::create(*context_, specs, plan.sets, options_.seed));
    for (const TensorSpec& spec : specs) result.tensor_bytes += spec.bytes();
    result.buffer_sets = plan.sets;
    if (options_.check && op.spot_check != nullptr) LLMPROF_TRY(spot_check(op, prepared.call, buffers, result));
    return measure_with(prepared.call, buffers, result, go_on);
  }

  // A kernel that failed leaves a context that answers nothing but its error: the next problem gets a new one.
  Result<void> reopen_if_broken() {
    if (context_ != nullptr && !context_->broken()) return {};
    context_.reset();
    LLMPROF_LET(context_, cuda::Context::open(index_));
    return {};
  }

  Result<void> has_type(const Operator& op, Type type) const {
    std::string why = why_type_unknown(op, type, op.types, "GPU");
    if (why.empty()) why = why_type_missing(type, context_->properties().capability());
    if (why.empty()) return {};
    return Error{ErrorCode::kUnsupported, std::move(why), ""};
  }

  Result<BufferPlan> planned(const std::vector<TensorSpec>& specs, const model::KernelWork& work) {
    LLMPROF_LET(const std::int64_t free_bytes, context_->free_bytes());
    const auto free = static_cast<double>(free_bytes);
    const auto memory = static_cast<double>(context_->properties().memory_bytes);
    const double margin = std::max(kMarginShare * memory, kLeastMarginBytes);
    const double one_set = set_bytes(specs, kCudaAlignment);
    const BufferPlan plan = plan_buffers({.cache = options_.cache,
                                          .set_bytes = one_set,
                                          .touched_bytes = work.bytes(),
                                          .cache_bytes = static_cast<double>(context_->properties().l2_bytes),
                                          .budget_bytes = buffer_budget(one_set, free - margin),
                                          .most_sets = kMostSets});
    if (plan.sets == 0) return Error{ErrorCode::kUnsupported, why_not_fit(one_set, free, margin), ""};
    return plan;
  }

  // The first that can. When none can, the reasons of all.
  Result<Prepared> prepare(const Operator& op, const Problem& problem) {
    LLMPROF_LET(const auto wanted, wanted_implementations(op, options_.implementation));
    std::string reasons;
    for (const CudaImplementation* implementation : wanted) {
      Result<CudaCall> call = implementation->prepare(*context_, problem);
      if (call) return Prepared{implementation, std::move(*call)};
      if (call.error().code != ErrorCode::kUnsupported) return call.error();
      add_remark(reasons, fmt::format("{}: {}", implementation->name, call.error().message));
    }
    return Error{ErrorCode::kUnsupported, std::move(reasons), ""};
  }

  // The small problem, once for each implementation; the problem itself where its reference takes no time.
  Result<void> check(const Operator& op, const std::vector<TensorSpec>& specs, const Prepared& prepared,
                     PointResult& result) {
    const Problem small = op.small(result.problem);
    const bool itself = small == result.problem || (!options_.small_checks && cheap_reference(result.work, specs));
    if (itself) LLMPROF_TRY(check_one(op, result.problem, prepared, result));
    if (small == result.problem) return {};
    if (const double* known = known_error(prepared, small)) return judge_error(op, small, *known, result);
    const Result<CudaCall> call = prepared.implementation->prepare(*context_, small);
    if (call) return check_one(op, small, {prepared.implementation, *call}, result);
    if (call.error().code != ErrorCode::kUnsupported) return call.error();
    if (!itself && op.spot_check == nullptr) {
      add_remark(result.reason, fmt::format("not checked: {} ({})", call.error().message, small.sizes()));
    }
    return {};
  }

  static std::string error_key(const Prepared& prepared, const Problem& problem) {
    return fmt::format("{} {}", prepared.implementation->name, problem.key());
  }

  const double* known_error(const Prepared& prepared, const Problem& problem) const {
    const auto found = errors_.find(error_key(prepared, problem));
    return found == errors_.end() ? nullptr : &found->second;
  }

  Result<void> check_one(const Operator& op, const Problem& problem, const Prepared& prepared, PointResult& result) {
    if (known_error(prepared, problem) == nullptr) {
      LLMPROF_LET(const double error, check_on_gpu(op, problem, *context_, prepared.call, options_.seed));
      errors_.emplace(error_key(prepared, problem), error);
    }
    return judge_error(op, problem, *known_error(prepared, problem), result);
  }

  Result<void> spot_check(const Operator& op, const CudaCall& call, const CudaBuffers& buffers, PointResult& result) {
    LLMPROF_TRY(call.enqueue(buffers.set(0), context_->stream()));
    LLMPROF_TRY(context_->synchronize());
    LLMPROF_LET(const double error, op.spot_check(*context_, result.problem, buffers.set(0)));
    return judge_error(op, result.problem, error, result);
  }

  Result<void> measure_with(const CudaCall& call, const CudaBuffers& buffers, PointResult& result,
                            const std::function<bool()>& go_on) {
    const cuda::Calls calls{
        .enqueue = [&](std::size_t set) { return call.enqueue(buffers.set(set), context_->stream()); },
        .sets = buffers.sets()};
    LLMPROF_LET(const auto sampler, cuda::GpuSampler::create(*context_, calls, options_.cache == Cache::kCold));
    LLMPROF_LET(result.measured, measure(*sampler, options_.measure, go_on));
    result.status = Status::kMeasured;
    result.timer = sampler->timer();
    result.event_seconds = sampler->event_seconds();
    result.kernels = kernel_list(sampler->kernels());
    result.roof = with_latency(result.roof, result.measured.time.median, start_seconds_);
    add_remark(result.reason, remarks(result.measured, options_.measure.full_clock_mhz));
    compare_timers(*sampler, result);
    measure_graph(calls, result);
    return judge_by_limits(result);
  }

  void compare_timers(const cuda::GpuSampler& sampler, PointResult& result) const {
    if (!sampler.why_no_cupti().empty()) {
      add_remark(result.reason, fmt::format("timed by CUDA events, launch gaps included: {}", sampler.why_no_cupti()));
    } else if (result.event_seconds) {
      add_remark(result.reason,
                 why_timers_disagree(result.measured.time.median, *result.event_seconds, sampler.kernels().size(),
                                     start_seconds_ > 0 ? start_seconds_ : kUnknownGap));
    }
  }

  // Not every library can be captured: a point without this figure is a point.
  void measure_graph(const cuda::Calls& calls, PointResult& result) {
    if (!options_.graph || result.measured.time.median > kLongCall) return;
    const Result<double> seconds = cuda::graph_seconds(*context_, calls, options_.graph_seconds);
    if (seconds) {
      result.graph_seconds = *seconds;
    } else {
      add_remark(result.reason, fmt::format("no graph: {}", seconds.error().message));
    }
  }

  Result<void> judge_by_limits(PointResult& result) const {
    std::string why = why_too_fast(result);
    if (why.empty()) return {};
    return Error{ErrorCode::kInternal, std::move(why), ""};
  }

  int index_;
  std::unique_ptr<cuda::Context> context_;
};

}  // namespace

Result<std::unique_ptr<Bench>> open_cuda_bench(int index, const BenchOptions& options) {
  LLMPROF_LET(std::unique_ptr<cuda::Context> context, cuda::Context::open(index));
  return std::unique_ptr<Bench>(std::make_unique<CudaBench>(index, options, std::move(context)));
}

}  // namespace llmprof::bench
