// load::SseParser and parse_message: whatever a server sends, in whatever pieces, the events are the same, and what is
// read of them stays within the bytes that came.

#include "load/sse.h"

#include "fuzz.h"
#include "load/message.h"

namespace llmprof::fuzz {
namespace {

struct Read {
  std::vector<std::string> events;
  std::int64_t faults = 0;
};

Read read(std::string_view input, std::size_t piece) {
  Read out;
  load::SseParser parser;
  const auto add = [&](std::string_view data) { out.events.emplace_back(data); };
  for (std::size_t at = 0; at < input.size(); at += piece) parser.feed(input.substr(at, piece), add);
  parser.finish(add);
  out.faults = parser.faults();
  return out;
}

void run(std::string_view input) {
  const Read whole = read(input, input.size() + 1);
  std::size_t bytes = 0;
  load::Message message;
  for (const std::string& event : whole.events) {
    bytes += event.size();
    if (!load::parse_message(event, message)) {
      require(!message.choices && message.text.empty() && message.error.empty() && !message.completion_tokens);
      continue;
    }
    require(message.text.size() <= event.size() && message.token_ids <= static_cast<std::int64_t>(event.size()));
    require(!message.completion_tokens || *message.completion_tokens >= 0);
  }
  require(bytes <= input.size());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{7}}) {
    const Read again = read(input, piece);
    require(again.events == whole.events && again.faults == whole.faults);
  }
  (void)load::parse_message(input, message);
}

std::vector<std::string> seeds() {
  const std::string chunk = R"({"id":"c","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]})";
  return {"data: " + chunk + "\n\ndata: [DONE]\n\n",
          "data: " + chunk + "\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n",
          "\xEF\xBB\xBF" "data: {\"choices\":[],\r" "data: \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\r\r",
          "event: error\ndata: {\"error\":{\"message\":\"no\"}}\n\n",
          R"({"object":"text_completion","choices":[{"text":"a","token_ids":[1,2]}]})"};
}

std::vector<std::string> dictionary() {
  return {"data: ", "data:", "event: ", "id: ", "retry: ", ": ", "\n\n", "\r\n\r\n", "\r\r", "[DONE]", "choices", "delta", "content",
          "text", "usage", "completion_tokens", "prompt_tokens_details", "error", "message", "token_ids", "finish_reason",
          "\xEF\xBB\xBF"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
