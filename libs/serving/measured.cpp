// What a real engine did with a workload, and how far a simulation of it is from that.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/errors.h"
#include "base/json.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "serving/metrics.h"

namespace llmprof::serving {
namespace {

using base::Json;

constexpr double kMostSeconds = 1e11;

Result<double> value_at(const Json& object, const char* key, double least, double most, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return corrupt_error("{}: no number \"{}\"", where, key);
  const double value = found->get<double>();
  if (!(value >= least && value <= most)) return corrupt_error("{}: \"{}\" is {}", where, key, value);
  return value;
}

// The number a request_id ends with.
std::optional<std::uint64_t> number_of(const Json& object) {
  const auto found = object.find("request_id");
  if (found == object.end() || !found->is_string()) return std::nullopt;
  const std::string id = found->get<std::string>();
  std::size_t begin = id.size();
  while (begin > 0 && base::is_digit(id[begin - 1])) --begin;
  return base::parse_number<std::uint64_t>(std::string_view(id).substr(begin));
}

Result<MeasuredRequest> parse_request(const Json& object, const std::string& where) {
  MeasuredRequest request;
  LLMPROF_LET(const double input, value_at(object, "input_toks", 1, kMostRequestTokens, where));
  LLMPROF_LET(const double output, value_at(object, "output_toks", 1, kMostRequestTokens, where));
  request.input_tokens = static_cast<std::int64_t>(input);
  request.output_tokens = static_cast<std::int64_t>(output);
  LLMPROF_LET(request.arrival_s, value_at(object, "arrival_time", 0, kMostSeconds, where));
  LLMPROF_LET(request.queued_s, value_at(object, "queued_ts", 0, kMostSeconds, where));
  LLMPROF_LET(request.scheduled_s, value_at(object, "scheduled_ts", request.queued_s, kMostSeconds, where));
  LLMPROF_LET(request.first_token_s, value_at(object, "first_token_ts", request.scheduled_s, kMostSeconds, where));
  LLMPROF_LET(request.last_token_s, value_at(object, "last_token_ts", request.first_token_s, kMostSeconds, where));
  return request;
}

// Puts requests into the order of their numbers; false: the numbers are not 0 to n - 1.
bool reorder(std::vector<MeasuredRequest>& requests, const std::vector<std::optional<std::uint64_t>>& numbers) {
  std::vector<MeasuredRequest> ordered(requests.size());
  std::vector<bool> seen(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!numbers[i] || *numbers[i] >= requests.size() || seen[*numbers[i]]) return false;
    seen[*numbers[i]] = true;
    ordered[*numbers[i]] = requests[i];
  }
  requests = std::move(ordered);
  return true;
}

// Samples of one metric of all requests, side by side.
struct Pairs {
  std::vector<double> measured, predicted;
  void add(double of_measured, double of_predicted) {
    measured.push_back(of_measured);
    predicted.push_back(of_predicted);
  }
  ComparedMetric compared() const {
    ComparedMetric out;
    double sum = 0;
    std::int64_t counted = 0;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (measured[i] <= 0) continue;
      sum += std::abs(predicted[i] / measured[i] - 1);
      ++counted;
    }
    if (counted > 0) out.mape_percent = 100 * sum / static_cast<double>(counted);
    const Distribution real = distribution_of(measured), simulated = distribution_of(predicted);
    out.mean = {real.mean, simulated.mean};
    out.p50 = {real.p50, simulated.p50};
    out.p99 = {real.p99, simulated.p99};
    return out;
  }
};

}  // namespace

Result<std::vector<MeasuredRequest>> parse_measured(std::string_view text, std::string_view where) {
  std::vector<MeasuredRequest> requests;
  std::vector<std::optional<std::uint64_t>> numbers;
  std::int64_t number = 0;
  for (const std::string_view part : base::split(text, '\n')) {
    ++number;
    const std::string_view line = base::trimmed(part);
    if (line.empty()) continue;
    const std::string at = fmt::format("{} line {}", where, number);
    LLMPROF_LET(const Json object, base::parse_json(line, at));
    if (!object.is_object()) return corrupt_error("{}: not a JSON object", at);
    LLMPROF_LET(const MeasuredRequest request, parse_request(object, at));
    requests.push_back(request);
    numbers.push_back(number_of(object));
  }
  if (requests.empty()) return corrupt_error("{}: no measured requests in this file", where);
  reorder(requests, numbers);
  return requests;
}

Result<Comparison> compare(const Simulation& simulation, const std::vector<MeasuredRequest>& measured, Since since) {
  if (measured.size() != simulation.requests.size())
    return usage_error("{} requests were measured, {} simulated: not the same workload", measured.size(),
                       simulation.requests.size());
  // Wall and monotonic clock differ by a constant: no request was queued before it arrived.
  double offset_s = measured.front().queued_s - measured.front().arrival_s;
  for (const MeasuredRequest& each : measured) offset_s = std::min(offset_s, each.queued_s - each.arrival_s);
  Pairs ttft, tpot, e2e, queue;
  double first_s = measured.front().arrival_s + offset_s, last_s = 0, output = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const MeasuredRequest& real = measured[i];
    const RequestResult& simulated = simulation.requests[i];
    if (real.input_tokens != simulated.prompt_tokens || real.output_tokens != simulated.output_tokens)
      return usage_error("request {}: {} + {} tokens were measured, {} + {} simulated: not the same workload", i,
                         real.input_tokens, real.output_tokens, simulated.prompt_tokens, simulated.output_tokens);
    const double sent_s = real.arrival_s + offset_s;
    first_s = std::min(first_s, sent_s);
    last_s = std::max(last_s, real.last_token_s);
    output += static_cast<double>(real.output_tokens);
    if (simulated.rejection != Rejection::kNone) continue;
    const double real_begin = since == Since::kSent ? sent_s : real.queued_s;
    const double begin = since == Since::kSent ? simulated.arrival_ns : simulated.queued_ns;
    ttft.add((real.first_token_s - real_begin) * 1e9, simulated.first_token_ns - begin);
    e2e.add((real.last_token_s - real_begin) * 1e9, simulated.last_token_ns - begin);
    queue.add((real.scheduled_s - real_begin) * 1e9, simulated.scheduled_ns - begin);
    if (const auto intervals = static_cast<double>(real.output_tokens - 1); intervals > 0)
      tpot.add((real.last_token_s - real.first_token_s) * 1e9 / intervals,
               (simulated.last_token_ns - simulated.first_token_ns) / intervals);
  }
  Comparison out;
  out.requests = static_cast<std::int64_t>(ttft.measured.size());
  if (out.requests == 0) return usage_error("the simulation rejected every request: nothing to compare");
  out.ttft_ns = ttft.compared();
  out.tpot_ns = tpot.compared();
  out.e2e_ns = e2e.compared();
  out.queue_ns = queue.compared();
  out.queue_ns.mape_percent.reset();
  out.duration_ns = {(last_s - first_s) * 1e9, simulation.end_ns - simulation.begin_ns};
  const double tokens = output * 1e9;
  out.output_tokens_per_s = {tokens / out.duration_ns.measured, tokens / out.duration_ns.predicted};
  return out;
}

}  // namespace llmprof::serving
