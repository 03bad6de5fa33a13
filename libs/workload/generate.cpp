#include "workload/generate.h"

#include <fmt/format.h>

#include <time.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace llmprof::workload {

namespace {

Error bad_option(std::string message) { return {ErrorCode::kUsage, std::move(message), ""}; }

// Values of the cache, of attention's scores and of what a pass keeps. As floating point: absurd sizes multiply to more
// than 64 bits.
double kept_values(const ModelConfig& c, const GenerateOptions& o) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double context = number(o.prompt_tokens + o.new_tokens), rows = number(o.batch) * number(o.prompt_tokens);
  const double cache = 2 * number(c.layers) * number(o.batch) * context * number(c.kv_heads) * number(c.head_dim);
  const double scores = rows * number(c.heads) * context;
  const double of_row = 4 * number(c.hidden) + 2 * number(c.intermediate) + 4 * number(c.heads) * number(c.head_dim);
  return cache + scores + rows * of_row + number(o.batch) * number(c.vocab);
}

class CpuRunner final : public Runner {
 public:
  CpuRunner(Model& model, const GenerateOptions& options)
      : model_(model),
        sampler_(options.sampler),
        cache_(model.config(), options.batch, options.prompt_tokens + options.new_tokens) {}
  const ModelConfig& config() const override { return model_.config(); }

  Result<void> run(std::int64_t /*position*/, std::span<const Token> tokens, std::span<Token> next) override {
    const std::span<const float> logits = model_.forward(tokens, cache_);  // (B, V)
    const llmprof::Module range("sampling");
    const auto vocab = static_cast<std::size_t>(model_.config().vocab);
    for (std::size_t sequence = 0; sequence < next.size(); ++sequence) {
      next[sequence] = sample(sampler_, logits.subspan(sequence * vocab, vocab), static_cast<std::int64_t>(sequence),
                              cache_.length());
    }
    return {};
  }

 private:
  Model& model_;
  Sampler sampler_;
  KvCache cache_;
};

class Generator {
 public:
  Generator(Runner& runner, const GenerateOptions& options)
      : runner_(runner), options_(options), next_(static_cast<std::size_t>(options.batch)) {
    result_.tokens.resize(static_cast<std::size_t>(options.batch));
  }

  Result<Generated> run() {
    const std::vector<Token> prompts = random_prompts(runner_.config(), options_);
    LLMPROF_TRY(runner_.prepare(prompts));
    {
      const llmprof::Stage stage("prefill");
      LLMPROF_LET(result_.prefill, step("prefill", prompts));
    }
    if (options_.new_tokens > 1) {
      const llmprof::Stage stage("decode");
      for (std::int64_t i = 1; i < options_.new_tokens; ++i) {
        LLMPROF_LET(const StepTime time, step("decode", std::vector<Token>(next_)));
        result_.decode.push_back(time);
      }
    }
    return std::move(result_);
  }

 private:
  // One pass and its sampling. tokens (B, T); what it samples becomes next_ (B).
  Result<StepTime> step(const char* stage, const std::vector<Token>& tokens) {
    const std::int64_t new_tokens = std::ssize(tokens) / options_.batch;
    const std::int64_t begin_ns = now_ns();
    const llmprof::Step step(stage, static_cast<std::uint32_t>(options_.batch), static_cast<std::uint32_t>(new_tokens),
                             static_cast<std::uint32_t>(position_ + new_tokens));
    LLMPROF_TRY(runner_.run(position_, tokens, next_));
    position_ += new_tokens;
    for (std::size_t sequence = 0; sequence < next_.size(); ++sequence) {
      result_.tokens[sequence].push_back(next_[sequence]);
    }
    return StepTime{begin_ns, now_ns()};
  }

  Runner& runner_;
  const GenerateOptions& options_;
  std::int64_t position_ = 0;
  std::vector<Token> next_;  // (B)
  Generated result_;
};

// Uniform in [0, 1), from a counter: no state to carry between draws.
double uniform(std::uint64_t seed, std::int64_t sequence, std::int64_t position) {
  std::uint64_t x = seed;
  for (const std::int64_t part : {sequence, position}) {
    x += 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(part) + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    x ^= x >> 31;
  }
  return static_cast<double>(x >> 11) * 0x1.0p-53;
}

// Damaged weights can give NaN, which must not break the order that sorting relies on.
float logit(std::span<const float> logits, Token token) {
  const float value = logits[static_cast<std::size_t>(token)];
  return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
}

// The k likeliest tokens, likeliest first; the smaller token first among equals.
std::vector<Token> likeliest(std::span<const float> logits, std::int64_t k) {
  std::vector<Token> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto last = tokens.begin() + std::clamp<std::ptrdiff_t>(k, 1, std::ssize(tokens));
  std::partial_sort(tokens.begin(), last, tokens.end(), [&](Token a, Token b) {
    const float logit_a = logit(logits, a);
    const float logit_b = logit(logits, b);
    return logit_a != logit_b ? logit_a > logit_b : a < b;
  });
  tokens.erase(last, tokens.end());
  return tokens;
}

}  // namespace

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::int64_t ttft_ns(const Generated& generated) { return generated.prefill.end_ns - generated.prefill.begin_ns; }

std::vector<std::int64_t> tpot_samples_ns(const Generated& generated) {
  std::vector<std::int64_t> samples;
  for (std::size_t i = 1; i < generated.decode.size(); ++i) {
    samples.push_back(generated.decode[i].begin_ns - generated.decode[i - 1].begin_ns);
  }
  return samples;
}

std::vector<Token> random_prompts(const ModelConfig& config, const GenerateOptions& options) {
  std::vector<Token> prompts(static_cast<std::size_t>(options.batch * options.prompt_tokens));
  std::uint64_t state = options.prompt_seed;
  for (Token& token : prompts) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    token = static_cast<Token>((state >> 33) % static_cast<std::uint64_t>(config.vocab));
  }
  return prompts;
}

Result<void> check_run(const ModelConfig& config, const GenerateOptions& options) {
  constexpr std::int64_t kMostSequences = 1 << 16;
  if (options.batch < 1 || options.batch > kMostSequences) {
    return bad_option(fmt::format("batch is {}, allowed are 1 to {}", options.batch, kMostSequences));
  }
  if (options.prompt_tokens < 1 || options.new_tokens < 1)
    return bad_option("prompt and new tokens must be at least 1");
  if (options.prompt_tokens > config.positions || options.new_tokens > config.positions - options.prompt_tokens) {
    return bad_option(fmt::format("{} prompt and {} new tokens exceed the {} positions of the model",
                                  options.prompt_tokens, options.new_tokens, config.positions));
  }
  if (kept_values(config, options) > 1e15) {  // 4 PB: beyond any machine, and far from the end of 64 bits
    return bad_option("the sizes multiply to more memory than any machine has");
  }
  if (options.sampler.kind == Sampler::Kind::kTopK && options.sampler.k < 1) return bad_option("k must be at least 1");
  return {};
}

Result<Generated> generate(Runner& runner, const GenerateOptions& options) { return Generator(runner, options).run(); }

Generated generate(Model& model, const GenerateOptions& options) {
  CpuRunner runner(model, options);
  return std::move(generate(runner, options).value());  // nothing on a CPU fails
}

Token sample(const Sampler& sampler, std::span<const float> logits, std::int64_t sequence, std::int64_t position) {
  if (sampler.kind == Sampler::Kind::kGreedy) {
    return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  const std::vector<Token> tokens = likeliest(logits, sampler.k);
  const float largest = logit(logits, tokens.front());
  std::vector<double> cumulative;
  double sum = 0;
  for (const Token token : tokens) {
    sum += std::exp(static_cast<double>(logit(logits, token) - largest) / sampler.temperature);
    cumulative.push_back(sum);
  }
  const double target = uniform(sampler.seed, sequence, position) * sum;
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.end() - 1, target) - cumulative.begin();
  return tokens[static_cast<std::size_t>(drawn)];
}

}  // namespace llmprof::workload
