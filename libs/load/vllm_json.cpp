#include "load/vllm_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <vector>

#include "base/json.h"

namespace llmprof::load {
namespace {

using base::Json;

double seconds(std::uint64_t from, std::uint64_t to) { return to >= from ? static_cast<double>(to - from) * 1e-9 : 0; }

struct Lists {
  Json input_lens = Json::array(), output_lens = Json::array(), ttfts = Json::array(), itls = Json::array(),
       start_times = Json::array(), texts = Json::array(), errors = Json::array();
  std::vector<double> ttft, tpot, itl, e2el;  // of those that finished
  std::int64_t completed = 0, failed = 0, input = 0, output = 0, good = 0;

  // Failed ones have 0 in the lists, and are in no statistic.
  void add(const RequestRecord& request, const serving::Slo& slo) {
    Json gaps = Json::array();
    double first = 0, last = request.end_ns > 0 ? seconds(request.sent_ns, request.end_ns) : 0;
    if (!request.marks.empty() && request.streamed) {
      first = seconds(request.sent_ns, request.marks.front().ns), last = seconds(request.sent_ns, request.marks.back().ns);
      for (std::size_t i = 1; i < request.marks.size(); ++i)
        gaps.push_back(seconds(request.marks[i - 1].ns, request.marks[i].ns));
    }
    const bool finished = request.finished();
    input_lens.push_back(finished ? request.prompt_tokens : 0), output_lens.push_back(finished ? request.output_tokens : 0);
    ttfts.push_back(finished ? first : 0.0), start_times.push_back(static_cast<double>(request.sent_ns) * 1e-9);
    texts.push_back(finished ? request.text : ""), errors.push_back(finished ? "" : request.status + ": " + request.error);
    (finished ? completed : failed) += 1;
    if (finished) {
      input += request.prompt_tokens, output += request.output_tokens;
      ttft.push_back(first), e2el.push_back(last);
      if (request.output_tokens > 1) tpot.push_back((last - first) / static_cast<double>(request.output_tokens - 1));
      for (const Json& gap : gaps) itl.push_back(gap.get<double>());
      good += is_good(request, slo) ? 1 : 0;
    }
    itls.push_back(finished ? std::move(gaps) : Json::array());
  }
};

void add_statistics(Json& out, const std::string& name, std::vector<double> values_s) {
  for (double& value : values_s) value *= 1e3;
  const serving::Distribution d = serving::distribution_of(values_s);
  double squares = 0;
  for (const double value : values_s) squares += (value - d.mean) * (value - d.mean);
  out["mean_" + name + "_ms"] = d.mean;
  out["median_" + name + "_ms"] = d.p50;
  out["std_" + name + "_ms"] = values_s.empty() ? 0 : std::sqrt(squares / static_cast<double>(values_s.size()));
  out["p90_" + name + "_ms"] = d.p90, out["p95_" + name + "_ms"] = d.p95, out["p99_" + name + "_ms"] = d.p99;
}

// The most in one second: tokens that came in it, requests that ran in it.
void add_peaks(Json& out, const LoadResult& result) {
  constexpr double kMostSeconds = 1e7;
  const double duration = std::min(seconds(result.begin_ns, result.end_ns), kMostSeconds);
  std::vector<double> tokens(static_cast<std::size_t>(duration) + 1), running(tokens.size());
  const auto second = [&](std::uint64_t ns) {
    return std::min(static_cast<std::size_t>(seconds(result.begin_ns, ns)), tokens.size() - 1);
  };
  for (const RequestRecord& request : result.requests) {
    if (request.warm_up || !request.finished()) continue;
    for (const Mark& mark : request.marks) tokens[second(mark.ns)] += mark.tokens;
    for (std::size_t at = second(request.sent_ns); at <= second(request.end_ns); ++at) ++running[at];
  }
  out["max_output_tokens_per_s"] = *std::ranges::max_element(tokens);
  out["max_concurrent_requests"] = static_cast<std::int64_t>(*std::ranges::max_element(running));
}

std::string date_of(std::int64_t wall_ns) {
  const std::time_t time = wall_ns / 1'000'000'000;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

}  // namespace

Json vllm_json(const LoadResult& result, const About& about, const VllmFacts& facts) {
  Lists lists;
  for (const RequestRecord& request : result.requests) {
    if (!request.warm_up) lists.add(request, about.slo);
  }
  const double duration = std::max(seconds(result.begin_ns, result.end_ns), 1e-9);
  const auto per_s = [&](std::int64_t count) { return static_cast<double>(count) / duration; };
  const bool chat = about.endpoint == Endpoint::kChat;
  Json out;
  out["date"] = date_of(facts.wall_ns);
  out["endpoint_type"] = out["backend"] = chat ? "openai-chat" : "openai";
  out["label"] = nullptr;
  out["model_id"] = out["tokenizer_id"] = about.model;
  out["num_prompts"] = lists.completed + lists.failed;
  out["request_rate"] = facts.rate && about.concurrency == 0 ? Json(*facts.rate) : Json("inf");
  out["burstiness"] = facts.burstiness;
  const std::int64_t most = about.concurrency > 0 ? about.concurrency : about.most_outstanding;
  out["max_concurrency"] = most > 0 ? Json(most) : Json(nullptr);
  out["duration"] = duration;
  out["completed"] = lists.completed, out["failed"] = lists.failed;
  out["total_input_tokens"] = lists.input, out["total_output_tokens"] = lists.output;
  out["request_throughput"] = per_s(lists.completed);
  out["request_goodput"] = about.slo.any() ? Json(per_s(lists.good)) : Json(nullptr);
  out["output_throughput"] = per_s(lists.output), out["total_token_throughput"] = per_s(lists.input + lists.output);
  out["input_lens"] = std::move(lists.input_lens), out["output_lens"] = std::move(lists.output_lens);
  out["ttfts"] = std::move(lists.ttfts), out["itls"] = std::move(lists.itls);
  out["start_times"] = std::move(lists.start_times);
  out["generated_texts"] = std::move(lists.texts), out["errors"] = std::move(lists.errors);
  add_peaks(out, result);
  out["rtfx"] = 0.0;
  add_statistics(out, "ttft", lists.ttft), add_statistics(out, "tpot", lists.tpot);
  add_statistics(out, "itl", lists.itl), add_statistics(out, "e2el", lists.e2el);
  return out;
}

}  // namespace llmprof::load
