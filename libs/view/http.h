#pragma once
// An answer of the page's server, and the headers that every answer has. Requests are read by base/http.h.

#include <string>
#include <string_view>

#include "base/http.h"

namespace llmprof::view {

using base::ParsedRequest;
using base::parse_request;
using base::Request;
using base::RequestLimits;

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
