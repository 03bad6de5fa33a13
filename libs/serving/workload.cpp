#include "serving/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "serving/random.h"

namespace llmprof::serving {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kMostRate = 1e6;
constexpr double kMostCv = 100;

Result<void> check_lengths(const WorkloadSpec& spec) {
  const auto within = [](std::int64_t value, std::int64_t least) {
    return value >= least && value <= kMostRequestTokens;
  };
  if (spec.lengths != Lengths::kShareGpt) {
    if (!within(spec.prompt, 1)) return usage_error("prompts of {} tokens", spec.prompt);
    if (!within(spec.output, 1)) return usage_error("outputs of {} tokens", spec.output);
  }
  if (spec.lengths == Lengths::kUniform && (spec.prompt_most < spec.prompt || spec.output_most < spec.output))
    return usage_error("prompts of {} to {} and outputs of {} to {} tokens: the second of each is the larger one",
                       spec.prompt, spec.prompt_most, spec.output, spec.output_most);
  if (spec.lengths == Lengths::kUniform && !(within(spec.prompt_most, 1) && within(spec.output_most, 1)))
    return usage_error("requests are at most {} tokens", kMostRequestTokens);
  if (spec.prefixes < 0 || spec.prefixes > kMostRequests || !within(spec.prefix_tokens, 0))
    return usage_error("{} shared prefixes of {} tokens", spec.prefixes, spec.prefix_tokens);
  return {};
}

Result<void> check_spec(const WorkloadSpec& spec) {
  if (spec.requests < 1 || spec.requests > kMostRequests)
    return usage_error("{} requests: a workload has 1 to {}", spec.requests, kMostRequests);
  if (spec.concurrency < 0) return usage_error("a concurrency of {}", spec.concurrency);
  const auto rate = [](double value) { return value > 0 && value <= kMostRate; };
  if (spec.concurrency == 0 && !rate(spec.rate))
    return usage_error("a rate of {} requests per second: above 0, at most {:g}", spec.rate, kMostRate);
  if (spec.arrivals == Arrivals::kRamp && !rate(spec.rate_end))
    return usage_error("a ramp to {} requests per second: above 0, at most {:g}", spec.rate_end, kMostRate);
  if (spec.arrivals == Arrivals::kGamma && !(spec.cv > 0 && spec.cv <= kMostCv))
    return usage_error("a coefficient of variation of {}: above 0, at most {:g}", spec.cv, kMostCv);
  if (spec.priority_levels < 1) return usage_error("{} levels of priority", spec.priority_levels);
  return check_lengths(spec);
}

std::int32_t draw(const Lognormal& shape, Random& random) {
  const double value = std::exp(shape.mean_log + shape.sigma_log * random.normal());
  return static_cast<std::int32_t>(std::clamp(std::round(value), double(shape.least), double(shape.most)));
}

void draw_lengths(const WorkloadSpec& spec, Random& random, Request& request) {
  switch (spec.lengths) {
    case Lengths::kFixed:
      request.prompt_tokens = spec.prompt;
      request.output_tokens = spec.output;
      return;
    case Lengths::kUniform:
      request.prompt_tokens = static_cast<std::int32_t>(random.between(spec.prompt, spec.prompt_most));
      request.output_tokens = static_cast<std::int32_t>(random.between(spec.output, spec.output_most));
      return;
    case Lengths::kShareGpt:
      request.prompt_tokens = draw(kShareGptPrompt, random);
      request.output_tokens = draw(kShareGptOutput, random);
      return;
  }
}

// Seconds of arrivals, one after the other.
class Clock {
 public:
  Clock(const WorkloadSpec& spec, Random& random) : spec_(spec), random_(random) {
    growth_ = (spec.rate_end * spec.rate_end - spec.rate * spec.rate) / (2 * static_cast<double>(spec.requests));
  }
  double next() {
    if (spec_.concurrency > 0) return 0;
    switch (spec_.arrivals) {
      case Arrivals::kPoisson:
        now_ += random_.exponential() / spec_.rate;
        break;
      case Arrivals::kConstant:
        now_ += 1 / spec_.rate;
        break;
      case Arrivals::kGamma: {
        const double shape = 1 / (spec_.cv * spec_.cv);
        now_ += random_.gamma(shape) / (shape * spec_.rate);
        break;
      }
      case Arrivals::kRamp:
        now_ = ramp(expected_ += random_.exponential());
        break;
    }
    return now_;
  }

 private:
  // When so many requests are expected to have arrived. The rate is r0 + growth t until it is that of the end, at which
  // all requests are expected; the few behind that come at the rate of the end.
  double ramp(double expected) const {
    const double all = static_cast<double>(spec_.requests);
    const double duration = 2 * all / (spec_.rate + spec_.rate_end);
    if (expected >= all) return duration + (expected - all) / spec_.rate_end;
    // Of the two forms of the root the one that is exact for a growth near 0.
    return 2 * expected / (spec_.rate + std::sqrt(spec_.rate * spec_.rate + 2 * growth_ * expected));
  }

  const WorkloadSpec& spec_;
  Random& random_;
  double now_ = 0, expected_ = 0, growth_ = 0;
};

std::string describe(const WorkloadSpec& spec) {
  std::string text = fmt::format("{} requests, ", spec.requests);
  if (spec.concurrency > 0) {
    text += fmt::format("{} at a time", spec.concurrency);
  } else {
    switch (spec.arrivals) {
      case Arrivals::kPoisson:
        text += fmt::format("Poisson {:g}/s", spec.rate);
        break;
      case Arrivals::kGamma:
        text += fmt::format("gamma {:g}/s, cv {:g}", spec.rate, spec.cv);
        break;
      case Arrivals::kConstant:
        text += fmt::format("every {:g} s", 1 / spec.rate);
        break;
      case Arrivals::kRamp:
        text += fmt::format("Poisson {:g} to {:g}/s", spec.rate, spec.rate_end);
        break;
    }
  }
  switch (spec.lengths) {
    case Lengths::kFixed:
      text += fmt::format(", {} + {} tokens", spec.prompt, spec.output);
      break;
    case Lengths::kUniform:
      text += fmt::format(", {}-{} + {}-{} tokens", spec.prompt, spec.prompt_most, spec.output, spec.output_most);
      break;
    case Lengths::kShareGpt:
      text += ", ShareGPT-like lengths";
      break;
  }
  if (spec.prefixes > 0) text += fmt::format(", {} shared prefixes of {}", spec.prefixes, spec.prefix_tokens);
  return text + fmt::format(", seed {}", spec.seed);
}

}  // namespace

Result<Workload> make_workload(const WorkloadSpec& spec) {
  LLMPROF_TRY(check_spec(spec));
  Workload workload;
  workload.concurrency = spec.concurrency;
  workload.description = describe(spec);
  const bool shared = spec.prefixes > 0 && spec.prefix_tokens > 0;
  const std::int64_t pieces = shared ? spec.prefix_tokens / workload.content_tokens : 0;
  if (pieces * spec.prefixes > (std::int64_t{1} << 28))
    return usage_error("{} shared prefixes of {} tokens are too many", spec.prefixes, spec.prefix_tokens);
  for (std::int64_t i = 0; i < pieces * spec.prefixes; ++i)
    workload.content_ids.push_back(static_cast<std::uint64_t>(i));
  // Streams of their own: other lengths do not move the arrivals.
  Random arrivals(spec.seed), lengths(spec.seed ^ 0x6C656E67746873ULL), prefixes(spec.seed ^ 0x707265666978ULL);
  Clock clock(spec, arrivals);
  workload.requests.reserve(static_cast<std::size_t>(spec.requests));
  for (std::int64_t i = 0; i < spec.requests; ++i) {
    Request request;
    request.arrival_ns = clock.next() * kNsPerSecond;
    draw_lengths(spec, lengths, request);
    if (spec.priority_levels > 1)
      request.priority = static_cast<std::int32_t>(lengths.between(0, spec.priority_levels - 1));
    if (shared) {
      request.prompt_tokens += spec.prefix_tokens;
      request.id_begin = static_cast<std::uint64_t>(prefixes.between(0, spec.prefixes - 1) * pieces);
      request.id_count = static_cast<std::uint32_t>(pieces);
    }
    workload.requests.push_back(request);
  }
  return workload;
}

}  // namespace llmprof::serving
