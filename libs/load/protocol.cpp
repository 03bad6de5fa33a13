#include "load/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/json.h"
#include "base/suggest.h"
#include "load/message.h"

namespace llmprof::load {
namespace {

using base::Json;

// The words of an answer that is an error, at most a line.
std::string words_of(const std::string& body) {
  Message message;
  if (parse_message(body, message) && !message.error.empty()) return message.error;
  const std::string line = body.substr(0, body.find('\n'));
  return line.size() <= 200 ? line : line.substr(0, 200) + "…";
}

Error refusal(const std::string& url, const HttpReply& reply, std::string_view what) {
  const Outcome& out = reply.outcome;
  switch (out.failure) {
    case Failure::kRefused:
      return {ErrorCode::kIo, fmt::format("nothing listens at {}", url), "start the server first, or check host and port"};
    case Failure::kUnreachable:
      return {ErrorCode::kIo, fmt::format("{} cannot be reached: {}", url, out.error),
              out.error.find("certificate") != std::string::npos || out.error.find("SSL") != std::string::npos
                  ? "--insecure does not check certificates, --cacert FILE trusts one"
                  : "check the address"};
    case Failure::kNone:
      break;
    default:
      return {ErrorCode::kIo, fmt::format("{} did not answer {}: {}", url, what, out.error),
              "is it an HTTP server? https:// where it speaks TLS"};
  }
  const std::string said = fmt::format("{} answered {} with {}: {}", url, what, out.http_status, words_of(reply.body));
  if (out.http_status == 401 || out.http_status == 403)
    return {ErrorCode::kPermission, said, "set OPENAI_API_KEY, or --header 'Authorization: Bearer …'"};
  return {ErrorCode::kIo, said, "--model NAME and --endpoint completions|chat say what it does not"};
}

std::vector<std::string> models_in(const Json& json) {
  std::vector<std::string> names;
  const auto data = json.find("data");
  if (data == json.end() || !data->is_array()) return names;
  for (const Json& each : *data) {
    if (each.is_object() && each.contains("id") && each["id"].is_string()) names.push_back(each["id"].get<std::string>());
  }
  return names;
}

// A body that lacks its prompt: a server that has the endpoint says so, one that has not says 404.
bool has(HttpClient& client, Endpoint endpoint, const std::string& model) {
  const HttpReply reply = fetch(client, std::string(path_of(endpoint)), base::to_line(Json{{"model", model}, {"max_tokens", 1}}));
  const int status = reply.outcome.http_status;
  return reply.outcome.failure == Failure::kNone && status != 404 && status != 405 && status != 501;
}

// Whether it answers a request for one token: the lists of some servers leave out the model that they were started with
// (transformers), or a name that they take as well.
bool answers(HttpClient& client, Endpoint endpoint, const std::string& model) {
  Json body{{"model", model}, {"max_tokens", 1}};
  if (endpoint == Endpoint::kChat) {
    body["messages"] = Json::array({Json{{"role", "user"}, {"content", "a"}}});
  } else {
    body["prompt"] = "a";
  }
  return fetch(client, std::string(path_of(endpoint)), base::to_line(body)).outcome.http_status == 200;
}

}  // namespace

std::string_view path_of(Endpoint endpoint) {
  return endpoint == Endpoint::kChat ? "/v1/chat/completions" : "/v1/completions";
}
std::string_view name_of(Endpoint endpoint) { return endpoint == Endpoint::kChat ? "chat" : "completions"; }

Result<Bodies> Bodies::make(const BodyOptions& options) {
  Bodies out;
  out.options_ = options;
  Json common = Json::object();
  common["model"] = options.model;
  common["stream"] = options.stream;
  if (options.stream) common["stream_options"] = Json{{"include_usage", true}};
  if (options.ignore_eos) common["ignore_eos"] = true;
  if (options.temperature) common["temperature"] = *options.temperature;
  for (const auto& [key, text] : options.extra) {
    Result<Json> parsed = base::parse_json(text, key);
    if (!parsed)
      return Error{ErrorCode::kUsage, fmt::format("--body {}: '{}' is not JSON", key, text), "texts have quotes: --body 'user=\"a\"'"};
    Json value = std::move(*parsed);
    out.own_length_ = out.own_length_ && key != "max_tokens" && key != "max_completion_tokens";
    out.own_prompt_ = out.own_prompt_ && key != "prompt" && key != "messages";
    if (value.is_null()) {
      common.erase(key);
    } else {
      common[key] = std::move(value);
    }
  }
  out.common_ = base::to_line(common).substr(1);
  return out;
}

std::string Bodies::body(const Prompt& prompt) const {
  std::string out = "{";
  if (own_prompt_ && options_.endpoint == Endpoint::kChat && !prompt.messages.empty()) {
    out += fmt::format(R"("messages":{},)", prompt.messages);
  } else if (own_prompt_ && options_.endpoint == Endpoint::kChat) {
    out += fmt::format(R"("messages":[{{"role":"user","content":{}}}],)", base::to_line(Json(prompt.text)));
  } else if (own_prompt_ && !prompt.ids.empty() && (options_.send_ids || prompt.text.empty())) {
    out += fmt::format(R"("prompt":[{}],)", fmt::join(prompt.ids, ","));
  } else if (own_prompt_) {
    out += fmt::format(R"("prompt":{},)", base::to_line(Json(prompt.text)));
  }
  if (own_length_ && prompt.output_tokens > 0) out += fmt::format(R"("max_tokens":{},)", prompt.output_tokens);
  return out + common_;
}

Result<std::string> base_url_of(std::string_view url) {
  std::string out(url);
  if (out.find("://") == std::string::npos) out.insert(0, "http://");
  const std::string_view scheme = std::string_view(out).substr(0, out.find("://"));
  if (scheme != "http" && scheme != "https")
    return Error{ErrorCode::kUsage, fmt::format("'{}' is neither http nor https", url), "as in http://127.0.0.1:8000"};
  for (const std::string_view path : {"/v1/chat/completions", "/v1/completions"}) {
    if (out.ends_with(path)) out.resize(out.size() - path.size());
  }
  while (out.ends_with('/')) out.pop_back();
  if (out.ends_with("/v1")) out.resize(out.size() - 3);
  while (out.ends_with('/')) out.pop_back();
  if (out.size() <= scheme.size() + 3) return Error{ErrorCode::kUsage, fmt::format("'{}' names no host", url), "as in http://127.0.0.1:8000"};
  return out;
}

Result<Server> find_server(HttpClient& client, const std::string& url, const std::string& model,
                           std::optional<Endpoint> endpoint) {
  Server out;
  out.model = model;
  const HttpReply reply = fetch(client, "/v1/models");
  if (reply.outcome.failure != Failure::kNone) return refusal(url, reply, "/v1/models");
  if (reply.outcome.http_status == 200) {
    const Result<Json> json = base::parse_json(reply.body, "/v1/models");
    if (json && json->is_object()) out.models = models_in(*json);
  }
  if (reply.outcome.http_status == 401 || reply.outcome.http_status == 403 || (out.models.empty() && model.empty()))
    return refusal(url, reply, "/v1/models");
  if (out.model.empty()) out.model = out.models.front();
  const bool listed = out.models.empty() || std::ranges::find(out.models, out.model) != out.models.end();
  const bool known = listed || (endpoint != Endpoint::kChat && answers(client, Endpoint::kCompletions, out.model)) ||
                     (endpoint != Endpoint::kCompletions && answers(client, Endpoint::kChat, out.model));
  if (!known) {
    return Error{ErrorCode::kNotFound, fmt::format("{} has no model called {}", url, out.model),
                 fmt::format("it has: {}", fmt::join(out.models, ", "))};
  }
  if (endpoint) {
    out.endpoint = *endpoint;
  } else if (has(client, Endpoint::kCompletions, out.model)) {
    out.endpoint = Endpoint::kCompletions;
  } else if (has(client, Endpoint::kChat, out.model)) {
    out.endpoint = Endpoint::kChat;
  } else {
    return Error{ErrorCode::kNotFound, fmt::format("{} has neither /v1/completions nor /v1/chat/completions", url),
                 "give the address of the server's API without a path; --endpoint does not ask"};
  }
  return out;
}

}  // namespace llmprof::load
