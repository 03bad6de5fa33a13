#pragma once
// One HTTP/1.1 request as bytes say it. Strict: what a browser never sends is refused, because two readers that
// understand a request differently are how guards are passed by. A pure function of the bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmprof::base {

struct RequestLimits {
  std::size_t target_bytes = 4 << 10;
  std::size_t head_bytes = 16 << 10;  // request line and headers together
  std::size_t body_bytes = 1 << 20;
  std::size_t headers = 64;
};

struct Request {
  std::string method;                                        // "GET"; any token
  std::string target;                                        // as it stands: "/api/run/0?x=1", "http://evil.com/", "*"
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool keep_alive = true;

  // The value of a header that stands there exactly once; nullptr otherwise.
  const std::string* header(std::string_view name) const;
  std::size_t count(std::string_view name) const;
};

struct ParsedRequest {
  enum class State : std::uint8_t { kMore, kWhole, kBad };
  State state = State::kMore;
  int status = 0;            // of kBad: 400, 411, 413, 414, 431, 501 or 505
  std::size_t consumed = 0;  // of kWhole: bytes of this request; the next one begins there
  Request request;
};

ParsedRequest parse_request(std::string_view bytes, const RequestLimits& limits = {});

std::string_view status_words(int status);  // "Not Found"

}  // namespace llmprof::base
