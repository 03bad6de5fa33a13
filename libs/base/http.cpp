#include "base/http.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/strings.h"

namespace llmprof::base {

namespace {

using State = ParsedRequest::State;

ParsedRequest bad(int status) { return {State::kBad, status, 0, {}}; }

bool is_token_character(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}
bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_character); }
bool is_visible(char c) { return c > ' ' && c < '\x7f'; }
bool is_value_character(char c) {
  return is_visible(c) || c == ' ' || c == '\t' || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// "GET /path HTTP/1.1": 0, or the status of what is wrong.
int parse_line(std::string_view line, const RequestLimits& limits, Request& request) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view method = line.substr(0, first), target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || target.empty() || !std::ranges::all_of(target, is_visible)) return 400;
  if (target.size() > limits.target_bytes) return 414;
  if (version != "HTTP/1.1") return version.starts_with("HTTP/") ? 505 : 400;
  request.method = method;
  request.target = target;
  return 0;
}

int parse_header(std::string_view line, const RequestLimits& limits, Request& request) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return 400;  // folded lines too
  const std::string_view value = without_blanks(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_value_character)) return 400;
  if (request.headers.size() == limits.headers) return 431;
  request.headers.emplace_back(lowercase(line.substr(0, colon)), value);
  return 0;
}

// Lines end in CR LF; a CR or LF anywhere else is refused by the characters that lines may have.
int parse_head(std::string_view head, const RequestLimits& limits, Request& request) {
  bool first = true;
  while (!head.empty()) {
    const auto end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    if (const int status = first ? parse_line(line, limits, request) : parse_header(line, limits, request))
      return status;
    first = false;
    head.remove_prefix(std::min(head.size(), end + 2));
  }
  return first ? 400 : 0;
}

// Bytes of the body; nothing and a status if that cannot be told.
std::optional<std::size_t> body_bytes(const Request& request, const RequestLimits& limits, int& status) {
  if (request.count("transfer-encoding") != 0) return status = 501, std::nullopt;
  if (request.count("expect") != 0) return status = 400, std::nullopt;
  if (request.count("content-length") == 0) {
    if (request.method == "POST") return status = 411, std::nullopt;
    return 0;
  }
  const std::string* text = request.header("content-length");
  std::size_t bytes = 0;
  if (text == nullptr || text->empty() || text->size() > 18) return status = 400, std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), bytes);
  if (error != std::errc{} || end != text->data() + text->size()) return status = 400, std::nullopt;
  if (bytes > limits.body_bytes) return status = 413, std::nullopt;
  return bytes;
}

bool wants_to_stay(const Request& request) {
  const std::string* connection = request.header("connection");
  return connection == nullptr ? request.count("connection") == 0 : lowercase(*connection) != "close";
}

// A head that grows beyond its limits is refused before it is whole.
ParsedRequest unfinished(std::string_view bytes, const RequestLimits& limits) {
  if (bytes.find("\r\n") == std::string_view::npos && bytes.size() > limits.target_bytes + 64) return bad(414);
  if (bytes.size() > limits.head_bytes) return bad(431);
  return {};
}

}  // namespace

const std::string* Request::header(std::string_view name) const {
  const std::string* found = nullptr;
  for (const auto& [each, value] : headers) {
    if (each != name) continue;
    if (found != nullptr) return nullptr;
    found = &value;
  }
  return found;
}

std::size_t Request::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count_if(headers, [&](const auto& each) { return each.first == name; }));
}

ParsedRequest parse_request(std::string_view bytes, const RequestLimits& limits) {
  const auto end = bytes.substr(0, limits.head_bytes + 4).find("\r\n\r\n");
  if (end == std::string_view::npos) return unfinished(bytes, limits);
  ParsedRequest parsed;
  if (const int status = parse_head(bytes.substr(0, end), limits, parsed.request)) return bad(status);
  int status = 0;
  const auto length = body_bytes(parsed.request, limits, status);
  if (!length) return bad(status);
  const std::string_view rest = bytes.substr(end + 4);
  if (rest.size() < *length) return {};
  parsed.state = State::kWhole;
  parsed.consumed = end + 4 + *length;
  parsed.request.body = rest.substr(0, *length);
  parsed.request.keep_alive = wants_to_stay(parsed.request);
  return parsed;
}

namespace {

constexpr std::pair<int, std::string_view> kWords[] = {{200, "OK"},
                                                       {202, "Accepted"},
                                                       {400, "Bad Request"},
                                                       {401, "Unauthorized"},
                                                       {403, "Forbidden"},
                                                       {404, "Not Found"},
                                                       {405, "Method Not Allowed"},
                                                       {408, "Request Timeout"},
                                                       {411, "Length Required"},
                                                       {413, "Content Too Large"},
                                                       {414, "URI Too Long"},
                                                       {415, "Unsupported Media Type"},
                                                       {421, "Misdirected Request"},
                                                       {431, "Request Header Fields Too Large"},
                                                       {500, "Internal Server Error"},
                                                       {501, "Not Implemented"},
                                                       {503, "Service Unavailable"},
                                                       {505, "HTTP Version Not Supported"}};

}  // namespace

std::string_view status_words(int status) {
  const auto found = std::ranges::find(kWords, status, &std::pair<int, std::string_view>::first);
  return found == std::end(kWords) ? "Error" : found->second;
}

}  // namespace llmprof::base
