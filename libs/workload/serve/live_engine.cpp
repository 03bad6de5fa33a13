#include "workload/serve/live_engine.h"

#include <algorithm>
#include <utility>

#include "llmprof/annotate.h"

namespace llmprof::workload {
namespace {

constexpr std::uint64_t kNoContent = 0x6C6C6D70726F66ULL;  // before the first block

// What identifies a block and all before it. Not against people who look for collisions.
std::uint64_t content_after(std::uint64_t before, std::span<const Token> tokens) {
  std::uint64_t x = before;
  for (const Token token : tokens) {
    x += 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
  }
  return x;
}

std::uint32_t unsigned_of(std::int64_t value) { return static_cast<std::uint32_t>(std::max<std::int64_t>(value, 0)); }

std::uint32_t status_of(Finish finish) {
  switch (finish) {
    case Finish::kStop:
      return LLMPROF_FINISHED;
    case Finish::kLength:
      return LLMPROF_LENGTH;
    case Finish::kAborted:
      return LLMPROF_ABORTED;
    case Finish::kFailed:
      return LLMPROF_FAILED;
  }
  return LLMPROF_FAILED;
}

void announce_members(const StepReport& report, std::int64_t blocks) {
  if (llmprof_listening() == 0) return;
  for (const StepReport::Member& member : report.members)
    llmprof_step_member(member.id->c_str(), unsigned_of(member.tokens), unsigned_of(member.context));
  llmprof_request("", LLMPROF_ENGINE_PADDED, unsigned_of(report.step.batch.padded_tokens), 0);
  llmprof_request("", LLMPROF_ENGINE_BLOCKS, unsigned_of(report.step.blocks_used), unsigned_of(blocks));
}

// Batch, tokens and context of each, rounded where they differ: the members say it exactly.
struct Shape {
  const char* name;
  std::uint32_t batch, tokens, context;
};
Shape shape_of(const StepReport& report) {
  const serving::Batch& batch = report.step.batch;
  const char* const name = batch.chunks.empty() ? "decode" : batch.contexts.empty() ? "prefill" : "mixed";
  std::int64_t context = 0;
  for (const StepReport::Member& member : report.members) context += member.context;
  const auto count = std::ssize(report.members);
  return {name, unsigned_of(count), unsigned_of((batch.tokens() + count / 2) / count),
          unsigned_of((context + count / 2) / count)};
}

}  // namespace

LiveEngine::LiveEngine(const serving::EngineRules& rules, StepRunner& runner, EngineListener& listener)
    : rules_(rules),
      runner_(runner),
      listener_(listener),
      scheduler_(rules, workload_, progress_),
      ids_per_request_(rules.max_model_len / rules.block_size + 1) {
  workload_.content_tokens = rules.block_size;
  workload_.ids_of_outputs = true;
}

serving::Rejection LiveEngine::check(std::int64_t prompt_tokens, std::int64_t most_tokens) const {
  serving::Request request;
  request.prompt_tokens = static_cast<std::int32_t>(prompt_tokens);
  request.output_tokens = static_cast<std::int32_t>(most_tokens);
  return scheduler_.check(request);
}

// Places of requests that ended are used again: a server lives long.
LiveEngine::Slot LiveEngine::free_slot() {
  if (free_slots_.empty()) {
    const auto slot = static_cast<Slot>(live_.size());
    live_.emplace_back();
    progress_.emplace_back();
    workload_.requests.emplace_back().id_begin = slot * static_cast<std::uint64_t>(ids_per_request_);
    workload_.content_ids.resize(workload_.content_ids.size() + static_cast<std::size_t>(ids_per_request_));
    return slot;
  }
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void LiveEngine::add(GenerationRequest generation) {
  const Slot slot = free_slot();
  serving::Request& asked = request(slot);
  asked.arrival_ns = static_cast<double>(generation.arrival_ns);
  asked.prompt_tokens = static_cast<std::int32_t>(generation.prompt.size());
  asked.output_tokens = generation.most_tokens;
  asked.priority = generation.priority;
  asked.id_count = 0;
  Live& live = live_[slot];
  live = {};
  live.times = {.arrival_ns = generation.arrival_ns, .queued_ns = now_ns()};
  live.tokens = generation.prompt;
  live.content = kNoContent;
  live.generation = std::move(generation);
  describe(slot);
  by_ticket_[live.generation.ticket] = slot;
  arrived_.push_back({live.generation.id, asked.prompt_tokens, asked.output_tokens, asked.priority});
  scheduler_.add(slot);
  llmprof_request(live.generation.id.c_str(), LLMPROF_REQUEST_QUEUED, unsigned_of(asked.prompt_tokens),
                  unsigned_of(asked.output_tokens));
}

// The content of every block whose tokens are all known.
void LiveEngine::describe(Slot slot) {
  if (!rules_.enable_prefix_caching) return;
  Live& live = live_[slot];
  serving::Request& asked = request(slot);
  const auto size = static_cast<std::size_t>(rules_.block_size);
  for (; (asked.id_count + 1) * size <= live.tokens.size(); ++asked.id_count) {
    live.content = content_after(live.content, std::span(live.tokens).subspan(asked.id_count * size, size));
    workload_.content_ids[asked.id_begin + asked.id_count] = live.content;
  }
}

void LiveEngine::abort(std::uint64_t ticket) {
  const auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return;
  const Slot slot = found->second;
  scheduler_.remove(slot);
  end(slot, Finish::kAborted, now_ns());
}

void LiveEngine::abort_all() {
  while (!by_ticket_.empty()) {
    const std::uint64_t ticket = by_ticket_.begin()->first;
    deliveries_.push_back({.ticket = ticket, .token = {}, .finish = Finish::kAborted});
    abort(ticket);
  }
  listener_.deliver(deliveries_);
  deliveries_.clear();
}

void LiveEngine::fail_all() {
  while (!by_ticket_.empty()) end(by_ticket_.begin()->second, Finish::kFailed, now_ns());
}

Result<bool> LiveEngine::step() {
  const std::int64_t scheduled_ns = now_ns();
  if (!scheduler_.schedule(step_)) return false;
  announce_changes();
  fill_input();
  StepReport report{.number = steps_++,
                    .scheduled_ns = scheduled_ns,
                    .step = step_,
                    .members = members_,
                    .arrived = arrived_};
  LLMPROF_TRY(run_model(report));
  take_tokens(report.end_ns);
  report.left = std::ssize(by_ticket_);
  listener_.step(report);
  arrived_.clear();
  listener_.deliver(deliveries_);
  deliveries_.clear();
  return true;
}

// Preemptions and admissions, as the scheduler has decided them.
void LiveEngine::announce_changes() {
  const std::int64_t now = now_ns();
  for (const Slot slot : running_) {
    Live& live = live_[slot];
    const serving::Progress& progress = progress_[slot];
    if (progress.preemptions == live.preemptions) continue;
    live.preemptions = progress.preemptions;
    live.running = false;
    llmprof_request(live.generation.id.c_str(), LLMPROF_REQUEST_PREEMPTED, 0, 0);
  }
  std::erase_if(running_, [this](Slot slot) { return !live_[slot].running; });
  for (const auto& [slot, tokens] : scheduler_.members()) {
    Live& live = live_[slot];
    if (live.running) continue;
    live.running = true;
    running_.push_back(slot);
    const std::int32_t found = progress_[slot].computed - tokens;
    llmprof_request(live.generation.id.c_str(), LLMPROF_REQUEST_SCHEDULED, unsigned_of(found), 0);
    if (live.times.scheduled_ns != 0) continue;
    live.times.scheduled_ns = now;
    listener_.scheduled(request(slot).prompt_tokens, found);
  }
}

// The scheduler counts a step's tokens as computed as soon as they are scheduled.
void LiveEngine::fill_input() {
  tokens_.clear(), sequences_.clear(), samplers_.clear(), members_.clear();
  std::size_t sampled = 0;
  for (const auto& [slot, tokens] : scheduler_.members()) {
    const serving::Progress& progress = progress_[slot];
    const Live& live = live_[slot];
    const bool samples = sampled < step_.sampled.size() && step_.sampled[sampled] == slot;
    const std::int32_t before = progress.computed - tokens;
    sequences_.push_back({.row = std::ssize(tokens_),
                          .tokens = tokens,
                          .position = before,
                          .blocks = progress.blocks.data(),
                          .sampled = samples});
    tokens_.insert(tokens_.end(), live.tokens.begin() + before, live.tokens.begin() + progress.computed);
    members_.push_back({&live.generation.id, tokens, progress.computed, samples});
    if (!samples) continue;
    ++sampled;
    samplers_.push_back(&live.generation.sampler);
  }
  next_.resize(sampled);
}

Result<void> LiveEngine::run_model(StepReport& report) {
  report.begin_ns = now_ns();
  const Shape shape = shape_of(report);
  const llmprof::Step range(shape.name, shape.batch, shape.tokens, shape.context);
  announce_members(report, scheduler_.pool().usable());
  LLMPROF_TRY(runner_.run({.tokens = tokens_,
                           .sequences = sequences_,
                           .samplers = samplers_,
                           .padded_rows = step_.batch.padded_tokens},
                          next_));
  report.end_ns = now_ns();
  return {};
}

void LiveEngine::take_tokens(std::int64_t now) {
  finished_.clear();
  scheduler_.complete(step_, finished_);
  for (std::size_t i = 0; i < step_.sampled.size(); ++i) {
    const Slot slot = step_.sampled[i];
    Live& live = live_[slot];
    const Token token = next_[i];
    live.tokens.push_back(token);
    describe(slot);
    llmprof_request(live.generation.id.c_str(), LLMPROF_REQUEST_OUTPUT, 1, 0);
    const bool first = live.times.first_token_ns == 0;
    const std::int64_t since = now - (first ? live.times.arrival_ns : live.times.last_token_ns);
    if (first) live.times.first_token_ns = now;
    live.times.last_token_ns = now;
    listener_.token(since, first, request(slot).prompt_tokens);
    Delivery& delivery = deliveries_.emplace_back();
    delivery = {.ticket = live.generation.ticket,
                .token = token,
                .finish = {},
                .cached_tokens = progress_[slot].cached};
    const bool whole = progress_[slot].delivered == progress_[slot].output;
    const bool stop = std::ranges::find(live.generation.stop, token) != live.generation.stop.end();
    if (!whole && !stop) continue;
    if (!whole) scheduler_.remove(slot);  // before its last token
    delivery.finish = stop ? Finish::kStop : Finish::kLength;
    end(slot, *delivery.finish, now);
  }
}

// The scheduler does not know it any more.
void LiveEngine::end(Slot slot, Finish finish, std::int64_t now) {
  Live& live = live_[slot];
  const auto outputs = static_cast<std::int32_t>(live.tokens.size() - live.generation.prompt.size());
  llmprof_request(live.generation.id.c_str(), LLMPROF_REQUEST_FINISHED, status_of(finish), unsigned_of(outputs));
  if (live.times.last_token_ns == 0) live.times.last_token_ns = now;
  listener_.ended({finish, static_cast<std::int32_t>(live.generation.prompt.size()), outputs, live.times});
  by_ticket_.erase(live.generation.ticket);
  if (live.running) std::erase(running_, slot);
  live.running = false;
  free_slots_.push_back(slot);
}

}  // namespace llmprof::workload
