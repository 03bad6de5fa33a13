// Names that serving engines give to their steps: how many sequences, new tokens and contexts were in one.

#include <charconv>

#include "analyze/names/grammar.h"

namespace llmprof::analyze {

namespace {

// The number behind `key`, 0 and more.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(at + key.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  constexpr std::int64_t kMost = std::int64_t{1} << 52;
  if (error != std::errc{} || value < 0 || value > kMost) return std::nullopt;
  return value;
}

struct Sums {  // over the sequences of a kind
  std::optional<std::int64_t> sequences, tokens;
  std::optional<std::int64_t> contexts, tokens_squared, tokens_by_context;  // engines say these where they are asked to
};

// "64(64)", "2(sq107sk107sqsq5729sqsk5729)".
Sums read_vllm(std::string_view text) {
  Sums sums{.sequences = number_after(text, "")};
  const std::size_t open = text.find('('), close = text.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return sums;
  const std::string_view inside = text.substr(open, close - open);
  sums.tokens = inside.starts_with("(sq") ? number_after(inside, "(sq") : number_after(inside, "(");
  sums.tokens_squared = number_after(inside, "sqsq");
  sums.tokens_by_context = number_after(inside, "sqsk");
  const std::size_t contexts = inside.find("sk");  // "sk", not that of "sqsk"
  if (contexts != std::string_view::npos && contexts > 0 && inside[contexts - 1] != 'q')
    sums.contexts = number_after(inside.substr(contexts), "sk");
  return sums;
}

std::optional<std::int64_t> plus(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

// Each new token sees those before it: n queries and c keys make n c - n (n - 1) / 2 pairs.
std::optional<std::int64_t> pairs_of(const Sums& sums) {
  if (sums.tokens == 0) return 0;
  if (!sums.tokens || !sums.tokens_squared || !sums.tokens_by_context) return std::nullopt;
  return *sums.tokens_by_context - (*sums.tokens_squared - *sums.tokens) / 2;
}

StepSize size_of(Sums prompts, Sums generation) {
  for (Sums* sums : {&prompts, &generation}) {
    if (sums->sequences == 0) *sums = {.sequences = 0, .tokens = 0, .contexts = 0};
  }
  StepSize size;
  size.batch = plus(prompts.sequences, generation.sequences);
  size.rows = plus(prompts.tokens, generation.tokens);
  if (!size.batch || !size.rows || *size.batch <= 0 || *size.rows < *size.batch) return {};
  size.contexts = size.contexts_most = plus(prompts.contexts, generation.contexts);
  if (!size.contexts) size.contexts = size.rows;  // at least what is new
  size.pairs = plus(pairs_of(prompts), pairs_of(generation));
  if (size.pairs && *size.pairs < *size.rows) size.pairs.reset();
  if (generation.sequences == generation.tokens) size.generating = generation.sequences;
  if (*size.rows == *size.batch) size.tokens = 1;
  return size;
}

}  // namespace

StepSize engine_step_size(std::string_view name) {
  if (name.starts_with("execute_")) {
    constexpr std::string_view kContext = "context_", kGeneration = "_generation_";
    const std::size_t context = name.find(kContext), generation = name.find(kGeneration);
    if (context == std::string_view::npos || generation == std::string_view::npos || generation < context) return {};
    return size_of(read_vllm(name.substr(context + kContext.size(), generation - context - kContext.size())),
                   read_vllm(name.substr(generation + kGeneration.size())));
  }
  if (!name.starts_with("step[")) return {};
  const std::optional<std::int64_t> sequences = number_after(name, " bs=");
  const auto detailed = [&](char kind) {
    const auto of = [&](std::string_view sum) {
      return number_after(name, " " + std::string(1, kind) + "_" + std::string(sum));
    };
    return Sums{{}, of("sq="), of("sk="), of("sqsq="), of("sqsk=")};
  };
  if (name.starts_with("step[DECODE")) {
    Sums generation = detailed('g');
    generation.sequences = generation.tokens = sequences;
    return size_of({.sequences = 0}, generation);
  }
  Sums prompts = detailed('c'), generation = detailed('g');
  if (generation.tokens.value_or(0) > 0) {  // one new token each
    generation.sequences = generation.tokens;
    prompts.sequences = sequences ? std::optional(*sequences - *generation.tokens) : std::nullopt;
    if (prompts.sequences.value_or(0) < 0) return {};
    return size_of(prompts, generation);
  }
  prompts.sequences = sequences;
  if (!prompts.tokens) prompts.tokens = number_after(name, " toks=");
  return size_of(prompts, {.sequences = 0});
}

}  // namespace llmprof::analyze
