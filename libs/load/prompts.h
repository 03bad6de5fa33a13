#pragma once
// What is sent: prompts and how many tokens are asked for, made up or read from a data set.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/tokenizer.h"
#include "serving/workload.h"

namespace llmprof::load {

struct Prompt {
  std::string text;
  // The tokens of `text`, for endpoints that take them; empty without a tokenizer. A prompt that a data set gives as
  // ids has no text.
  std::vector<std::int32_t> ids;
  std::int64_t tokens = 0;  // of the text alone: without special tokens and without a chat's template; 0: unknown
  bool counted = false;     // by a tokenizer; else `tokens` is what was planned, or unknown
  std::int64_t output_tokens = 0;  // asked for
  double arrival_ns = 0;           // ignored in a closed loop; 0 in data sets without times
  std::string id;                  // the data set's own; may be empty
  std::string messages;            // of a chat, as JSON; empty: the text is the one message of the user
};

struct Prompts {
  std::vector<Prompt> prompts;
  std::int64_t concurrency = 0;  // of a closed loop; 0: by arrival
  std::string description;       // with what was left out, and why
};

struct PromptOptions {
  const Tokenizer* tokenizer = nullptr;
  std::uint64_t seed = 1;
  std::int64_t most = 0;           // prompts; 0: all. Of a ShareGPT file drawn by the seed, else the first
  std::int64_t output_tokens = 0;  // asked for instead of what the data set says; 0: what it says
  serving::TraceOptions trace;
};

// Random words, as many tokens as the workload asks for: exactly so with a tokenizer (every prompt is encoded again),
// else as many words of one token each in usual vocabularies. Pieces of the same content id have the same text.
Result<Prompts> synthetic_prompts(const serving::Workload& workload, const Tokenizer* tokenizer, std::uint64_t seed);

// A data set, known by its content: ShareGPT (JSON, or one conversation a line); JSON lines with "prompt" and
// "output_tokens"; JSON lines of OpenAI chat requests; a trace of times and lengths (serving::parse_trace).
Result<Prompts> read_prompts(const std::string& path, const PromptOptions& options);
Result<Prompts> parse_prompts(std::string_view text, std::string_view where, const PromptOptions& options);

// ShareGPT's rules, those of vLLM's benchmark: the first turn is the prompt, the second says how long the answer is.
inline constexpr std::int64_t kShareGptLeast = 4, kShareGptMostPrompt = 1024, kShareGptMostTotal = 2048;

// The tokens of every prompt of a data set, as JSON: {"prompts": [{"tokens": n, "ids": […]}, …]}.
Result<std::string> count_prompts(const std::string& path, const Tokenizer& tokenizer);

}  // namespace llmprof::load
