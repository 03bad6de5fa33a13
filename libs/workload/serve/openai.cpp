#include "workload/serve/openai.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"

namespace llmprof::workload::openai {
namespace {

using base::Json;

constexpr std::size_t kMostStops = 64;

// Fields of a body. The first error is kept; what was not given has its default. null is as if it were not there.
class Body {
 public:
  explicit Body(const Json& json) : json_(json) {}

  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  bool flag(const char* key) {
    const Json* const value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) bad(key, "must be true or false");
    return value->is_boolean() && value->get<bool>();
  }
  std::int64_t integer(const char* key, std::int64_t fallback, std::int64_t least, std::int64_t most) {
    const Json* const value = find(key);
    if (value == nullptr) return fallback;
    if (is_between(*value, least, most)) return value->get<std::int64_t>();
    bad(key, fmt::format("must be a whole number from {} to {}", least, most));
    return fallback;
  }
  double number(const char* key, double fallback, double least, double most) {
    const Json* const value = find(key);
    if (value == nullptr) return fallback;
    const double given = value->is_number() ? value->get<double>() : std::nan("");
    if (given >= least && given <= most) return given;
    bad(key, fmt::format("must be a number from {:g} to {:g}", least, most));
    return fallback;
  }
  // What changes the answer and is not done here: asking for it is an error.
  void only(const char* key, const Json& neutral, const char* what) {
    const Json* const value = find(key);
    if (value != nullptr && *value != neutral) bad(key, what);
  }
  std::vector<Token> ids(const char* key, const Json& list, std::int64_t vocab, std::size_t most) {
    std::vector<Token> tokens;
    if (list.size() > most) return bad(key, fmt::format("has more than {} tokens", most)), tokens;
    tokens.reserve(list.size());
    for (const Json& id : list) {
      if (!is_between(id, 0, vocab - 1))
        return bad(key, fmt::format("token ids are whole numbers from 0 to {}", vocab - 1)), tokens;
      tokens.push_back(id.get<Token>());
    }
    return tokens;
  }

  void bad(const char* key, std::string message, int status = 400) {
    if (refusal.message.empty()) refusal = {status, fmt::format("{}: {}", key, message), key};
  }
  Refusal refusal{.status = 0};

 private:
  static bool is_between(const Json& value, std::int64_t least, std::int64_t most) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return false;
    return value.is_number_integer() && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
  }
  const Json& json_;
};

std::vector<Token> prompt_of(Body& body, const Limits& limits) {
  const auto most = static_cast<std::size_t>(limits.max_model_len);
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr) return body.bad("prompt", "is missing"), std::vector<Token>();
  // A list of one prompt is as good as the prompt.
  if (prompt->is_array() && prompt->size() == 1 && !prompt->front().is_number()) prompt = &prompt->front();
  if (prompt->is_string()) return encode(prompt->get_ref<const std::string&>(), limits.vocab);
  if (prompt->is_array() && !prompt->empty() && prompt->front().is_number())
    return body.ids("prompt", *prompt, limits.vocab, most);
  body.bad("prompt", "must be a text or a list of token ids; one prompt a request");
  return {};
}

// The text of a message: a string, or a list of parts of which each is a text.
std::optional<std::string> content_of(const Json& message) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return "";
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return std::nullopt;
  std::string text;
  for (const Json& part : *content) {
    const bool typed = part.is_object() && part.value("type", Json()) == "text";
    const auto said = typed ? part.find("text") : part.end();
    if (said == part.end() || !said->is_string()) return std::nullopt;
    text += said->get_ref<const std::string&>();
  }
  return text;
}

// "role: text" a line, and the assistant's turn.
std::vector<Token> conversation_of(Body& body, const Limits& limits) {
  const Json* const messages = body.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty())
    return body.bad("messages", "must be a list of at least one message"), std::vector<Token>();
  std::string text;
  for (const Json& message : *messages) {
    const std::optional<std::string> content = message.is_object() ? content_of(message) : std::nullopt;
    if (!content || !message.contains("role") || !message["role"].is_string())
      return body.bad("messages", "a message is {\"role\": text, \"content\": text}"), std::vector<Token>();
    text += message["role"].get_ref<const std::string&>() + ": " + *content + "\n";
  }
  return encode(text + "assistant: ", limits.vocab);
}

Sampler sampler_of(Body& body, const Limits& limits) {
  // The protocol's default is 1; the words of this model mean nothing, so that the same answer twice is worth more.
  const double temperature = body.number("temperature", 0, 0, 2);
  const std::int64_t k = body.integer("top_k", -1, -1, 1 << 24);
  const Json* const seed = body.find("seed");
  if (seed != nullptr && !seed->is_number_integer()) body.bad("seed", "must be a whole number");
  if (temperature > 0) body.only("top_p", 1, "only 1 (all) is implemented; top_k is");
  Sampler sampler;
  if (temperature > 0) sampler.kind = Sampler::Kind::kTopK;
  sampler.temperature = temperature;
  sampler.k = k <= 0 ? limits.vocab : k;
  if (seed != nullptr && seed->is_number_integer())
    sampler.seed = seed->is_number_unsigned() ? seed->get<std::uint64_t>()
                                              : static_cast<std::uint64_t>(seed->get<std::int64_t>());
  return sampler;
}

void refuse_what_is_not_done(Body& body) {
  body.only("n", 1, "only 1 is implemented");
  body.only("best_of", 1, "only 1 is implemented");
  body.only("echo", false, "is not implemented");
  body.only("logprobs", false, "is not implemented");
  body.only("prompt_logprobs", false, "is not implemented");
  body.only("suffix", "", "is not implemented");
  body.only("stop", Json::array(), "texts are not implemented; stop_token_ids is");
  body.only("use_beam_search", false, "is not implemented");
  body.only("tools", Json::array(), "is not implemented");
  body.only("frequency_penalty", 0, "only 0 is implemented");
  body.only("presence_penalty", 0, "only 0 is implemented");
  body.only("repetition_penalty", 1, "only 1 is implemented");
  body.only("logit_bias", Json::object(), "is not implemented");
}

std::vector<Token> stops_of(Body& body, const Limits& limits) {
  std::vector<Token> stops;
  if (const Json* const list = body.find("stop_token_ids"); list != nullptr) {
    if (!list->is_array()) return body.bad("stop_token_ids", "must be a list of token ids"), stops;
    stops = body.ids("stop_token_ids", *list, limits.vocab, kMostStops);
  }
  if (!body.flag("ignore_eos") && limits.eos) stops.push_back(*limits.eos);
  // Without a token that could end it early, a request has as many as it may have.
  if (!stops.empty()) body.only("min_tokens", 0, "only 0 is implemented where a token may end the request");
  return stops;
}

std::int64_t most_tokens_of(Body& body, Endpoint endpoint, std::size_t prompt, const Limits& limits) {
  const auto left = limits.max_model_len - static_cast<std::int64_t>(prompt);
  const std::int64_t fallback = endpoint == Endpoint::kChat ? std::max<std::int64_t>(left, 1) : 16;
  const std::int64_t old = body.integer("max_tokens", fallback, 1, INT32_MAX);
  return endpoint == Endpoint::kChat ? body.integer("max_completion_tokens", old, 1, INT32_MAX) : old;
}

CompletionRequest read_completion(Body& body, Endpoint endpoint, const Limits& limits) {
  CompletionRequest completion;
  refuse_what_is_not_done(body);
  completion.generation.prompt = endpoint == Endpoint::kChat ? conversation_of(body, limits) : prompt_of(body, limits);
  if (completion.generation.prompt.empty())
    body.bad(endpoint == Endpoint::kChat ? "messages" : "prompt", "has no tokens");
  const std::int64_t most = most_tokens_of(body, endpoint, completion.generation.prompt.size(), limits);
  const auto prompt = static_cast<std::int64_t>(completion.generation.prompt.size());
  if (prompt >= limits.max_model_len || most > limits.max_model_len - prompt)
    body.bad("max_tokens", fmt::format("{} prompt tokens and {} to be generated exceed the {} of the model", prompt,
                                       most, limits.max_model_len));
  completion.generation.most_tokens = static_cast<std::int32_t>(most);
  completion.generation.priority = static_cast<std::int32_t>(body.integer("priority", 0, INT32_MIN, INT32_MAX));
  completion.generation.sampler = sampler_of(body, limits);
  completion.generation.stop = stops_of(body, limits);
  completion.stream = body.flag("stream");
  completion.return_token_ids = body.flag("return_token_ids");
  if (const Json* const options = body.find("stream_options"); options != nullptr) {
    if (!options->is_object()) body.bad("stream_options", "must be an object");
    if (options->is_object()) {
      Body fields(*options);
      completion.include_usage = fields.flag("include_usage");
      if (fields.refusal.status != 0) body.bad("stream_options", fields.refusal.message);
    }
  }
  return completion;
}

const char* reason(Finish finish) {
  switch (finish) {
    case Finish::kStop:
      return "stop";
    case Finish::kLength:
      return "length";
    case Finish::kAborted:
      return "abort";
    case Finish::kFailed:
      return "error";
  }
  return "error";
}
std::string quoted_reason(const std::optional<Finish>& finish) {
  return finish ? fmt::format("\"{}\"", reason(*finish)) : "null";
}

// As a part of a JSON string.
std::string_view escaped_text_of(Token token) {
  const std::string_view text = text_of(token);
  if (text == "\"") return "\\\"";
  if (text == "\\") return "\\\\";
  if (text == "\n") return "\\n";
  if (text == "\t") return "\\t";
  return text;
}

std::string usage(const Answer& answer, std::int64_t outputs) {
  return fmt::format(
      "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{},"
      "\"prompt_tokens_details\":{{\"cached_tokens\":{}}}}}",
      answer.prompt_tokens, outputs, answer.prompt_tokens + outputs, answer.cached_tokens);
}

std::string quoted(const std::string& text) { return base::to_line(Json(text)); }

// Everything of an answer or event before its choices.
std::string begin_of(const Answer& answer, bool event) {
  const char* const object = answer.endpoint == Endpoint::kCompletions ? "text_completion"
                             : event                                   ? "chat.completion.chunk"
                                                                       : "chat.completion";
  return fmt::format("{{\"id\":{},\"object\":\"{}\",\"created\":{},\"model\":{},\"choices\":[", quoted(answer.id),
                     object, answer.created_s, quoted(answer.model));
}

}  // namespace

Parsed parse(Endpoint endpoint, std::string_view text, const Limits& limits) {
  const auto json = base::parse_json(text, "body");
  if (!json) return {std::nullopt, {400, json.error().message, ""}};
  if (!json->is_object()) return {std::nullopt, {400, "the body is not a JSON object", ""}};
  Body body(*json);
  if (const Json* const model = body.find("model"); model != nullptr && *model != limits.model)
    body.bad("model", fmt::format("{} does not exist; this server has \"{}\"", base::to_line(*model), limits.model),
             404);
  CompletionRequest completion = read_completion(body, endpoint, limits);
  if (body.refusal.status != 0) return {std::nullopt, body.refusal};
  return {std::move(completion), {}};
}

std::vector<Token> encode(std::string_view text, std::int64_t vocab) {
  std::vector<Token> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<Token>(static_cast<unsigned char>(c) % vocab));
  return tokens;
}

std::string_view text_of(Token token) {
  static constexpr std::array<char, 128> kAscii = [] {
    std::array<char, 128> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i);
    return all;
  }();
  const bool shown = (token >= ' ' && token < 0x7F) || token == '\n' || token == '\t';
  return shown ? std::string_view(&kAscii[static_cast<std::size_t>(token)], 1) : "\xEF\xBF\xBD";
}

std::string decode(std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += text_of(token);
  return text;
}

std::string body(const Answer& answer, std::span<const Token> prompt, std::span<const Token> tokens, Finish finish) {
  const std::string text = quoted(decode(tokens));
  std::string out = begin_of(answer, false) + "{\"index\":0,";
  out += answer.endpoint == Endpoint::kChat ? fmt::format("\"message\":{{\"role\":\"assistant\",\"content\":{}}}", text)
                                            : fmt::format("\"text\":{}", text);
  if (answer.return_token_ids)
    out += fmt::format(",\"token_ids\":[{}],\"prompt_token_ids\":[{}]", fmt::join(tokens, ","), fmt::join(prompt, ","));
  out += fmt::format(",\"logprobs\":null,\"finish_reason\":\"{}\"}}],\"usage\":{}}}", reason(finish),
                     usage(answer, std::ssize(tokens)));
  return out;
}

std::string token_event(const Answer& answer, std::optional<Token> token, std::optional<Finish> finish, bool first) {
  const std::string_view text = token ? escaped_text_of(*token) : "";
  std::string out = "data: " + begin_of(answer, true) + "{\"index\":0,";
  if (answer.endpoint == Endpoint::kChat) {
    out += fmt::format("\"delta\":{{{}\"content\":\"{}\"}}", first ? "\"role\":\"assistant\"," : "", text);
  } else {
    out += fmt::format("\"text\":\"{}\"", text);
  }
  if (answer.return_token_ids) out += token ? fmt::format(",\"token_ids\":[{}]", *token) : ",\"token_ids\":[]";
  out += fmt::format(",\"logprobs\":null,\"finish_reason\":{}}}]", quoted_reason(finish));
  if (answer.include_usage) out += ",\"usage\":null";
  return out + "}\n\n";
}

std::string last_events(const Answer& answer, std::int32_t output_tokens) {
  std::string out;
  if (answer.include_usage)
    out = fmt::format("data: {}],\"usage\":{}}}\n\n", begin_of(answer, true), usage(answer, output_tokens));
  return out + "data: [DONE]\n\n";
}

std::string error_body(const Refusal& refusal) {
  const char* const type = refusal.status == 404   ? "NotFoundError"
                           : refusal.status == 503 ? "ServiceUnavailableError"
                           : refusal.status >= 500 ? "InternalServerError"
                                                   : "BadRequestError";
  Json error{{"message", refusal.message}, {"type", type}, {"code", refusal.status}};
  error["param"] = base::text_or_null(refusal.param);
  return base::to_line(Json{{"error", error}});
}

std::string models_body(const Limits& limits, std::int64_t created_s) {
  const Json model{{"id", limits.model},
                   {"object", "model"},
                   {"created", created_s},
                   {"owned_by", "llmprof"},
                   {"max_model_len", limits.max_model_len}};
  return base::to_line(Json{{"object", "list"}, {"data", Json::array({model})}});
}

}  // namespace llmprof::workload::openai
