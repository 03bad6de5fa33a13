// Traces of requests: untrusted files, so every number is checked before it is used.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/errors.h"
#include "base/json.h"
#include "base/strings.h"
#include "serving/workload.h"

namespace llmprof::serving {
namespace {

using base::Json;

constexpr double kMostMs = 1e14;                        // as a date: some traces hold milliseconds since 1970
constexpr double kMostSpanMs = 1e11;                    // three years
constexpr std::size_t kMostIds = std::size_t{1} << 28;  // of a trace: 2 GiB
constexpr std::array<std::int64_t, 8> kUsual{512, 16, 256, 128, 64, 32, 1024, 8};

class TraceParser {
 public:
  TraceParser(std::string_view where, const TraceOptions& options) : where_(where), options_(options) {
    candidates_.fill(true);
  }

  Result<void> take(std::string_view line, std::int64_t number) {
    number_ = number;
    LLMPROF_LET(const Json object, base::parse_json(line, at()));
    if (!object.is_object()) return bad("not a JSON object");
    Request request;
    LLMPROF_LET(const double ms, number_at(object, "timestamp", 0, kMostMs));
    LLMPROF_LET(request.prompt_tokens, tokens_at(object, "input_length"));
    LLMPROF_LET(request.output_tokens, tokens_at(object, "output_length"));
    if (out_.requests.empty()) first_ms_ = last_ms_ = ms;
    if (ms < last_ms_)
      return bad(fmt::format("timestamp {} is before that of the request above; sort the trace by time", ms));
    if (ms - first_ms_ > kMostSpanMs) return bad(fmt::format("timestamp {} is years after the first", ms));
    last_ms_ = ms;
    request.arrival_ns = (ms - first_ms_) * 1e6 * options_.time_scale;
    if (object.contains("priority")) {
      LLMPROF_LET(const double priority, number_at(object, "priority", -1e9, 1e9));
      request.priority = static_cast<std::int32_t>(priority);
    }
    LLMPROF_TRY(take_ids(object, request));
    if (static_cast<std::int64_t>(out_.requests.size()) >= kMostRequests)
      return bad(fmt::format("more than {} requests", kMostRequests));
    out_.requests.push_back(request);
    return {};
  }

  Result<Workload> finish() {
    if (out_.requests.empty())
      return Error{ErrorCode::kCorruptInput, fmt::format("{}: no requests in this trace", where_),
                   "a line is {\"timestamp\": ms, \"input_length\": n, \"output_length\": n, \"hash_ids\": [...]}"};
    out_.content_tokens = options_.content_tokens;
    for (std::size_t i = 0; i < kUsual.size() && out_.content_tokens == 0; ++i) {
      if (candidates_[i]) out_.content_tokens = kUsual[i];
    }
    out_.description = fmt::format("{} requests of {}", out_.requests.size(), base::base_name(where_));
    return std::move(out_);
  }

  bool full() const {
    return options_.most_requests > 0 && static_cast<std::int64_t>(out_.requests.size()) >= options_.most_requests;
  }

 private:
  std::string at() const { return fmt::format("{} line {}", where_, number_); }
  Error bad(const std::string& what) const { return corrupt_error("{}: {}", at(), what); }

  Result<double> number_at(const Json& object, const char* key, double least, double most) const {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number()) return bad(fmt::format("no number \"{}\"", key));
    const double value = found->get<double>();
    if (!(value >= least && value <= most))
      return bad(fmt::format("\"{}\" is {}, expected {:g} to {:g}", key, value, least, most));
    return value;
  }

  Result<std::int32_t> tokens_at(const Json& object, const char* key) const {
    LLMPROF_LET(const double value, number_at(object, key, 1, kMostRequestTokens));
    if (value != std::floor(value)) return bad(fmt::format("\"{}\" is {}, expected a whole number", key, value));
    return static_cast<std::int32_t>(value);
  }

  Result<void> take_ids(const Json& object, Request& request) {
    const auto found = object.find("hash_ids");
    if (found == object.end() || found->is_null()) return {};
    if (!found->is_array()) return bad("\"hash_ids\" is not a list");
    if (found->size() + out_.content_ids.size() > kMostIds) return bad("too many hash_ids in this trace");
    request.id_begin = out_.content_ids.size();
    request.id_count = static_cast<std::uint32_t>(found->size());
    for (const Json& id : *found) {
      if (!id.is_number_integer()) return bad("\"hash_ids\" holds something other than whole numbers");
      out_.content_ids.push_back(id.is_number_unsigned() ? id.get<std::uint64_t>()
                                                         : static_cast<std::uint64_t>(id.get<std::int64_t>()));
    }
    return check_size(request);
  }

  // Ids are for full blocks only (floor), or for the last, partial one as well (ceil).
  Result<void> check_size(const Request& request) {
    const std::int64_t tokens = request.prompt_tokens, ids = request.id_count;
    if (const std::int64_t size = options_.content_tokens; size > 0) {
      if (ids <= (tokens + size - 1) / size) return {};
      return bad(fmt::format("{} hash_ids of {} tokens for {} tokens", ids, size, tokens));
    }
    bool any = false;
    for (std::size_t i = 0; i < kUsual.size(); ++i) {
      const std::int64_t floor = tokens / kUsual[i], ceil = (tokens + kUsual[i] - 1) / kUsual[i];
      candidates_[i] = candidates_[i] && (ids == floor || ids == ceil);
      any = any || candidates_[i];
    }
    if (any) return {};
    Error error =
        bad(fmt::format("{} hash_ids for {} tokens: no usual block size fits this and the lines above", ids, tokens));
    error.hint = "say how many tokens a hash id stands for";
    return error;
  }

  std::string_view where_;
  TraceOptions options_;
  Workload out_;
  std::int64_t number_ = 0;
  double first_ms_ = 0, last_ms_ = 0;
  std::array<bool, kUsual.size()> candidates_{};
};

}  // namespace

Result<Workload> parse_trace(std::string_view text, std::string_view where, const TraceOptions& options) {
  if (options.content_tokens < 0 || options.content_tokens > kMostRequestTokens)
    return usage_error("a hash id of {} tokens", options.content_tokens);
  if (!(options.time_scale > 0 && options.time_scale <= 1e6))
    return usage_error("a time scale of {}: above 0, at most 1e6", options.time_scale);
  TraceParser parser(where, options);
  std::int64_t number = 0;
  while (!text.empty() && !parser.full()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = base::trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty()) LLMPROF_TRY(parser.take(line, number));
  }
  return parser.finish();
}

}  // namespace llmprof::serving
