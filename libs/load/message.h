#pragma once
// One JSON message of the OpenAI protocol: an event of a stream, a whole answer, or the body of an error.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof::load {

struct Message {
  bool choices = false;       // it has a choice at all: what vLLM's bench takes for a token
  std::string text;           // of the answer, its reasoning included
  bool reasoning = false;     // all of the text is reasoning
  std::int64_t token_ids = 0;  // of the output, where the server was asked to name them
  std::string finish_reason;
  std::optional<std::int64_t> prompt_tokens, completion_tokens, cached_tokens;  // of its usage
  std::string error;  // what the server says went wrong; "" nothing
};

// False: it is not a JSON object. `out` is overwritten; its memory is used again.
bool parse_message(std::string_view json, Message& out);

}  // namespace llmprof::load
