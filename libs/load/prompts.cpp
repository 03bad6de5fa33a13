#include "load/prompts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/errors.h"
#include "serving/random.h"

namespace llmprof::load {
namespace {

using serving::Random;

constexpr std::int64_t kMostTokens = 100'000'000;  // of all prompts: about 1 GB of text and ids

// One token each, with the space in front, in the vocabularies of GPT-2, Llama, Qwen, Gemma and Mistral as far as
// known.
constexpr std::array<std::string_view, 64> kUsualWords{
    " the",   " of",    " and",   " to",   " in",  " is",    " that", " for",   " it",   " as",    " was",
    " with",  " be",    " by",    " on",   " not", " he",    " this", " are",   " or",   " his",   " from",
    " at",    " which", " but",   " have", " an",  " had",   " they", " you",   " were", " their", " one",
    " all",   " we",    " can",   " her",  " has", " there", " been", " if",    " more", " when",  " will",
    " would", " who",   " so",    " no",   " out", " up",    " into", " than",  " them", " time",  " only",
    " some",  " could", " these", " two",  " may", " then",  " do",   " first", " any"};

class Writer {
 public:
  Writer(const serving::Workload& workload, const Tokenizer* tokenizer, std::uint64_t seed)
      : workload_(workload), tokenizer_(tokenizer), seed_(seed), random_(seed ^ 0x70726F6D7074ULL) {
    if (tokenizer == nullptr) {
      words_.assign(kUsualWords.begin(), kUsualWords.end());
      openers_ = words_;
      return;
    }
    for (const Tokenizer::Word& word : tokenizer->words()) {
      words_.push_back(word.text);
      if (word.opens) openers_.push_back(word.text);
    }
  }

  Result<Prompt> write(const serving::Request& request) {
    if (words_.empty())
      return Error{ErrorCode::kUnsupported,
                   "no token of this tokenizer is a word behind a space: random text cannot be made",
                   "use a data set, or no tokenizer (lengths are then planned, not counted)"};
    Prompt prompt;
    prompt.output_tokens = request.output_tokens;
    prompt.arrival_ns = request.arrival_ns;
    prompt.tokens = request.prompt_tokens;
    std::int64_t left = request.prompt_tokens;
    for (std::uint32_t i = 0; i < request.id_count && left > 0; ++i) {
      const std::int64_t own = std::min(left, workload_.content_tokens);
      Random random(seed_ ^ (workload_.content_ids[request.id_begin + i] + 1) * 0x9E3779B97F4A7C15ULL);
      add_words(own, random, prompt.text);
      left -= own;
    }
    const std::size_t shared = prompt.text.size();
    add_words(left, random_, prompt.text);
    if (tokenizer_ != nullptr) {
      LLMPROF_TRY(make_exact(prompt, shared));
    } else {
      prompt.text.erase(0, 1);
    }
    return prompt;
  }

 private:
  std::string_view draw(const std::vector<std::string_view>& from, Random& random) {
    return from[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(from.size()) - 1))];
  }
  // The first of them can open a text: it does in the first piece of a prompt.
  void add_words(std::int64_t count, Random& random, std::string& text) {
    for (std::int64_t i = 0; i < count; ++i) text += draw(i == 0 && !openers_.empty() ? openers_ : words_, random);
  }

  // Where words become fewer or more tokens beside each other, others are tried. What is shared stays as it is.
  Result<void> make_exact(Prompt& prompt, std::size_t shared) {
    constexpr int kMostTries = 32;
    const std::size_t without = openers_.empty() ? 0 : 1;  // of the spaces in front of words, the first
    std::int64_t counted = 0;
    for (int i = 0; i < kMostTries; ++i) {
      prompt.ids = tokenizer_->encode(std::string_view(prompt.text).substr(without));
      counted = static_cast<std::int64_t>(prompt.ids.size());
      prompt.counted = counted == prompt.tokens;
      if (prompt.counted) {
        prompt.text.erase(0, without);
        return {};
      }
      for (std::int64_t over = counted - prompt.tokens; over > 0 && prompt.text.size() > shared; --over)
        prompt.text.erase(prompt.text.rfind(' '));
      add_words(prompt.tokens - counted, random_, prompt.text);
    }
    return Error{ErrorCode::kUnsupported,
                 fmt::format("no random text of exactly {} tokens was found with this tokenizer (the last had {})",
                             prompt.tokens, counted),
                 "use a data set, or no tokenizer (lengths are then planned, not counted)"};
  }

  const serving::Workload& workload_;
  const Tokenizer* tokenizer_;
  std::uint64_t seed_;
  Random random_;
  std::vector<std::string_view> words_, openers_;
};

}  // namespace

Result<Prompts> synthetic_prompts(const serving::Workload& workload, const Tokenizer* tokenizer, std::uint64_t seed) {
  std::int64_t tokens = 0;
  for (const serving::Request& request : workload.requests) tokens += request.prompt_tokens;
  if (tokens > kMostTokens)
    return Error{ErrorCode::kUsage,
                 fmt::format("prompts of {} tokens in all, at most {} are made", tokens, kMostTokens),
                 "ask for fewer requests or shorter prompts"};
  Prompts out;
  out.concurrency = workload.concurrency;
  out.description = workload.description;
  out.description += tokenizer != nullptr ? ", random words counted by the tokenizer"
                                          : ", random words, tokens planned and not counted";
  if (tokenizer != nullptr && tokenizer->special_tokens() > 0)
    out.description += fmt::format(" without the {} that its template adds", tokenizer->special_tokens());
  Writer writer(workload, tokenizer, seed);
  out.prompts.reserve(workload.requests.size());
  for (const serving::Request& request : workload.requests) {
    LLMPROF_LET(Prompt prompt, writer.write(request));
    out.prompts.push_back(std::move(prompt));
  }
  return out;
}

}  // namespace llmprof::load
