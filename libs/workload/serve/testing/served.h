#pragma once
// A LiveEngine under a script, for tests: what arrives before which step, and what became of it.

#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "workload/serve/live_engine.h"

namespace llmprof::workload {

// vLLM's rules for blocks of 4 tokens, `usable` of them.
inline serving::EngineRules small_engine(std::int64_t usable, std::int64_t budget = 64, std::int64_t most_len = 96) {
  serving::EngineRules rules;
  rules.engine = "vllm";
  rules.block_size = 4;
  rules.num_gpu_blocks = usable + 1;
  rules.max_num_batched_tokens = budget;
  rules.max_num_seqs = 8;
  rules.max_model_len = most_len;
  rules.scheduler_reserve_full_isl = true;
  return rules;
}

// A model whose next token is a number made of all tokens before it, read from the cache where the scheduler says they
// are: a wrong block, position or prefix changes what a request gets.
class FakeRunner final : public StepRunner {
 public:
  explicit FakeRunner(const serving::EngineRules& rules)
      : block_tokens_(rules.block_size), cache_(static_cast<std::size_t>(rules.num_gpu_blocks * rules.block_size)) {}
  const ModelConfig& config() const override { return config_; }

  static Token next_of(const std::function<Token(std::int64_t)>& token_at, std::int64_t count) {
    std::uint64_t x = 1;
    for (std::int64_t i = 0; i < count; ++i)
      x = (x ^ static_cast<std::uint64_t>(token_at(i))) * 0x9E3779B97F4A7C15ULL + 7;
    return static_cast<Token>(x >> 40);
  }
  static std::vector<Token> alone(std::vector<Token> tokens, std::int32_t outputs) {
    const std::size_t prompt = tokens.size();
    for (std::int32_t i = 0; i < outputs; ++i) {
      const auto at = [&](std::int64_t place) { return tokens[static_cast<std::size_t>(place)]; };
      tokens.push_back(next_of(at, std::ssize(tokens)));
    }
    return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
  }

  Result<void> run(const StepInput& input, std::span<Token> next) override {
    if (fails) return Error{ErrorCode::kIo, "the device is gone", ""};
    for (const NewTokens& sequence : input.sequences) {
      for (std::int64_t i = 0; i < sequence.tokens; ++i)
        slot(sequence, sequence.position + i) = input.tokens[static_cast<std::size_t>(sequence.row + i)];
    }
    std::size_t at = 0;
    for (const NewTokens& sequence : input.sequences) {
      if (!sequence.sampled) continue;
      next[at++] = next_of([&](std::int64_t position) { return slot(sequence, position); }, sequence.context());
    }
    return {};
  }

  bool fails = false;

 private:
  Token& slot(const NewTokens& sequence, std::int64_t position) {
    const std::int64_t block = sequence.blocks[position / block_tokens_];
    return cache_[static_cast<std::size_t>(block * block_tokens_ + position % block_tokens_)];
  }
  ModelConfig config_;
  std::int64_t block_tokens_;
  std::vector<Token> cache_;
};

// What the engine told.
class Served final : public EngineListener {
 public:
  struct StepSeen {
    serving::Step step;
    std::int64_t scheduled_ns, begin_ns, end_ns;
    std::vector<std::string> ids;
    std::vector<StepReport::Member> members;  // without their ids
  };
  struct Request {
    std::vector<Token> tokens;
    std::optional<Finish> finish;
    std::int32_t cached = 0;
    std::vector<std::size_t> steps;  // that brought a token
  };

  void ended(const Ended& ended) override { this->all_ended.push_back(ended); }
  void step(const StepReport& report) override {
    StepSeen& seen = steps.emplace_back(
        StepSeen{report.step, report.scheduled_ns, report.begin_ns, report.end_ns, {}, {}});
    for (StepReport::Member member : report.members) {
      seen.ids.push_back(*member.id);
      member.id = nullptr;
      seen.members.push_back(member);
    }
  }
  void deliver(std::span<const Delivery> deliveries) override {
    for (const Delivery& delivery : deliveries) {
      Request& request = requests[delivery.ticket];
      if (delivery.token) request.tokens.push_back(*delivery.token), request.steps.push_back(steps.size() - 1);
      if (delivery.token) request.cached = delivery.cached_tokens;
      if (delivery.finish) request.finish = delivery.finish;
    }
  }
  std::int64_t preempted() const {
    std::int64_t sum = 0;
    for (const StepSeen& each : steps) sum += each.step.preempted;
    return sum;
  }

  std::vector<StepSeen> steps;
  std::vector<Ended> all_ended;
  std::map<std::uint64_t, Request> requests;  // by ticket
};

inline GenerationRequest request_for(std::uint64_t ticket, std::vector<Token> prompt, std::int32_t most_tokens) {
  GenerationRequest request;
  request.ticket = ticket;
  request.id = "r" + std::to_string(ticket);
  request.prompt = std::move(prompt);
  request.most_tokens = most_tokens;
  request.arrival_ns = now_ns();
  return request;
}

struct Arrival {
  std::size_t step = 0;  // before which it comes, or as soon as the engine has nothing else to do
  GenerationRequest request;
};

// Runs the script, whose arrivals are in order, to its end. Its steps are then those before which requests came.
inline Result<void> run_script(LiveEngine& engine, const Served& served, std::vector<Arrival>& script) {
  for (std::size_t next = 0; next < script.size() || !engine.idle();) {
    const std::int64_t now = now_ns();
    const bool idle = engine.idle();
    for (bool first = true; next < script.size(); first = false, ++next) {
      Arrival& arrival = script[next];
      if (arrival.step > served.steps.size() && !(idle && first)) break;
      arrival.step = served.steps.size();
      arrival.request.arrival_ns = now;
      engine.add(arrival.request);
    }
    LLMPROF_LET(const bool worked, engine.step());
    if (!worked) return Error{ErrorCode::kInternal, "requests wait, and nothing can be scheduled", ""};
  }
  return {};
}

// Requests that share beginnings, each unlike the others at its end; `gap` steps apart.
inline std::vector<Arrival> random_script(std::uint64_t seed, std::int64_t vocab, std::size_t count, std::size_t gap) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };
  std::vector<std::vector<Token>> beginnings(3);
  for (auto& beginning : beginnings) {
    for (std::uint64_t i = 0, n = 6 + up_to(14); i < n; ++i)
      beginning.push_back(static_cast<Token>(random() % static_cast<std::uint64_t>(vocab)));
  }
  std::vector<Arrival> script;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Token> prompt = up_to(2) > 0 ? beginnings[up_to(2)] : std::vector<Token>();
    for (std::uint64_t j = 0, n = up_to(10); j < n; ++j)
      prompt.push_back(static_cast<Token>(random() % static_cast<std::uint64_t>(vocab)));
    prompt.push_back(static_cast<Token>(i % static_cast<std::size_t>(vocab)));
    GenerationRequest request = request_for(i + 1, std::move(prompt), static_cast<std::int32_t>(1 + up_to(14)));
    request.priority = static_cast<std::int32_t>(up_to(2));
    script.push_back({i * gap, std::move(request)});
  }
  return script;
}

}  // namespace llmprof::workload
