#include "workload/generate.h"

#include <fmt/format.h>
#include <time.h>

namespace llmprof::workload {
namespace {

Error bad_option(std::string message) { return {ErrorCode::kUsage, std::move(message), ""}; }

class Generator {
 public:
  Generator(Model& model, const GenerateOptions& options)
      : model_(model),
        options_(options),
        cache_(model.config(), options.batch, options.prompt_tokens + options.new_tokens),
        next_(static_cast<std::size_t>(options.batch)) {
    result_.tokens.resize(static_cast<std::size_t>(options.batch));
  }

  Generated run() {
    const std::vector<Token> prompts = random_prompts(model_.config(), options_);
    {
      const llmprof::Stage stage("prefill");
      result_.prefill = step("prefill", prompts);
    }
    if (options_.new_tokens > 1) {
      const llmprof::Stage stage("decode");
      for (std::int64_t i = 1; i < options_.new_tokens; ++i) result_.decode.push_back(step("decode", next_));
    }
    return std::move(result_);
  }

 private:
  // One pass and its sampling. tokens (B, T); what it samples becomes next_ (B).
  StepTime step(const char* stage, const std::vector<Token>& tokens) {
    const std::int64_t new_tokens = std::ssize(tokens) / options_.batch;
    const std::int64_t begin_ns = now_ns();
    const llmprof::Step step(stage, static_cast<std::uint32_t>(options_.batch), static_cast<std::uint32_t>(new_tokens),
                             static_cast<std::uint32_t>(cache_.length() + new_tokens));
    sample_all(model_.forward(tokens, cache_));
    return {begin_ns, now_ns()};
  }

  void sample_all(std::span<const float> logits) {  // (B, V)
    const llmprof::Module range("sampling");
    const auto vocab = static_cast<std::size_t>(model_.config().vocab);
    for (std::size_t sequence = 0; sequence < next_.size(); ++sequence) {
      next_[sequence] = sample(options_.sampler, logits.subspan(sequence * vocab, vocab),
                               static_cast<std::int64_t>(sequence), cache_.length());
      result_.tokens[sequence].push_back(next_[sequence]);
    }
  }

  Model& model_;
  const GenerateOptions& options_;
  KvCache cache_;
  std::vector<Token> next_;  // (B)
  Generated result_;
};

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
  if (options.sampler.kind == Sampler::Kind::kTopK && options.sampler.k < 1) return bad_option("k must be at least 1");
  return {};
}

Generated generate(Model& model, const GenerateOptions& options) { return Generator(model, options).run(); }

}  // namespace llmprof::workload
