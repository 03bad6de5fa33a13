// The parser: what it takes, and each thing that it must refuse. Every case names the guard it protects.

#include "base/http.h"

#include <gtest/gtest.h>

#include <string>

namespace llmprof::base {
namespace {

using State = ParsedRequest::State;

const std::string kHost = "Host: 127.0.0.1:8080\r\n";

int status_of(const std::string& bytes) {
  const ParsedRequest parsed = parse_request(bytes);
  return parsed.state == State::kBad ? parsed.status : 0;
}

TEST(HttpRequest, TakesOneRequestAndLeavesTheNext) {
  const std::string first = "GET /a?b=1 HTTP/1.1\r\n" + kHost + "X-Y:  two words \r\n\r\n";
  const ParsedRequest parsed = parse_request(first + "GET /next");
  ASSERT_EQ(parsed.state, State::kWhole);
  EXPECT_EQ(parsed.consumed, first.size());
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.target, "/a?b=1");
  ASSERT_NE(parsed.request.header("x-y"), nullptr);
  EXPECT_EQ(*parsed.request.header("x-y"), "two words");
  EXPECT_TRUE(parsed.request.keep_alive);
}

TEST(HttpRequest, WaitsForEveryByte) {
  const std::string whole = "POST /p HTTP/1.1\r\n" + kHost + "Content-Length: 4\r\nConnection: close\r\n\r\nabcd";
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_EQ(parse_request(whole.substr(0, bytes)).state, State::kMore) << bytes;
  const ParsedRequest parsed = parse_request(whole);
  ASSERT_EQ(parsed.state, State::kWhole);
  EXPECT_EQ(parsed.request.body, "abcd");
  EXPECT_FALSE(parsed.request.keep_alive);
}

TEST(HttpRequest, AHeaderThatStandsTwiceHasNoValue) {
  const ParsedRequest parsed = parse_request("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n");
  ASSERT_EQ(parsed.state, State::kWhole);
  EXPECT_EQ(parsed.request.header("host"), nullptr);
  EXPECT_EQ(parsed.request.count("host"), 2u);
}

TEST(HttpRequest, RefusesWhatReadersMayUnderstandDifferently) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 501);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx"), 501);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\nx"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\nx"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 0x1\r\n\r\nx"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nx"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), 411);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nNoColon\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\nHost: a\r\n\r\n"), 400);    // a bare LF
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n"), 400);  // a bare CR
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 27)), 400);
}

TEST(HttpRequest, RefusesLinesThatAreNone) {
  EXPECT_EQ(status_of("\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / b HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("G@T / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /\x80 HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("GET /\0 HTTP/1.1\r\n\r\n", 19)), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / FTP\r\n\r\n"), 400);
}

TEST(HttpRequest, LimitsAreHeldBeforeTheRequestIsWhole) {
  const std::string path(5000, 'a');
  EXPECT_EQ(status_of("GET /" + path), 414);
  EXPECT_EQ(status_of("GET /" + path + " HTTP/1.1\r\n\r\n"), 414);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 65; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 431);
  const std::string large = "GET / HTTP/1.1\r\nA: " + std::string(17 << 10, 'x');
  EXPECT_EQ(status_of(large), 431);
  EXPECT_EQ(status_of(large + "\r\n\r\n"), 431);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n"), 413);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n"), 0);
}

}  // namespace
}  // namespace llmprof::base
