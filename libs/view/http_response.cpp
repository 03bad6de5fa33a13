#include "view/http_response.h"

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

std::string_view words(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

}  // namespace

Response refusal(int status, std::string_view message) {
  return {.status = status, .body = base::to_line(base::Json{{"error", message}})};
}

std::string to_bytes(const Response& response, bool keep_alive, bool with_body) {
  std::string bytes = fmt::format("HTTP/1.1 {} {}\r\n{}Content-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n",
                                  response.status, words(response.status), kSecurity, response.type,
                                  response.body.size(), keep_alive ? "keep-alive" : "close");
  if (response.status == 405) bytes += "Allow: GET, HEAD, POST\r\n";
  if (response.retry) bytes += "Retry-After: 1\r\n";
  if (!response.cookie.empty()) bytes += "Set-Cookie: " + response.cookie + "\r\n";
  bytes += "\r\n";
  if (with_body) bytes += response.body;
  return bytes;
}

}  // namespace llmprof::view
