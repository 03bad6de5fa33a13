#include "view/http.h"

#include <fmt/format.h>

#include "base/json.h"

namespace llmprof::view {

namespace {

constexpr std::string_view kSecurity =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

}  // namespace

Response refusal(int status, std::string_view message) {
  return {.status = status, .body = base::to_line(base::Json{{"error", message}})};
}

std::string to_bytes(const Response& response, bool keep_alive, bool with_body) {
  std::string bytes = fmt::format("HTTP/1.1 {} {}\r\n{}Content-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n",
                                  response.status, base::status_words(response.status), kSecurity, response.type,
                                  response.body.size(), keep_alive ? "keep-alive" : "close");
  if (response.status == 405) bytes += "Allow: GET, HEAD, POST\r\n";
  if (response.retry) bytes += "Retry-After: 1\r\n";
  if (!response.cookie.empty()) bytes += "Set-Cookie: " + response.cookie + "\r\n";
  bytes += "\r\n";
  if (with_body) bytes += response.body;
  return bytes;
}

}  // namespace llmprof::view
