#include "workload/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/version.h"
#include "serving/simulate.h"

namespace llmprof::workload {
namespace {

constexpr std::size_t kMostIdBytes = 256;
constexpr std::size_t kMostIdsKept = 1 << 20;

std::string header_of(const std::string& id) { return "X-Request-Id: " + id + "\r\n"; }

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

void Inbox::add(GenerationRequest generation) {
  {
    const std::lock_guard lock(mutex_);
    orders_.requests.push_back(std::move(generation));
    changed_ = true;
  }
  some_.notify_one();
}

void Inbox::abort(std::uint64_t ticket) {
  {
    const std::lock_guard lock(mutex_);
    orders_.aborts.push_back(ticket);
    changed_ = true;
  }
  some_.notify_one();
}

void Inbox::drain(std::int64_t until_ns) {
  {
    const std::lock_guard lock(mutex_);
    orders_.drain = changed_ = true;
    orders_.until_ns = until_ns;
  }
  some_.notify_one();
}

Inbox::Orders Inbox::take(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) some_.wait(lock, [this] { return changed_; });
  changed_ = false;
  Orders taken{{}, {}, orders_.drain, orders_.until_ns};
  taken.requests.swap(orders_.requests);
  taken.aborts.swap(orders_.aborts);
  return taken;
}

Service::Service(const serving::EngineRules& rules, StepRunner& runner, HttpServer& http, ServiceOptions options)
    : options_(std::move(options)),
      http_(http),
      metrics_(options_.limits.model, rules, rules.num_gpu_blocks - 1),
      engine_(rules, runner, *this),
      started_s_(std::time(nullptr)),
      instance_(fmt::format("{:x}", static_cast<std::uint64_t>(now_ns()))) {}

Service::~Service() {
  if (steps_ != nullptr) std::fclose(steps_);
}

Result<void> Service::open() {
  if (options_.steps_path.empty()) return {};
  steps_ = std::fopen(options_.steps_path.c_str(), "we");
  if (steps_ == nullptr) return base::errno_error(base::code_of_errno(errno), options_.steps_path, errno);
  return {};
}

// ---- the engine's thread ----

Result<void> Service::run_engine() {
  bool worked = false;
  for (;;) {
    Inbox::Orders orders = inbox_.take(!worked);
    for (GenerationRequest& request : orders.requests) engine_.add(std::move(request));
    for (const std::uint64_t ticket : orders.aborts) engine_.abort(ticket);
    if (orders.drain && now_ns() > orders.until_ns) engine_.abort_all();
    const Result<bool> step = engine_.step();
    if (!step) return engine_.fail_all(), count_load(), step.error();
    worked = *step;
    count_load();
    if (orders.drain && engine_.idle()) return steps_written();
  }
}

void Service::count_load() { metrics_.load(engine_.running(), engine_.waiting(), engine_.blocks_used()); }

void Service::scheduled(std::int32_t prompt_tokens, std::int32_t cached_tokens) {
  metrics_.scheduled(prompt_tokens, cached_tokens);
}
void Service::token(std::int64_t since_last_ns, bool first, std::int32_t prompt_tokens) {
  metrics_.token(since_last_ns, first, prompt_tokens);
}
void Service::ended(const Ended& ended) { metrics_.ended(ended); }

void Service::step(const StepReport& report) {
  metrics_.step(report);
  count_load();  // before its tokens are handed out: who has an answer finds it counted
  if (steps_ == nullptr) return;
  const serving::Step& step = report.step;
  base::Json members = base::Json::array();
  for (const StepReport::Member& member : report.members)
    members.push_back({*member.id, member.tokens, member.context, member.sampled});
  base::Json arrived = base::Json::array();
  for (const StepReport::Arrival& each : report.arrived)
    arrived.push_back({each.id, each.prompt_tokens, each.most_tokens, each.priority});
  const base::Json line{{"step", report.number},
                        {"scheduled_ns", report.scheduled_ns},
                        {"begin_ns", report.begin_ns},
                        {"end_ns", report.end_ns},
                        {"arrived", std::move(arrived)},
                        {"members", std::move(members)},
                        {"tokens", step.batch.tokens()},
                        {"padded_tokens", step.batch.padded_tokens},
                        {"chunks", step.batch.chunks.size()},
                        {"decodes", step.batch.contexts.size()},
                        {"sampled", step.batch.sampled},
                        {"blocks_used", step.blocks_used},
                        {"running", step.running},
                        {"waiting", step.waiting},
                        {"preempted", step.preempted},
                        {"left", report.left}};
  const std::string text = base::to_line(line) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), steps_) == text.size() && std::fflush(steps_) == 0) return;
  if (steps_error_ == 0) steps_error_ = errno;
}

// Requests are served even so; whoever reads the file has to know.
Result<void> Service::steps_written() const {
  if (steps_error_ == 0) return {};
  return base::errno_error(base::code_of_errno(steps_error_), options_.steps_path, steps_error_);
}

void Service::deliver(std::span<const Delivery> deliveries) {
  if (deliveries.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    deliveries_.insert(deliveries_.end(), deliveries.begin(), deliveries.end());
  }
  http_.wake();
}

// ---- the server's thread ----

void Service::refuse(HttpServer::Id connection, const openai::Refusal& refusal, std::string_view headers) {
  http_.reply(connection, refusal.status, "application/json", openai::error_body(refusal),
              fmt::format("{}{}", refusal.status == 503 ? "Retry-After: 1\r\n" : "", headers));
}

void Service::request(HttpServer::Id connection, const base::Request& request) {
  const std::string_view path = path_of(request.target);
  const bool completions = path == "/v1/completions", chat = path == "/v1/chat/completions";
  if (completions || chat) {
    if (request.method != "POST") return refuse(connection, {405, "POST it", ""});
    if (draining_ || failed_) return refuse(connection, {503, "the server is shutting down", ""});
    return complete(connection, chat ? openai::Endpoint::kChat : openai::Endpoint::kCompletions, request);
  }
  const bool known = path == "/health" || path == "/metrics" || path == "/v1/models" || path == "/version";
  if (!known) return refuse(connection, {404, fmt::format("there is no {}", path), ""});
  if (request.method != "GET") return refuse(connection, {405, "GET it", ""});
  if (path == "/metrics")
    return http_.reply(connection, 200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text());
  if (path == "/v1/models")
    return http_.reply(connection, 200, "application/json", openai::models_body(options_.limits, started_s_));
  if (path == "/version")
    return http_.reply(connection, 200, "application/json",
                       base::to_line(base::Json{{"version", base::version()}, {"server", "llmprof-workload"}}));
  http_.reply(connection, draining_ || failed_ ? 503 : 200, "text/plain", "");
}

// That of the client, where it is one word; else one of ours.
std::string Service::id_of(const base::Request& request) const {
  const std::string* const given = request.header("x-request-id");
  const bool fine = given != nullptr && !given->empty() && given->size() <= kMostIdBytes &&
                    std::ranges::all_of(*given, [](char c) { return c > ' ' && c < '\x7f'; });
  return fine ? *given : fmt::format("{}-{}", instance_, tickets_);
}

// A profile knows requests by their ids: one that comes again gets another. Those of long ago are forgotten.
std::string Service::engine_id(const std::string& id) {
  if (ids_.size() >= kMostIdsKept) ids_.clear();
  if (ids_.insert(id).second) return id;
  return fmt::format("{}#{}", id, tickets_);
}

void Service::complete(HttpServer::Id connection, openai::Endpoint endpoint, const base::Request& request) {
  const std::int64_t arrival_ns = now_ns();
  const std::uint64_t ticket = ++tickets_;
  const std::string id = id_of(request);
  openai::Parsed parsed = openai::parse(endpoint, request.body, options_.limits);
  if (!parsed.completion) return refuse(connection, parsed.refusal, header_of(id));
  openai::CompletionRequest& completion = *parsed.completion;
  GenerationRequest& generation = completion.generation;
  const auto prompt_tokens = std::ssize(generation.prompt);
  const serving::Rejection rejection = engine_.check(prompt_tokens, generation.most_tokens);
  if (rejection != serving::Rejection::kNone)
    return refuse(connection, {400, std::string(serving::reason_text(rejection)), "max_tokens"}, header_of(id));
  generation.ticket = ticket;
  generation.id = engine_id(id);
  generation.arrival_ns = arrival_ns;
  Pending& pending = pending_[ticket];
  pending.connection = connection;
  pending.stream = completion.stream;
  pending.answer = {.endpoint = endpoint,
                    .id = (endpoint == openai::Endpoint::kChat ? "chatcmpl-" : "cmpl-") + id,
                    .request_id = id,
                    .model = options_.limits.model,
                    .created_s = std::time(nullptr),
                    .prompt_tokens = static_cast<std::int32_t>(prompt_tokens),
                    .return_token_ids = completion.return_token_ids,
                    .include_usage = completion.include_usage};
  if (completion.return_token_ids) pending.prompt = generation.prompt;
  tickets_of_[connection] = ticket;
  inbox_.add(std::move(generation));
}

void Service::gone(HttpServer::Id connection) {
  const auto found = tickets_of_.find(connection);
  if (found == tickets_of_.end()) return;
  inbox_.abort(found->second);
  pending_.erase(found->second);
  tickets_of_.erase(found);
}

void Service::woken() {
  if (draining_ && !std::exchange(told_, true))
    inbox_.drain(now_ns() + std::chrono::nanoseconds(options_.shutdown).count());
  std::vector<Delivery> deliveries;
  {
    const std::lock_guard lock(mutex_);
    deliveries.swap(deliveries_);
  }
  for (const Delivery& delivery : deliveries) hand_out(delivery);
  if (!failed_) return;
  std::vector<std::uint64_t> left;
  for (const auto& [ticket, pending] : pending_) left.push_back(ticket);
  for (const std::uint64_t ticket : left) hand_out({.ticket = ticket, .token = {}, .finish = Finish::kFailed});
}

void Service::hand_out(const Delivery& delivery) {
  const auto found = pending_.find(delivery.ticket);
  if (found == pending_.end()) return;  // its client is gone
  Pending& pending = found->second;
  pending.answer.cached_tokens = delivery.cached_tokens;
  pending.outputs += delivery.token ? 1 : 0;
  if (pending.stream) {
    stream(pending, delivery);
  } else if (delivery.token) {
    pending.tokens.push_back(*delivery.token);
  }
  if (!delivery.finish) return;
  if (pending.stream) {
    http_.send(pending.connection, openai::last_events(pending.answer, pending.outputs));
    http_.end_stream(pending.connection);
  } else if (*delivery.finish == Finish::kFailed) {
    refuse(pending.connection, {500, "the engine failed", ""}, header_of(pending.answer.request_id));
  } else if (*delivery.finish == Finish::kAborted) {
    refuse(pending.connection, {503, "the server shut down before this request was finished", ""},
           header_of(pending.answer.request_id));
  } else {
    http_.reply(pending.connection, 200, "application/json",
                openai::body(pending.answer, pending.prompt, pending.tokens, *delivery.finish),
                header_of(pending.answer.request_id));
  }
  tickets_of_.erase(pending.connection);
  pending_.erase(found);
}

void Service::stream(Pending& pending, const Delivery& delivery) {
  const bool first = !std::exchange(pending.begun, true);
  if (first) http_.begin_stream(pending.connection, "text/event-stream; charset=utf-8",
                                header_of(pending.answer.request_id) + "Cache-Control: no-cache\r\n");
  http_.send(pending.connection, openai::token_event(pending.answer, delivery.token, delivery.finish, first));
}

}  // namespace llmprof::workload
