#include "load/load.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>

#include "load/message.h"
#include "load/sse.h"
#include "serving/random.h"
#include "wire/clock.h"

namespace llmprof::load {
namespace {

constexpr std::size_t kMostBodyBytes = std::size_t{64} << 20;
constexpr std::size_t kMostErrorBytes = 300;
constexpr std::uint64_t kLingerNs = 5'000'000'000, kSecondNs = 1'000'000'000, kProgressNs = 100'000'000;

std::string shortened(std::string_view text) {
  return text.size() <= kMostErrorBytes ? std::string(text) : std::string(text.substr(0, kMostErrorBytes)) + "…";
}

double thread_cpu_ns() { return static_cast<double>(wire::read_clock_ns(CLOCK_THREAD_CPUTIME_ID)); }

// Its own use of the CPU, per second.
class CpuMeter {
 public:
  void begin(std::uint64_t now_ns) {
    begin_ns_ = last_ns_ = now_ns;
    begin_cpu_ = last_cpu_ = thread_cpu_ns();
  }
  void look(std::uint64_t now_ns) {
    if (now_ns - last_ns_ < kSecondNs) return;
    const double cpu = thread_cpu_ns();
    most_ = std::max(most_, (cpu - last_cpu_) / static_cast<double>(now_ns - last_ns_));
    last_ns_ = now_ns, last_cpu_ = cpu;
  }
  double share(std::uint64_t now_ns) const {
    return now_ns <= begin_ns_ ? 0 : (thread_cpu_ns() - begin_cpu_) / static_cast<double>(now_ns - begin_ns_);
  }
  double most(std::uint64_t now_ns) const { return std::max(most_, share(now_ns)); }

 private:
  std::uint64_t begin_ns_ = 0, last_ns_ = 0;
  double begin_cpu_ = 0, last_cpu_ = 0, most_ = 0;
};

class Driver : public HttpClient::Handler {
 public:
  Driver(const LoadOptions& options, HttpClient& client, const Bodies& bodies)
      : options_(options), client_(client), bodies_(bodies) {}

  void warm_up(const Prompts& prompts) {
    if (prompts.prompts.empty()) return;
    constexpr std::int64_t kAtOnce = 8;
    warm_ = true;
    run(prompts.prompts, std::min<std::int64_t>(options_.concurrency > 0 ? options_.concurrency : kAtOnce,
                                                static_cast<std::int64_t>(prompts.prompts.size())));
  }
  void measure(const Prompts& prompts) {
    warm_ = false;
    sent_ = done_ = errors_ = messages_ = 0;
    if (stops() > 0) {
      result.not_sent = static_cast<std::int64_t>(prompts.prompts.size());
    } else {
      run(prompts.prompts, options_.concurrency);
    }
    result.begin_ns = begin_ns_, result.end_ns = std::max(end_ns_, begin_ns_);
    result.cpu_share = cpu_.share(result.end_ns), result.cpu_share_most = cpu_.most(result.end_ns);
    result.interrupted = stops() > 0, result.open_loop = options_.concurrency == 0;
    result.read_lags_ns = client_.read_lags_ns();
  }

  void data(HttpClient::Id id, int status, bool event_stream, std::string_view bytes, std::uint64_t now_ns) override {
    Stream& stream = *streams_[id];
    if (event_stream && status < 300) {
      records_[id].streamed = true;
      stream.sse.feed(bytes, [&](std::string_view event) { take_event(id, event, now_ns); });
    } else if (stream.body.size() + bytes.size() <= kMostBodyBytes) {
      stream.body += bytes;
    }
  }

  void ended(HttpClient::Id id, const Outcome& outcome, std::uint64_t now_ns) override {
    RequestRecord& record = records_[id];
    record.end_ns = end_ns_ = now_ns;
    record.http_status = outcome.http_status;
    conclude(id, outcome);
    count_tokens(record, *streams_[id]);
    streams_[id].reset();
    free_since_.push_back(now_ns);
    --running_, ++done_;
    if (!record.finished()) ++errors_;
    if (const Mark* first = record.first(); first != nullptr && record.finished())
      ttft_sum_ += static_cast<double>(first->ns - record.sent_ns), ++ttft_count_;
  }

  LoadResult result;

 private:
  struct Stream {
    SseParser sse;
    std::string body;
    bool done = false;  // [DONE]
    std::string error;
    std::int64_t ids = 0;
    std::optional<std::int64_t> completion_tokens;
  };

  int stops() const { return options_.stops ? options_.stops() : 0; }

  void run(const std::vector<Prompt>& prompts, std::int64_t concurrency) {
    prompts_ = &prompts, next_ = 0, running_ = 0;
    waiting_.clear(), free_since_.clear();
    body_for_ = SIZE_MAX;
    const bool closed = concurrency > 0;
    begin_ns_ = wire::now_ns();
    if (!closed) begin_ns_ += 1'000'000;  // the first is not late because it is the first
    free_since_.assign(static_cast<std::size_t>(concurrency), begin_ns_);
    cpu_.begin(begin_ns_);
    bool sending = true;
    std::uint64_t give_up_ns = UINT64_MAX;
    for (;;) {
      const std::uint64_t now_ns = wire::now_ns();
      const bool late = options_.duration_ns > 0 && !warm_ && now_ns >= begin_ns_ + options_.duration_ns;
      if (sending && (late || stops() > 0)) {
        sending = false;
        leave_unsent();
      }
      if (stops() > 0 && give_up_ns == UINT64_MAX) give_up_ns = now_ns + kLingerNs;
      if (sending) closed ? send_free() : send_due();
      if (running_ == 0 && waiting_.empty() && (!sending || next_ == prompts.size())) break;
      if (!sending && (stops() > 1 || now_ns >= give_up_ns)) give_up();
      if (running_ == 0 && !sending) break;
      prepare();
      client_.wait(std::min(give_up_ns, sending && !closed && next_ < prompts.size() ? due_ns(next_) : UINT64_MAX), *this);
      tell();
    }
    tell(true);
  }

  std::uint64_t due_ns(std::size_t index) const {
    return begin_ns_ + static_cast<std::uint64_t>(std::max((*prompts_)[index].arrival_ns, 0.0));
  }

  void send_due() {
    const auto cap = static_cast<std::size_t>(options_.most_outstanding);
    const auto room = [&] { return cap == 0 || static_cast<std::size_t>(running_) < cap; };
    while (!waiting_.empty() && room()) {
      send(waiting_.front().index, waiting_.front().arrival_ns, true);
      waiting_.pop_front();
    }
    bool any = false;
    for (std::uint64_t now_ns = wire::now_ns(); next_ < prompts_->size() && due_ns(next_) <= now_ns; ++next_) {
      if (waiting_.empty() && room()) {
        send(next_, due_ns(next_), false);
        any = true;
        now_ns = wire::now_ns();
      } else {
        waiting_.push_back({next_, due_ns(next_)});
      }
    }
    if (any) client_.push(*this);
  }

  void send_free() {
    bool any = false;
    while (!free_since_.empty() && next_ < prompts_->size()) {
      const std::uint64_t since_ns = free_since_.front();
      free_since_.pop_front();
      send(next_++, since_ns, false);
      any = true;
    }
    if (any) client_.push(*this);
  }

  // The body of the next one is made while there is nothing else to do.
  void prepare() {
    if (next_ >= prompts_->size() || body_for_ == next_) return;
    body_ = bodies_.body((*prompts_)[next_]);
    body_for_ = next_;
  }

  void send(std::size_t index, std::uint64_t arrival_ns, bool capped) {
    const Prompt& prompt = (*prompts_)[index];
    if (body_for_ != index) body_ = bodies_.body(prompt);
    body_for_ = SIZE_MAX;
    const auto id = static_cast<HttpClient::Id>(records_.size());
    RequestRecord& record = records_.emplace_back();
    record.id = fmt::format("{}-{:012x}", options_.id_prefix, id);
    record.warm_up = warm_, record.capped = capped;
    record.arrival_ns = arrival_ns;
    record.prompt_tokens = prompt.tokens;
    streams_.push_back(std::make_unique<Stream>());
    header_[0] = "X-Request-Id: " + record.id;
    record.sent_ns = wire::now_ns();
    ++running_, ++sent_;
    client_.start(id, std::string(path_of(options_.body.endpoint)), std::move(body_), header_);
  }

  // Those that were due and waited here have a row, too: nothing that arrived is forgotten.
  void leave_unsent() {
    for (const Waiting& each : waiting_) {
      RequestRecord& record = records_.emplace_back();
      record.id = fmt::format("{}-{:012x}", options_.id_prefix, records_.size() - 1);
      record.warm_up = warm_, record.capped = true;
      record.arrival_ns = each.arrival_ns;
      record.prompt_tokens = (*prompts_)[each.index].tokens;
      record.status = "aborted", record.error = "it waited in the client for --max-outstanding and was never sent";
      streams_.emplace_back();
      ++errors_;
    }
    waiting_.clear();
    if (!warm_) result.not_sent = static_cast<std::int64_t>(prompts_->size() - next_);
  }

  void give_up() {
    for (std::size_t id = 0; id < streams_.size(); ++id) {
      if (streams_[id] != nullptr) client_.cancel(static_cast<HttpClient::Id>(id), *this);
    }
  }

  void take_event(HttpClient::Id id, std::string_view event, std::uint64_t now_ns) {
    Stream& stream = *streams_[id];
    RequestRecord& record = records_[id];
    if (event == "[DONE]") {
      stream.done = true;
    } else if (parse_message(event, message_)) {
      take(id, now_ns);
    } else {
      if (record.malformed++ == 0) record.error = fmt::format("not a JSON object: {}", shortened(event));
    }
  }

  void take(HttpClient::Id id, std::uint64_t now_ns) {
    Stream& stream = *streams_[id];
    RequestRecord& record = records_[id];
    if (!message_.error.empty()) stream.error = message_.error;
    if (message_.prompt_tokens) record.prompt_tokens = *message_.prompt_tokens, record.prompt_by_usage = true;
    if (message_.completion_tokens) stream.completion_tokens = message_.completion_tokens;
    if (message_.cached_tokens) record.cached_tokens = message_.cached_tokens;
    if (!message_.finish_reason.empty()) record.finish_reason = message_.finish_reason;
    if (!message_.choices) return;
    const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(message_.text.size(), UINT32_MAX));
    stream.ids += message_.token_ids;
    record.marks.push_back({now_ns, bytes, static_cast<std::uint32_t>(message_.token_ids)});
    if (bytes > 0) ++messages_;
    if (options_.keep_text) record.text += message_.text;
  }

  void conclude(HttpClient::Id id, const Outcome& outcome) {
    RequestRecord& record = records_[id];
    Stream& stream = *streams_[id];
    const bool whole = outcome.failure == Failure::kNone;
    if (record.streamed && whole) {
      // What has no end behind it may be the half of an event: not malformed, but cut.
      const std::int64_t malformed = record.malformed;
      stream.sse.finish([&](std::string_view event) { take_event(id, event, record.end_ns); });
      if (record.malformed > malformed) record.malformed = malformed, record.error.clear();
    }
    record.malformed += stream.sse.faults();
    const bool ended = stream.done || !record.finish_reason.empty();
    if (!whole && !(record.streamed && ended)) return set(record, std::string(status_of(outcome.failure)), outcome.error);
    if (outcome.http_status < 200 || outcome.http_status > 299)
      return set(record, fmt::format("http {}", outcome.http_status), words_of_error(stream.body));
    if (!record.streamed) return conclude_whole(id);
    if (!stream.error.empty()) return set(record, "error", stream.error);
    if (record.malformed > 0)
      return set(record, "malformed", record.error.empty() ? "a line that is no field of an event" : record.error);
    if (!ended) return set(record, "cut", "the stream ended without [DONE] and without a finish_reason");
    record.status = "finished";
  }

  // An answer in one piece: it was asked for so, or the server does not stream.
  void conclude_whole(HttpClient::Id id) {
    RequestRecord& record = records_[id];
    Stream& stream = *streams_[id];
    if (stream.body.empty()) return set(record, "cut", "the answer has no body");
    if (!parse_message(stream.body, message_))
      return set(record, "malformed", fmt::format("the answer is not a JSON object: {}", shortened(stream.body)));
    take(id, record.end_ns);
    if (!message_.error.empty()) return set(record, "error", message_.error);
    if (!message_.choices) return set(record, "malformed", fmt::format("the answer has no choices: {}", shortened(stream.body)));
    record.status = "finished";
  }

  std::string words_of_error(const std::string& body) {
    if (parse_message(body, message_) && !message_.error.empty()) return shortened(message_.error);
    return shortened(std::string_view(body).substr(0, body.find('\n')));
  }

  static void set(RequestRecord& record, std::string status, std::string error) {
    record.status = std::move(status);
    record.error = shortened(error);
  }

  static void count_tokens(RequestRecord& record, const Stream& stream) {
    const auto messages = std::ranges::count_if(record.marks, [](const Mark& mark) { return mark.bytes > 0; });
    if (stream.completion_tokens) {
      record.output_tokens = *stream.completion_tokens, record.counted_by = CountedBy::kUsage;
    } else if (stream.ids > 0) {
      record.output_tokens = stream.ids, record.counted_by = CountedBy::kTokenIds;
    } else if (record.streamed) {
      record.output_tokens = messages, record.counted_by = CountedBy::kMessages;
    }
    divide_tokens(record);
  }

  void tell(bool last = false) {
    const std::uint64_t now_ns = wire::now_ns();
    cpu_.look(now_ns);
    if (!options_.progress || (!last && now_ns - told_ns_ < kProgressNs)) return;
    told_ns_ = now_ns;
    options_.progress({.warm_up = warm_,
                       .all = static_cast<std::int64_t>(prompts_->size()),
                       .sent = sent_,
                       .running = running_,
                       .waiting = static_cast<std::int64_t>(waiting_.size()),
                       .done = done_,
                       .errors = errors_,
                       .messages = messages_,
                       .seconds = static_cast<double>(now_ns - std::min(begin_ns_, now_ns)) * 1e-9,
                       .mean_ttft_ns = ttft_count_ == 0 ? 0 : ttft_sum_ / static_cast<double>(ttft_count_)});
  }

  struct Waiting {
    std::size_t index;
    std::uint64_t arrival_ns;
  };
  const LoadOptions& options_;
  HttpClient& client_;
  const Bodies& bodies_;
  const std::vector<Prompt>* prompts_ = nullptr;
  std::vector<RequestRecord>& records_ = result.requests;
  std::vector<std::unique_ptr<Stream>> streams_;  // by id; nullptr: it has ended
  std::deque<Waiting> waiting_;
  std::deque<std::uint64_t> free_since_;
  std::vector<std::string> header_ = {""};
  std::string body_;
  std::size_t body_for_ = SIZE_MAX, next_ = 0;
  Message message_;
  bool warm_ = false;
  std::uint64_t begin_ns_ = 0, end_ns_ = 0, told_ns_ = 0;
  std::int64_t running_ = 0, sent_ = 0, done_ = 0, errors_ = 0, messages_ = 0, ttft_count_ = 0;
  double ttft_sum_ = 0;
  CpuMeter cpu_;
};

}  // namespace

std::string_view words_of(CountedBy by) {
  switch (by) {
    case CountedBy::kUsage:
      return "usage";
    case CountedBy::kTokenIds:
      return "token ids";
    case CountedBy::kTokenizer:
      return "tokenizer";
    case CountedBy::kMessages:
      return "messages";
    case CountedBy::kUnknown:
      break;
  }
  return "unknown";
}

const Mark* RequestRecord::first() const {
  if (!streamed || marks.empty()) return nullptr;
  const auto found = std::ranges::find_if(marks, [](const Mark& mark) { return mark.bytes > 0; });
  return found == marks.end() ? &marks.front() : &*found;
}

const Mark* RequestRecord::last() const {
  if (!streamed || marks.empty()) return nullptr;
  const auto found = std::find_if(marks.rbegin(), marks.rend(), [](const Mark& mark) { return mark.bytes > 0; });
  return found == marks.rend() ? &marks.back() : &*found;
}

ClockPair read_clocks() {
  const std::uint64_t before = wire::now_ns(), wall = wire::read_clock_ns(CLOCK_REALTIME), after = wire::now_ns();
  return {before + (after - before) / 2, wall, (after - before + 1) / 2};
}

void divide_tokens(RequestRecord& request) {
  if (request.counted_by == CountedBy::kTokenIds) return;
  std::uint64_t bytes = 0, seen = 0;
  std::int64_t given = 0;
  for (const Mark& mark : request.marks) bytes += mark.bytes;
  const auto messages = std::ranges::count_if(request.marks, [](const Mark& mark) { return mark.bytes > 0; });
  for (Mark& mark : request.marks) {
    mark.tokens = mark.bytes > 0 ? 1 : 0;
    if (bytes == 0 || messages == request.output_tokens) continue;
    seen += mark.bytes;
    const auto until = static_cast<std::int64_t>(static_cast<double>(request.output_tokens) * static_cast<double>(seen) /
                                                 static_cast<double>(bytes) + 0.5);
    mark.tokens = static_cast<std::uint32_t>(until - given);
    given = until;
  }
}

void count_tokens(const Tokenizer& tokenizer, LoadResult& result) {
  for (RequestRecord& request : result.requests) {
    const bool unsaid = request.counted_by == CountedBy::kMessages || request.counted_by == CountedBy::kUnknown;
    if (!unsaid || !request.finished()) continue;
    request.output_tokens = tokenizer.count(request.text);
    request.counted_by = CountedBy::kTokenizer;
    divide_tokens(request);
  }
}

Result<LoadResult> run_load(const Prompts& prompts, const Prompts& warm_up, const LoadOptions& options) {
  LLMPROF_LET(const std::unique_ptr<HttpClient> client, HttpClient::make(options.http));
  LLMPROF_LET(const Bodies bodies, Bodies::make(options.body));
  Driver driver(options, *client, bodies);
  driver.result.clocks.push_back(read_clocks());
  driver.warm_up(warm_up);
  driver.measure(prompts);
  driver.result.clocks.push_back(read_clocks());
  return std::move(driver.result);
}

}  // namespace llmprof::load
