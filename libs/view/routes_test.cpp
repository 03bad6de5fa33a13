// Paths and their parameters: what reaches the runs, and that nothing else does.

#include "view/routes.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace llmprof::view {
namespace {

// Says what it was asked.
class Echo : public Content {
 public:
  std::size_t runs() const override { return 2; }
  Response list() const override { return {.body = "list"}; }
  Response run(std::size_t at) const override { return {.body = "run " + std::to_string(at)}; }
  Response timeline(std::size_t at, const pictures::TimelineRequest& request) const override {
    std::string text = "timeline " + std::to_string(at) + " " + std::to_string(request.width) + " " + request.stage;
    if (request.window)
      text += " " + std::to_string(request.window->begin_ns) + ".." + std::to_string(request.window->end_ns);
    return {.body = text};
  }
  Response requests(std::size_t at, std::optional<pictures::Window> window, int width) const override {
    return {.body = "requests " + std::to_string(at) + " " + std::to_string(width) +
                    (window ? " " + std::to_string(window->begin_ns) + ".." + std::to_string(window->end_ns) : "")};
  }
  std::optional<Response> members(std::size_t at, bool of_step, std::int64_t id, std::uint64_t ticket) const override {
    return Response{.body = "members " + std::to_string(at) + (of_step ? " step " : " request ") + std::to_string(id) +
                            " " + std::to_string(ticket)};
  }
  Response diffs() const override { return {.body = "diffs"}; }
  std::optional<Response> rows(std::size_t at, std::size_t finding, std::size_t evidence,
                               std::uint64_t ticket) const override {
    return Response{.body = "rows " + std::to_string(at) + " " + std::to_string(finding) + " " +
                            std::to_string(evidence) + " " + std::to_string(ticket)};
  }
  std::optional<Response> query(std::size_t at, const std::string& sql, std::uint64_t) const override {
    return Response{.body = "query " + std::to_string(at) + " " + sql};
  }
};

const Site kSite{.port = 8080, .address = "", .token = "t0ken", .session = "s3ssion"};
constexpr std::array<base::Asset, 2> kAssets{{{"app.js", "script"}, {"app.css", "style"}}};

Response asked(const std::string& target, const std::string& method = "GET", const std::string& body = "",
               bool allow_sql = false) {
  const Echo echo;
  const Routes routes{kSite, echo, kAssets, allow_sql};
  return route(routes, Request{.method = method, .target = target, .headers = {}, .body = body}, 7)
      .value_or(Response{.status = 0});
}

TEST(Routes, EveryPathThatExists) {
  EXPECT_NE(asked("/").body.find("src=\"/app.js\""), std::string::npos);
  EXPECT_EQ(asked("/app.js").body, "script");
  EXPECT_EQ(asked("/app.css").type, "text/css; charset=utf-8");
  EXPECT_EQ(asked("/api/runs").body, "list");
  EXPECT_EQ(asked("/api/run/1").body, "run 1");
  EXPECT_EQ(asked("/api/diffs").body, "diffs");
  EXPECT_EQ(asked("/api/run/0/rows?finding=2&evidence=1").body, "rows 0 2 1 7");
  EXPECT_EQ(asked("/api/run/1/timeline?begin=-5&end=10&width=100&stage=pre%20fill").body,
            "timeline 1 100 pre fill -5..10");
  EXPECT_EQ(asked("/api/run/1/timeline").body, "timeline 1 1500 ");
  EXPECT_EQ(asked("/api/run/0/requests?begin=2&end=10&width=100").body, "requests 0 100 2..10");
  EXPECT_EQ(asked("/api/run/0/requests").body, "requests 0 1500");
  EXPECT_EQ(asked("/api/run/0/members?step=4").body, "members 0 step 4 7");
  EXPECT_EQ(asked("/api/run/1/members?request=12").body, "members 1 request 12 7");
}

// The page may only hold scripts and styles from files: the policy refuses inline ones.
TEST(Routes, TheIndexHasNothingInline) {
  const std::string page = asked("/").body;
  EXPECT_EQ(page.find("<style"), std::string::npos);
  EXPECT_EQ(page.find("style="), std::string::npos);
  EXPECT_EQ(page.find(" on"), std::string::npos);
  EXPECT_NE(page.find("></script>"), std::string::npos);
}

TEST(Routes, NothingElseIsThere) {
  for (const char* path : {"/..",
                           "/../app.js",
                           "/%2e%2e/app.js",
                           "/%2e%2e%5capp.js",
                           "/..%00",
                           "//app.js",
                           "//",
                           "/app.js/",
                           "/./app.js",
                           "/app.js%00",
                           "/%61pp.js",
                           "/app.js?raw?\?/../..",
                           "/#",
                           "/app.js#x",
                           "/etc/passwd",
                           "/run.json",
                           "/api",
                           "/api/run/",
                           "/api/run/2",
                           "/api/run/-1",
                           "/api/run/0x0",
                           "/api/run/00/../..",
                           "/api/run/0/../1",
                           "/api/run/0//timeline",
                           "/api/run/18446744073709551616",
                           "/api/run/ 0",
                           "/api/run/0/tables/kernel.parquet"}) {
    const Response response = asked(path);
    const bool is_asset = std::string(path) == "/app.js?raw?\?/../..";  // the path is /app.js, the rest a query
    EXPECT_EQ(response.status, is_asset ? 200 : 404) << path;
    if (!is_asset) {
      EXPECT_EQ(response.body.find("script"), std::string::npos) << path;
    }
  }
}

TEST(Routes, ParametersAreChecked) {
  for (const char* query : {"begin=1", "end=1", "begin=2&end=1", "begin=1&end=1", "begin=x&end=2", "begin=1&end=2x",
                            "width=0", "width=15", "width=8193", "width=1e3", "width=", "stage=%", "stage=%zz",
                            "begin=-9223372036854775808&end=9223372036854775807", "begin=&end="})
    EXPECT_EQ(asked(std::string("/api/run/0/timeline?") + query).status, 400) << query;
  for (const char* query : {"", "finding=0", "evidence=0", "finding=-1&evidence=0", "finding=a&evidence=b"})
    EXPECT_EQ(asked(std::string("/api/run/0/rows?") + query).status, 400) << query;
  for (const char* query : {"begin=2&end=1", "end=1", "width=8193", "begin=1&end=2x"})
    EXPECT_EQ(asked(std::string("/api/run/0/requests?") + query).status, 400) << query;
  for (const char* query : {"", "step=", "request=x", "step=1&request=2", "step=1%20OR%201=1"})
    EXPECT_EQ(asked(std::string("/api/run/0/members?") + query).status, 400) << query;
}

TEST(Routes, TheTokenMakesTheCookie) {
  const Response good = asked("/api/session", "POST", R"({"token": "t0ken"})");
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.cookie, kSite.set_cookie());
  EXPECT_EQ(good.body.find("s3ssion"), std::string::npos);  // scripts do not see it
  for (const char* body : {"", "{}", R"({"token": ""})", R"({"token": "t0keN"})", R"({"token": "s3ssion"})", "[]",
                           R"({"token": 1})", R"({"token": null})", "\"t0ken\"", "{"}) {
    const Response bad = asked("/api/session", "POST", body);
    EXPECT_EQ(bad.status, 401) << body;
    EXPECT_EQ(bad.cookie, "") << body;
  }
  EXPECT_EQ(asked("/api/session").status, 405);
}

TEST(Routes, SqlIsOffUnlessAllowed) {
  const std::string body = R"({"sql": "SELECT 1"})";
  EXPECT_EQ(asked("/api/run/0/query", "POST", body).status, 403);
  EXPECT_EQ(asked("/api/run/0/query", "POST", body, true).body, "query 0 SELECT 1");
  EXPECT_EQ(asked("/api/run/0/query", "GET", "", true).status, 405);
  for (const char* wrong : {"", "{}", R"({"sql": 1})", "[1]"})
    EXPECT_EQ(asked("/api/run/0/query", "POST", wrong, true).status, 400) << wrong;
}

TEST(Routes, PostElsewhereIsRefused) {
  for (const char* path : {"/", "/app.js", "/api/runs", "/api/run/0", "/api/run/0/timeline", "/api/diffs"})
    EXPECT_EQ(asked(path, "POST", "{}").status, 405) << path;
}

}  // namespace
}  // namespace llmprof::view
