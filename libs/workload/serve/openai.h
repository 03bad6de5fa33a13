#pragma once
// The OpenAI protocol, as far as the server speaks it: bodies of requests to what is asked for, and what was generated
// to bodies and events. Pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/model.h"
#include "workload/serve/live_engine.h"

namespace llmprof::workload::openai {

// What a server can do, as far as requests are checked against it.
struct Limits {
  std::string model;  // its name
  std::int64_t vocab = 0;
  std::int64_t max_model_len = 0;
  std::optional<Token> eos;  // ends a request that does not ignore it
};

enum class Endpoint : std::uint8_t { kCompletions, kChat };

struct CompletionRequest {
  GenerationRequest generation;  // without ticket, id and arrival
  bool stream = false, include_usage = false, return_token_ids = false;
};

// An error of a request, as the protocol says it.
struct Refusal {
  int status = 400;
  std::string message;
  std::string param;  // the field; "" none
};

// The body of a request, checked. A model of another name is a 404.
struct Parsed {
  std::optional<CompletionRequest> completion;
  Refusal refusal;  // where there is no completion
};
Parsed parse(Endpoint endpoint, std::string_view body, const Limits& limits);

// Tokens are bytes: a text is its UTF-8 bytes, each modulo the vocabulary. A token is shown as its character where its
// number is that of a printable ASCII character, tab or line break; any other as U+FFFD.
std::vector<Token> encode(std::string_view text, std::int64_t vocab);
std::string_view text_of(Token token);
std::string decode(std::span<const Token> tokens);

// What answers say about a request.
struct Answer {
  Endpoint endpoint = Endpoint::kCompletions;
  std::string id;          // "cmpl-…"
  std::string request_id;  // what stands behind it
  std::string model;
  std::int64_t created_s = 0;  // wall clock
  std::int32_t prompt_tokens = 0, cached_tokens = 0;
  bool return_token_ids = false, include_usage = false;
};

// The whole answer of a request that does not stream.
std::string body(const Answer& answer, std::span<const Token> prompt, std::span<const Token> tokens, Finish finish);
// Server-sent events. `first`: of the request; a chat begins with the role.
std::string token_event(const Answer& answer, std::optional<Token> token, std::optional<Finish> finish, bool first);
std::string last_events(const Answer& answer, std::int32_t output_tokens);  // usage where it is wanted, and [DONE]

std::string error_body(const Refusal& refusal);
std::string models_body(const Limits& limits, std::int64_t created_s);

}  // namespace llmprof::workload::openai
