// The rules of docs/format/view-api.md about hosts, tokens, origins and headers: each test fails without its guard.

#include "view/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::view {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Site kSite{.port = 8080, .address = "", .token = "t0ken", .session = "s3ssion"};

Request get(const std::string& target, std::vector<std::pair<std::string, std::string>> more = {}) {
  Request request{.method = "GET", .target = target, .headers = {{"host", "127.0.0.1:8080"}}, .body = ""};
  for (auto& header : more) request.headers.push_back(std::move(header));
  return request;
}
Request post(const std::string& target, std::vector<std::pair<std::string, std::string>> more = {}) {
  Request request = get(target, std::move(more));
  request.method = "POST";
  request.body = "{}";
  return request;
}
const std::pair<std::string, std::string> kCookie{"cookie", "llmprof_8080=s3ssion"};
const std::pair<std::string, std::string> kJson{"content-type", "application/json"};

int status_of(const Request& request, const Site& site = kSite) {
  const auto refused = refuse(request, site);
  return refused ? refused->status : 0;
}
int status_of_host(const std::string& host) {
  Request request = get("/");
  request.headers[0].second = host;
  return status_of(request);
}

TEST(Guard, HostOnlyOurOwnNamesWithOurPort) {
  for (const char* host : {"127.0.0.1:8080", "localhost:8080", "[::1]:8080"})
    EXPECT_EQ(status_of_host(host), 0) << host;
  for (const char* host :
       {"evil.com", "evil.com:8080", "127.0.0.1", "localhost", "127.0.0.1:8081", "127.0.0.1.nip.io:8080",
        "localhost.:8080", "LOCALHOST:8080", "127.0.0.1:8080@evil.com", "::1:8080", "127.1:8080", "0.0.0.0:8080",
        "127.0.0.1:08080", "", ":8080", "127.0.0.1:8080,evil.com"})
    EXPECT_EQ(status_of_host(host), 421) << host;
}

TEST(Guard, HostMissingOrSecondHostAndAbsoluteForm) {
  Request missing = get("/");
  missing.headers.clear();
  EXPECT_EQ(status_of(missing), 421);
  EXPECT_EQ(status_of(get("/", {{"host", "127.0.0.1:8080"}})), 421);
  EXPECT_EQ(status_of(get("http://evil.com/")), 421);
  EXPECT_EQ(status_of(get("http://127.0.0.1:8080/")), 421);
}

TEST(Guard, HostComesBeforeEverythingElseForEveryMethod) {
  for (const char* method : {"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "TRACE", "CONNECT"}) {
    Request request = get("/api/runs", {kCookie, kJson});
    request.method = method;
    request.headers[0].second = "evil.com:8080";
    EXPECT_EQ(status_of(request), 421) << method;
  }
  EXPECT_EQ(status_of(get("/", {{"upgrade", "websocket"}, {"host", "evil.com"}})), 421);
}

TEST(Guard, AnotherAddressIsOneMoreNameAndNoMore) {
  Site site = kSite;
  site.address = "192.168.1.5";
  Request request = get("/");
  request.headers[0].second = "192.168.1.5:8080";
  EXPECT_EQ(status_of(request, site), 0);
  EXPECT_EQ(status_of(request), 421);
}

TEST(Guard, TokenEverythingUnderApiNeedsTheCookie) {
  EXPECT_EQ(status_of(get("/")), 0);  // the page itself holds no data
  for (const char* path : {"/api/runs", "/api/run/0", "/api/", "/api/session?x", "/api/nothing"})
    EXPECT_EQ(status_of(get(path)), 401) << path;
  EXPECT_EQ(status_of(get("/api/runs", {kCookie})), 0);
  EXPECT_EQ(status_of(get("/api/runs", {{"cookie", "a=b; llmprof_8080=s3ssion; c=d"}})), 0);
  for (const char* cookie : {"llmprof_8080=t0ken", "llmprof_8080=", "llmprof_8080", "llmprof_8080=s3ssionx",
                             "llmprof_8080=s3ssio", "llmprof_8081=s3ssion", "xllmprof_8080=s3ssion", "s3ssion"})
    EXPECT_EQ(status_of(get("/api/runs", {{"cookie", cookie}})), 401) << cookie;
}

TEST(Guard, TokenASessionWithoutASecretLetsNobodyIn) {
  EXPECT_EQ(status_of(get("/api/runs", {{"cookie", "llmprof_8080="}}), Site{.port = 8080}), 401);
}

TEST(Guard, TokenTheCookieIsOutOfReachOfScriptsAndOtherSites) {
  const std::string cookie = kSite.set_cookie();
  EXPECT_THAT(cookie, HasSubstr("; HttpOnly"));
  EXPECT_THAT(cookie, HasSubstr("; SameSite=Strict"));
  EXPECT_THAT(cookie, Not(HasSubstr(kSite.token)));
  EXPECT_THAT(cookie, Not(HasSubstr("Domain")));
}

TEST(Guard, OriginMustBeOurs) {
  EXPECT_EQ(status_of(get("/", {{"origin", "http://127.0.0.1:8080"}})), 0);
  for (const char* origin : {"http://evil.com", "null", "https://127.0.0.1:8080", "http://127.0.0.1:8081",
                             "http://localhost:8080", "http://127.0.0.1"})
    EXPECT_EQ(status_of(get("/", {{"origin", origin}})), 403) << origin;
  EXPECT_EQ(status_of(get("/", {{"origin", "http://127.0.0.1:8080"}, {"origin", "http://evil.com"}})), 403);
}

TEST(Guard, OriginSecFetchSiteMustBeOursOrTheUser) {
  for (const char* from : {"same-origin", "none"}) EXPECT_EQ(status_of(get("/", {{"sec-fetch-site", from}})), 0);
  for (const char* from : {"cross-site", "same-site", "", "NONE"})
    EXPECT_EQ(status_of(get("/", {{"sec-fetch-site", from}})), 403) << from;
  EXPECT_EQ(status_of(get("/", {{"sec-fetch-site", "none"}, {"sec-fetch-site", "cross-site"}})), 403);
}

TEST(Guard, OriginOnlyThreeMethods) {
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"}) {
    Request request = get("/");
    request.method = method;
    EXPECT_EQ(status_of(request), 405) << method;
  }
}

TEST(Guard, OriginPostNeedsJsonAndTheCookie) {
  EXPECT_EQ(status_of(post("/api/run/0/query", {kCookie, kJson})), 0);
  EXPECT_EQ(status_of(post("/api/run/0/query", {kJson})), 401);
  EXPECT_EQ(status_of(post("/", {kJson})), 401);
  EXPECT_EQ(status_of(post("/api/session", {kJson})), 0);  // it brings the token itself
  EXPECT_EQ(status_of(post("/api/run/0/query", {kCookie})), 415);
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8", ""})
    EXPECT_EQ(status_of(post("/api/session", {{"content-type", type}})), 415) << type;
}

TEST(Guard, PathsTargetsBeginWithASlash) {
  EXPECT_EQ(status_of(get("api/runs")), 400);
  EXPECT_EQ(status_of(get("*")), 400);
}

TEST(Guard, ABodyComesWithPostOnly) {
  Request request = get("/");
  request.body = "x";
  EXPECT_EQ(status_of(request), 400);
}

// The policy as docs/format/view-api.md spells it.
TEST(Response, HeadersStandInEveryAnswer) {
  for (const int status : {200, 401, 404, 421, 431}) {
    const std::string bytes = to_bytes(refusal(status, "x"), false, true);
    EXPECT_THAT(bytes,
                HasSubstr("\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
                          "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                          "frame-ancestors 'none'\r\n"));
    EXPECT_THAT(bytes, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
    EXPECT_THAT(bytes, HasSubstr("\r\nReferrer-Policy: no-referrer\r\n"));
    EXPECT_THAT(bytes, HasSubstr("\r\nCross-Origin-Resource-Policy: same-origin\r\n"));
    EXPECT_THAT(bytes, HasSubstr("\r\nCache-Control: no-store\r\n"));
    EXPECT_THAT(bytes, Not(HasSubstr("Access-Control")));
  }
}

TEST(Response, HeadHasTheLengthButNoBody) {
  const std::string bytes = to_bytes({.body = "abc"}, true, false);
  EXPECT_THAT(bytes, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_TRUE(bytes.ends_with("\r\n\r\n"));
}

TEST(Secret, Is128RandomBitsAndComparesWhole) {
  const auto one = make_secret(), other = make_secret();
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->size(), 32u);
  EXPECT_EQ(one->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*one, *other);
  EXPECT_TRUE(same_secret("abc", "abc"));
  for (const char* wrong : {"abd", "bbc", "ab", "abcd", ""}) EXPECT_FALSE(same_secret(wrong, "abc")) << wrong;
  EXPECT_FALSE(same_secret("", ""));
}

}  // namespace
}  // namespace llmprof::view
