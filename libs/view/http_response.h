#pragma once
// An answer, and the headers that every answer has (RELIABILITY W6).

#include <string>
#include <string_view>

namespace llmprof::view {

struct Response {
  int status = 200;
  std::string type = "application/json";  // of the body
  std::string body;
  std::string cookie = {};  // Set-Cookie; "" none
  bool retry = false;       // 202: ask again in a second
};

// {"error": …}
Response refusal(int status, std::string_view message);
// The bytes to send; `with_body` is false for HEAD.
std::string to_bytes(const Response& response, bool keep_alive, bool with_body);

}  // namespace llmprof::view
