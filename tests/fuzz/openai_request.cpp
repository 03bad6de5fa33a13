// Bodies of the server's requests: what is accepted asks for something that the model can do, and whatever it says, the
// answers to it are JSON.

#include <algorithm>

#include "base/json.h"
#include "fuzz.h"
#include "workload/serve/openai.h"

namespace llmprof::fuzz {
namespace {

using namespace workload;

const openai::Limits kLimits{.model = "tiny", .vocab = 300, .max_model_len = 128, .eos = 2};

void check_accepted(const openai::CompletionRequest& request) {
  const GenerationRequest& asked = request.generation;
  const auto known = [](Token token) { return token >= 0 && token < kLimits.vocab; };
  require(!asked.prompt.empty() && std::ranges::all_of(asked.prompt, known) && std::ranges::all_of(asked.stop, known));
  require(asked.most_tokens >= 1 && std::ssize(asked.prompt) + asked.most_tokens <= kLimits.max_model_len);
  const bool greedy = asked.sampler.kind == Sampler::Kind::kGreedy;
  require(greedy || (asked.sampler.temperature > 0 && asked.sampler.k >= 1));
}

// `text` stands where a client's words do: in the id.
void check_answers(openai::Endpoint endpoint, std::string_view text, const std::vector<Token>& tokens) {
  std::string id(text.substr(0, 256));
  std::erase_if(id, [](char c) { return c <= ' ' || c >= '\x7f'; });
  const openai::Answer answer{.endpoint = endpoint,
                              .id = id,
                              .request_id = id,
                              .model = kLimits.model,
                              .return_token_ids = true,
                              .include_usage = true};
  const auto whole = base::parse_json(openai::body(answer, tokens, tokens, Finish::kStop), "body");
  require(whole.has_value() && (*whole)["id"] == id && (*whole)["choices"][0]["token_ids"].size() == tokens.size());
  for (const Token token : tokens) {
    const std::string event = openai::token_event(answer, token, {}, true);
    require(event.starts_with("data: ") && event.find("\n\n") == event.size() - 2);
    require(base::parse_json(std::string_view(event).substr(6), "event").has_value());
  }
}

void run(std::string_view input) {
  for (const openai::Endpoint endpoint : {openai::Endpoint::kCompletions, openai::Endpoint::kChat}) {
    const openai::Parsed parsed = openai::parse(endpoint, input, kLimits);
    if (parsed.completion) {
      check_accepted(*parsed.completion);
      check_answers(endpoint, input, parsed.completion->generation.prompt);
      continue;
    }
    require(parsed.refusal.status == 400 || parsed.refusal.status == 404);
    require(!parsed.refusal.message.empty());
    require(base::parse_json(openai::error_body(parsed.refusal), "error").has_value());
  }
}

std::vector<std::string> seeds() {
  return {R"({"model":"tiny","prompt":"Hi","max_tokens":4,"stream":true,"stream_options":{"include_usage":true}})",
          R"({"prompt":[1,2,299],"temperature":0.5,"top_k":4,"seed":7,"stop_token_ids":[3],"ignore_eos":true})",
          R"({"prompt":["a"],"n":1,"top_p":1.0,"logit_bias":{},"priority":-3,"return_token_ids":true})",
          R"({"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"tool","content":null}]})"};
}

std::vector<std::string> dictionary() {
  return {"\"prompt\":",     "\"messages\":[", "\"role\":\"user\"", "\"content\":",  "\"max_tokens\":",
          "\"stream\":true", "null",           "\"\\ud800\"",       "1e400",         "-1",
          "[[1]]",           "\"stop\":[]",    "\"temperature\":",  "2147483648",    "\"min_tokens\":"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
