// view::parse_request and the guard behind it: whatever bytes come, they are read within their limits, and a request
// that the guard lets through has one of our names as its only Host and, under /api/, the cookie.

#include "view/http.h"

#include "fuzz.h"
#include "view/guard.h"

namespace llmprof::fuzz {
namespace {

using State = view::ParsedRequest::State;

const view::Site kSite{.port = 8080, .address = "", .token = "aaaa", .session = "bbbb"};

void check(const view::Request& request) {
  const view::RequestLimits limits;
  require(request.target.size() <= limits.target_bytes);
  require(request.headers.size() <= limits.headers);
  require(request.body.size() <= limits.body_bytes);
  if (view::refuse(request, kSite)) return;
  require(request.count("host") == 1);
  const std::string& host = *request.header("host");
  require(host == "127.0.0.1:8080" || host == "localhost:8080" || host == "[::1]:8080");
  require(request.method == "GET" || request.method == "HEAD" || request.method == "POST");
  require(request.target.front() == '/');
  const bool session = request.method == "POST" && request.target == "/api/session";
  if (request.target.starts_with("/api/") && !session)
    require(request.header("cookie")->find("llmprof_8080=bbbb") != std::string::npos);
}

void run(std::string_view input) {
  const view::ParsedRequest parsed = view::parse_request(input);
  if (parsed.state == State::kBad) {
    require(parsed.status >= 400 && parsed.status < 600);
    (void)view::to_bytes(view::refusal(parsed.status, "x"), false, true);
    return;
  }
  if (parsed.state == State::kMore) return;
  require(parsed.consumed > 0 && parsed.consumed <= input.size());
  check(parsed.request);
  // What comes behind a request does not change it, and no part of it is a whole one.
  const view::ParsedRequest again = view::parse_request(input.substr(0, parsed.consumed));
  require(again.state == State::kWhole && again.consumed == parsed.consumed);
  require(again.request.target == parsed.request.target && again.request.body == parsed.request.body);
  require(view::parse_request(input.substr(0, parsed.consumed - 1)).state != State::kWhole);
}

std::vector<std::string> seeds() {
  const std::string host = "Host: 127.0.0.1:8080\r\n", cookie = "Cookie: llmprof_8080=bbbb\r\n";
  return {"GET / HTTP/1.1\r\n" + host + "\r\n",
          "GET /api/run/0/timeline?begin=0&end=100&width=1500 HTTP/1.1\r\n" + host + cookie +
              "Sec-Fetch-Site: same-origin\r\nConnection: keep-alive\r\n\r\n",
          "POST /api/session HTTP/1.1\r\n" + host +
              "Origin: http://127.0.0.1:8080\r\nContent-Type: application/json\r\n"
              "Content-Length: 16\r\n\r\n{\"token\":\"aaaa\"}GET / HTTP/1.1\r\n\r\n",
          "HEAD http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\nHost: localhost:8080\r\n\r\n",
          "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc"};
}

std::vector<std::string> dictionary() {
  return {"GET ",
          "POST ",
          "HEAD ",
          "HTTP/1.1",
          "Host: ",
          "localhost:8080",
          "[::1]:8080",
          "Content-Length: ",
          "\r\n",
          "\r\n\r\n",
          "/api/session",
          "Origin: ",
          "Cookie: llmprof_8080=bbbb",
          "Connection: close",
          "..",
          "%2e%2e",
          "%00",
          "Content-Type: application/json",
          "Sec-Fetch-Site: none",
          "Transfer-Encoding: chunked"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
