#pragma once
// The OpenAI protocol from a client's side: what servers have, and the bodies of requests.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "load/http_client.h"
#include "load/prompts.h"

namespace llmprof::load {

enum class Endpoint : std::uint8_t { kCompletions, kChat };
std::string_view path_of(Endpoint endpoint);  // "/v1/completions"
std::string_view name_of(Endpoint endpoint);  // "completions"

// What every body of a load says.
struct BodyOptions {
  Endpoint endpoint = Endpoint::kCompletions;
  std::string model;
  bool stream = true;
  bool ignore_eos = false;
  bool send_ids = false;  // completions: token ids instead of text, where the prompt has them
  std::optional<double> temperature;
  std::vector<std::pair<std::string, std::string>> extra;  // field, JSON text; null leaves a field out
};

// Makes bodies: what all have in common is written once.
class Bodies {
 public:
  static Result<Bodies> make(const BodyOptions& options);  // an error names the field that is no JSON
  std::string body(const Prompt& prompt) const;

 private:
  BodyOptions options_;
  std::string common_;  // ',"model":"m","stream":true}'
  bool own_length_ = true, own_prompt_ = true;  // not given by `extra`
};

// "127.0.0.1:8000/v1/" is "http://127.0.0.1:8000".
Result<std::string> base_url_of(std::string_view url);

struct Server {
  std::string model;
  Endpoint endpoint = Endpoint::kCompletions;
  std::vector<std::string> models;
  std::string named_by;  // its `server` of the models list: "vllm", "llmprof"; ""
};
// Asks the server which models it has and which endpoint. What is given is not asked for. Errors say what to do.
Result<Server> find_server(HttpClient& client, const std::string& url, const std::string& model,
                           std::optional<Endpoint> endpoint);

}  // namespace llmprof::load
