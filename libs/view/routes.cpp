#include "view/routes.h"

#include <charconv>
#include <string_view>

#include "base/json.h"
#include "view/guard.h"

namespace llmprof::view {
namespace {

constexpr std::string_view kIndex =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>llmprof</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/app.css\">\n</head>\n<body>\n"
    "<div id=\"app\"><noscript>This page needs JavaScript.</noscript></div>\n"
    "<script src=\"/app.js\"></script>\n</body>\n</html>\n";

constexpr int kLeastWidth = 16, kMostWidth = 8192;

Response not_found() { return refusal(404, "there is no such thing"); }

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Values of the query only; paths are never decoded. Nothing if it is malformed.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hexadecimal(text[i + 1]), low = hexadecimal(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// "begin=1&end=2": the value of a key; nothing if it is not there.
std::optional<std::string_view> parameter(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view each = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), each.size() + 1));
    if (each.size() > key.size() && each.starts_with(key) && each[key.size()] == '=')
      return each.substr(key.size() + 1);
  }
  return std::nullopt;
}

struct Address {
  std::string_view path, query;
};
Address split(std::string_view target) {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos) return {target, {}};
  return {target.substr(0, mark), target.substr(mark + 1)};
}

Response session(const Routes& routes, const Request& request) {
  const auto body = base::parse_json(request.body, "body");
  const bool known = body && body->is_object() && body->contains("token") && (*body)["token"].is_string() &&
                     same_secret((*body)["token"].get<std::string>(), routes.site.token);
  if (!known) return refusal(401, "wrong token");
  return {.body = "{}", .cookie = routes.site.set_cookie()};
}

// "width", "begin" and "end" of a window; what is wrong with them, in words.
std::string read_window(std::string_view query, std::optional<pictures::Window>& window, int& width) {
  if (const auto text = parameter(query, "width")) {
    const auto pixels = number_of<int>(*text);
    if (!pixels || *pixels < kLeastWidth || *pixels > kMostWidth) return "width: 16 to 8192 pixels";
    width = *pixels;
  }
  const auto begin = parameter(query, "begin"), end = parameter(query, "end");
  if (begin || end) {
    const auto from = number_of<std::int64_t>(begin.value_or("")), to = number_of<std::int64_t>(end.value_or(""));
    constexpr std::int64_t kMost = INT64_MAX / 4;  // differences must not overflow
    if (!from || !to || *from >= *to || *from < -kMost || *to > kMost)
      return "begin and end: nanoseconds, begin before end";
    window = pictures::Window{*from, *to};
  }
  return "";
}

Response timeline(const Routes& routes, std::size_t run, std::string_view query) {
  pictures::TimelineRequest wanted;
  const std::string wrong = read_window(query, wanted.window, wanted.width);
  if (!wrong.empty()) return refusal(400, wrong);
  const auto stage = decoded(parameter(query, "stage").value_or(""));
  if (!stage) return refusal(400, "stage: malformed");
  wanted.stage = *stage;
  return routes.content.timeline(run, wanted);
}

Response requests(const Routes& routes, std::size_t run, std::string_view query) {
  std::optional<pictures::Window> window;
  int width = pictures::TimelineRequest{}.width;
  if (const std::string wrong = read_window(query, window, width); !wrong.empty()) return refusal(400, wrong);
  return routes.content.requests(run, window, width);
}

std::optional<Response> members(const Routes& routes, std::size_t run, std::string_view query, std::uint64_t ticket) {
  const auto step = number_of<std::int64_t>(parameter(query, "step").value_or(""));
  const auto request = number_of<std::int64_t>(parameter(query, "request").value_or(""));
  if (step.has_value() == request.has_value()) return refusal(400, "step or request: a number");
  return routes.content.members(run, step.has_value(), step ? *step : *request, ticket);
}

std::optional<Response> rows(const Routes& routes, std::size_t run, std::string_view query, std::uint64_t ticket) {
  const auto finding = number_of<std::size_t>(parameter(query, "finding").value_or(""));
  const auto evidence = number_of<std::size_t>(parameter(query, "evidence").value_or(""));
  if (!finding || !evidence) return refusal(400, "finding and evidence: numbers");
  return routes.content.rows(run, *finding, *evidence, ticket);
}

std::optional<Response> query(const Routes& routes, std::size_t run, const Request& request, std::uint64_t ticket) {
  if (!routes.allow_sql) return refusal(403, "own SQL is off: llmprof view --allow-sql, or llmprof query");
  const auto body = base::parse_json(request.body, "body");
  if (!body || !body->is_object() || !body->contains("sql") || !(*body)["sql"].is_string())
    return refusal(400, "body: {\"sql\": text}");
  return routes.content.query(run, (*body)["sql"].get<std::string>(), ticket);
}

// "/api/run/3/timeline": what follows "/api/run/".
std::optional<Response> of_run(const Routes& routes, std::string_view rest, const Request& request,
                               std::uint64_t ticket) {
  const std::string_view number = rest.substr(0, rest.find('/'));
  const std::string_view what = rest.substr(number.size());
  const auto run = number_of<std::size_t>(number);
  if (!run || *run >= routes.content.runs()) return refusal(404, "there is no such run");
  const std::string_view parameters = split(request.target).query;
  const bool post = request.method == "POST";
  if (what == "/query") return post ? query(routes, *run, request, ticket) : refusal(405, "POST only");
  if (post) return refusal(405, "GET only");
  if (what.empty()) return routes.content.run(*run);
  if (what == "/timeline") return timeline(routes, *run, parameters);
  if (what == "/requests") return requests(routes, *run, parameters);
  if (what == "/members") return members(routes, *run, parameters, ticket);
  if (what == "/rows") return rows(routes, *run, parameters, ticket);
  return not_found();
}

Response asset(const Routes& routes, std::string_view name, std::string_view type) {
  const std::string_view bytes = base::find_asset(routes.assets, name);
  if (bytes.empty()) return not_found();
  return {.type = std::string(type), .body = std::string(bytes)};
}

}  // namespace

std::optional<Response> route(const Routes& routes, const Request& request, std::uint64_t ticket) {
  constexpr std::string_view kRun = "/api/run/";
  const std::string_view path = split(request.target).path;
  if (path.starts_with(kRun)) return of_run(routes, path.substr(kRun.size()), request, ticket);
  const bool post = request.method == "POST";
  if (path == "/api/session") return post ? session(routes, request) : refusal(405, "POST only");
  if (post) return refusal(405, "GET only");
  if (path == "/api/runs") return routes.content.list();
  if (path == "/api/diffs") return routes.content.diffs();
  if (path == "/") return Response{.type = "text/html; charset=utf-8", .body = std::string(kIndex)};
  if (path == "/app.js") return asset(routes, "app.js", "text/javascript; charset=utf-8");
  if (path == "/app.css") return asset(routes, "app.css", "text/css; charset=utf-8");
  return not_found();
}

}  // namespace llmprof::view
