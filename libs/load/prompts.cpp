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

// One token each, with the space in front, in the vocabularies of GPT-2, Llama, Qwen, Gemma and Mistral as far as known.
constexpr std::array<std::string_view, 64> kUsualWords{
    " the",   " of",    " and",   " to",    " in",    " is",   " that", " for",   " it",    " as",   " was",
    " with",  " be",    " by",    " on",    " not",   " he",   " this", " are",   " or",    " his",  " from",
    " at",    " which", " but",   " have",  " an",    " had",  " they", " you",   " were",  " their", " one",
    " all",   " we",    " can",   " her",   " has",   " there", " been", " if",    " more",  " when", " will",
    " would", " who",   " so",    " no",    " out",   " up",   " into", " than",  " them",  " time", " only",
    " some",  " could", " these", " two",   " may",   " then", " do",   " first", " any"};

class Writer {
 public:
  Writer(const serving::Workload& workload, const Tokenizer* tokenizer, std::uint64_t seed)
      : workload_(workload), tokenizer_(tokenizer), seed_(seed), random_(seed ^ 0x70726F6D7074ULL) {
    for (const std::string_view word : kUsualWords) {
      if (tokenizer == nullptr) words_.push_back(word);
    }
    if (tokenizer == nullptr) return;
    for (const Tokenizer::Word& word : tokenizer->words()) words_.push_back(word.text);
  }

  Result<Prompt> write(const serving::Request& request) {
    if (words_.empty())
      return Error{ErrorCode::kUnsupported, "no token of this tokenizer is a word behind a space: random text cannot be made",
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
    if (tokenizer_ == nullptr) {
      prompt.text.erase(0, 1);
      return prompt;
    }
    LLMPROF_TRY(make_exact(prompt, shared));
    return prompt;
  }

 private:
  void add_words(std::int64_t count, Random& random, std::string& text) {
    for (std::int64_t i = 0; i < count; ++i)
      text += words_[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(words_.size()) - 1))];
  }

  // The first word has no space in front where the tokenizer puts one there itself, or the text would begin with two.
  Result<void> make_exact(Prompt& prompt, std::size_t shared) {
    constexpr int kMostTries = 16;
    const std::string before = prompt.text.substr(0, shared);
    std::string own = prompt.text.substr(shared);
    std::int64_t counted = 0;
    for (int i = 0; i < kMostTries; ++i) {
      for (const std::size_t without : {0, 1}) {
        prompt.text = (before + own).substr(without);
        prompt.ids = tokenizer_->encode(prompt.text);
        counted = static_cast<std::int64_t>(prompt.ids.size());
        prompt.counted = counted == prompt.tokens;
        if (prompt.counted) return {};
      }
      // Words that became one token, or two, with their neighbours. What is shared stays, but for the case that all is.
      for (; counted > prompt.tokens && own.find(' ') != std::string::npos; --counted) own.erase(own.rfind(' '));
      add_words(prompt.tokens - counted, random_, own);
    }
    return Error{ErrorCode::kUnsupported,
                 fmt::format("no random text of exactly {} tokens was found with this tokenizer (last: {})", prompt.tokens, counted),
                 "use a data set, or no tokenizer (lengths are then planned, not counted)"};
  }

  const serving::Workload& workload_;
  const Tokenizer* tokenizer_;
  std::uint64_t seed_;
  Random random_;
  std::vector<std::string_view> words_;
};

}  // namespace

Result<Prompts> synthetic_prompts(const serving::Workload& workload, const Tokenizer* tokenizer, std::uint64_t seed) {
  std::int64_t tokens = 0;
  for (const serving::Request& request : workload.requests) tokens += request.prompt_tokens;
  if (tokens > kMostTokens)
    return Error{ErrorCode::kUsage, fmt::format("prompts of {} tokens in all, at most {} are made", tokens, kMostTokens),
                 "ask for fewer requests or shorter prompts"};
  Prompts out;
  out.concurrency = workload.concurrency;
  out.description = workload.description + (tokenizer != nullptr ? ", random words counted by the tokenizer"
                                                                 : ", random words, tokens planned and not counted");
  Writer writer(workload, tokenizer, seed);
  out.prompts.reserve(workload.requests.size());
  for (const serving::Request& request : workload.requests) {
    LLMPROF_LET(Prompt prompt, writer.write(request));
    out.prompts.push_back(std::move(prompt));
  }
  return out;
}

}  // namespace llmprof::load
