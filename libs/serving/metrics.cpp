#include "serving/metrics.h"

#include <algorithm>
#include <cmath>

namespace llmprof::serving {
namespace {

double begin_of(const RequestResult& request, Since since) {
  return since == Since::kSent ? request.arrival_ns : request.queued_ns;
}

bool keeps(const Slo& slo, double ttft_ns, std::optional<double> tpot_ns, double e2e_ns) {
  if (slo.ttft_ns && ttft_ns > *slo.ttft_ns) return false;
  if (slo.tpot_ns && tpot_ns && *tpot_ns > *slo.tpot_ns) return false;
  return !slo.e2e_ns || e2e_ns <= *slo.e2e_ns;
}

}  // namespace

Metrics metrics_of(const Simulation& simulation, const Slo& slo, std::int64_t replicas, Since since) {
  Metrics out;
  std::vector<double> ttft, tpot, e2e, queue;
  double prompt = 0, output = 0, cached = 0;
  std::int64_t good = 0;
  for (const RequestResult& request : simulation.requests) {
    if (request.rejection != Rejection::kNone) {
      ++out.rejected;
      continue;
    }
    const double begin = begin_of(request, since);
    ttft.push_back(request.first_token_ns - begin);
    e2e.push_back(request.last_token_ns - begin);
    queue.push_back(request.scheduled_ns - request.arrival_ns);
    std::optional<double> own_tpot;
    if (request.output_tokens > 1)
      own_tpot = (request.last_token_ns - request.first_token_ns) / (request.output_tokens - 1);
    if (own_tpot) tpot.push_back(*own_tpot);
    good += keeps(slo, ttft.back(), own_tpot, e2e.back()) ? 1 : 0;
    prompt += request.prompt_tokens;
    output += request.output_tokens;
    cached += request.cached_tokens;
    out.preempted_requests += request.preemptions > 0 ? 1 : 0;
  }
  out.completed = static_cast<std::int64_t>(ttft.size());
  out.ttft_ns = distribution_of(std::move(ttft));
  out.tpot_ns = distribution_of(std::move(tpot));
  out.e2e_ns = distribution_of(std::move(e2e));
  out.queue_ns = distribution_of(std::move(queue));
  out.itl_ns = simulation.itl_ns.distribution();
  out.preemptions = simulation.preemptions;
  out.cached_share = prompt > 0 ? cached / prompt : 0;
  out.duration_ns = simulation.end_ns - simulation.begin_ns;
  const auto blocks = static_cast<double>(simulation.blocks_usable);
  out.kv_peak_share = static_cast<double>(simulation.blocks_used_peak) / blocks;
  out.kv_mean_share = simulation.blocks_used_mean / blocks;
  if (out.completed == 0 || !(out.duration_ns > 0)) return out;
  const double seconds = out.duration_ns * 1e-9;
  out.requests_per_s = static_cast<double>(out.completed) / seconds;
  out.output_tokens_per_s = output / seconds;
  out.total_tokens_per_s = (prompt + output) / seconds;
  out.device_busy_share = simulation.device_busy_ns / (out.duration_ns * static_cast<double>(replicas));
  if (slo.any()) {
    out.goodput_per_s = static_cast<double>(good) / seconds;
    out.good_share = static_cast<double>(good) / static_cast<double>(out.completed + out.rejected);
  }
  return out;
}

}  // namespace llmprof::serving
