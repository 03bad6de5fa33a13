// The server over real sockets: clients that send bytes in every shape, do not read, do not finish, or are too many.

#include "workload/serve/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace llmprof::workload {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

// "/echo" answers with method, target and body; "/later" when told to; "/stream" in three parts; "/flood" without end.
class TestHandler final : public HttpServer::Handler {
 public:
  void request(HttpServer::Id id, const base::Request& request) override {
    const std::lock_guard lock(mutex_);
    if (request.target == "/stream") {
      server->begin_stream(id, "text/plain", "X-Extra: 1\r\n");
      for (const char* const part : {"one", "", "two"}) server->send(id, part);
      return server->end_stream(id);
    }
    if (request.target == "/later" || request.target == "/flood") {
      waiting_.emplace(id, request.target == "/flood");
      if (request.target == "/flood") server->begin_stream(id, "text/plain");
      return changed_.notify_all();
    }
    server->reply(id, 200, "text/plain", request.method + " " + request.target + " " + request.body);
  }
  void gone(HttpServer::Id id) override {
    const std::lock_guard lock(mutex_);
    waiting_.erase(id);
    gone_.insert(id);
    changed_.notify_all();
  }
  void woken() override {
    const std::lock_guard lock(mutex_);
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      const auto [id, flood] = *at;
      if (flood) {
        server->send(id, std::string(16 << 10, 'x')), ++at;
      } else if (answer_) {
        server->reply(id, 200, "text/plain", "late"), at = waiting_.erase(at);
      } else {
        ++at;
      }
    }
    changed_.notify_all();
  }

  void answer() {
    {
      const std::lock_guard lock(mutex_);
      answer_ = true;
    }
    server->wake();
  }
  void wait_for_waiting(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_.size() >= count; });
  }
  void wait_for_gone(std::size_t count) {
    for (std::unique_lock lock(mutex_); gone_.size() < count;) {
      server->wake();
      changed_.wait_for(lock, 10ms);
    }
  }
  HttpServer* server = nullptr;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<HttpServer::Id, bool> waiting_;
  std::set<HttpServer::Id> gone_;
  bool answer_ = false;
};

class Client {
 public:
  explicit Client(std::uint16_t port, int receive_bytes = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  Client(const Client&) = delete;
  ~Client() { close(); }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  void get(const std::string& target) const { send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"); }
  void end_sending() const { ::shutdown(socket_, SHUT_WR); }
  // Up to `last`, or to the end of the connection.
  std::string read_to(const std::string& last) {
    while (input_.find(last) == std::string::npos && more()) continue;
    const std::size_t found = input_.find(last);
    const std::size_t end = found == std::string::npos ? input_.size() : found + last.size();
    std::string taken = input_.substr(0, end);
    input_.erase(0, end);
    return taken;
  }
  std::string read_all() {
    while (more()) continue;
    return std::exchange(input_, {});
  }

 private:
  bool more() {
    char buffer[4096];
    const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
    EXPECT_FALSE(got < 0 && errno == EAGAIN) << "nothing came for a minute";
    if (got <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }
  int socket_;
  std::string input_;
};

class HttpServerTest : public testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    auto listening = HttpServer::listen("127.0.0.1", 0, limits);
    ASSERT_TRUE(listening) << listening.error().message;
    server_ = std::move(*listening);
    handler_.server = server_.get();
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run(handler_, stop_, 20s)); });
  }
  void stop() {
    stop_ = true;
    server_->wake();
    if (thread_.joinable()) thread_.join();
  }
  void TearDown() override { stop(); }
  std::uint16_t port() const { return server_->port(); }

  TestHandler handler_;
  std::unique_ptr<HttpServer> server_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
  start();
  Client client(port());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    const std::string answer = client.read_to("POST /echo abc");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 14\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nConnection: keep-alive\r\n"));
  }
  client.send("GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("\r\nConnection: close\r\n"));
}

TEST_F(HttpServerTest, TakesARequestByteByByte) {
  start();
  Client client(port());
  for (const char c : std::string("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")) client.send({&c, 1});
  EXPECT_THAT(client.read_to("hello"), HasSubstr("POST /echo hello"));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInTheirOrder) {
  start();
  Client client(port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /later HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_to("GET /a "), HasSubstr("200 OK"));
  handler_.wait_for_waiting(1);
  handler_.answer();
  const std::string rest = client.read_to("GET /b ");
  EXPECT_LT(rest.find("late"), rest.find("GET /b "));
}

TEST_F(HttpServerTest, StreamsInChunks) {
  start();
  Client client(port());
  client.get("/stream");
  const std::string answer = client.read_to("\r\n0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-Extra: 1\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"));
  client.get("/echo");  // on the same connection
  EXPECT_THAT(client.read_to("GET /echo "), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, RefusesWhatItDoesNotUnderstandAndCloses) {
  HttpLimits limits;
  limits.body_bytes = 100;
  start(limits);
  const std::pair<std::string, const char*> kBad[] = {
      {"nonsense\r\n\r\n", "400"},
      {"GET /echo HTTP/1.0\r\n\r\n", "505"},
      {"POST /echo HTTP/1.1\r\nHost: x\r\n\r\n", "411"},
      {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", "413"},
      {"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501"},
      {"GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n\r\n", "414"},
      {"GET / HTTP/1.1\r\nHost: " + std::string(20000, 'a') + "\r\n\r\n", "431"},
  };
  for (const auto& [bytes, status] : kBad) {
    Client client(port());
    client.send(bytes + "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.read_all();
    EXPECT_THAT(answer, StartsWith(std::string("HTTP/1.1 ") + status)) << bytes.substr(0, 60);
    EXPECT_THAT(answer, HasSubstr("\"code\":" + std::string(status)));
    EXPECT_EQ(answer.find("GET /echo"), std::string::npos) << "what follows is not a request";
  }
}

TEST_F(HttpServerTest, ARequestThatIsNotFinishedInTimeIsRefused) {
  HttpLimits limits;
  limits.request = 50ms;
  start(limits);
  Client client(port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Le");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 408"));
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosed) {
  HttpLimits limits;
  limits.keep_alive = 50ms;
  start(limits);
  Client silent(port()), used(port());
  used.get("/echo");
  EXPECT_THAT(used.read_all(), HasSubstr("GET /echo"));
  EXPECT_EQ(silent.read_all(), "");
}

TEST_F(HttpServerTest, AClientThatLeavesIsTold) {
  start();
  Client leaves(port()), half(port()), stays(port());
  for (Client* const each : {&leaves, &half, &stays}) each->get("/later");
  handler_.wait_for_waiting(3);
  leaves.close();
  half.end_sending();
  handler_.wait_for_gone(2);
  EXPECT_EQ(half.read_all(), "");
  handler_.answer();
  EXPECT_THAT(stays.read_to("late"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, ASlowReaderIsDisconnectedAndNobodyWaitsForIt) {
  HttpLimits limits;
  limits.unsent_bytes = 64 << 10;
  start(limits);
  Client slow(port(), 4096), other(port());
  slow.get("/flood");
  handler_.wait_for_waiting(1);
  handler_.wait_for_gone(1);
  other.get("/echo");
  EXPECT_THAT(other.read_to("GET /echo "), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, OneTooManyIsToldSo) {
  HttpLimits limits;
  limits.connections = 2;
  limits.refusals = 2;
  start(limits);
  Client first(port()), second(port());
  for (Client* const each : {&first, &second}) {
    each->get("/echo");
    EXPECT_THAT(each->read_to("GET /echo "), HasSubstr("200 OK"));
  }
  Client third(port()), fourth(port());
  for (Client* const each : {&third, &fourth}) {
    each->get("/echo");  // before or after it is refused: the answer arrives
    const std::string answer = each->read_all();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
    EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: "));
  }
  {
    Client fifth(port());  // while two are still being refused
    EXPECT_EQ(fifth.read_all(), "");
  }
  first.close();
  third.close();
  fourth.close();
  for (std::string answer; !answer.starts_with("HTTP/1.1 200");) {  // until the server has noticed
    Client next(port());
    next.get("/echo");
    answer = next.read_to("GET /echo ");
  }
  second.get("/echo");
  EXPECT_THAT(second.read_to("GET /echo "), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, ManyClientsAtOnce) {
  constexpr std::size_t kClients = 400;
  start();
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->get("/later");
  }
  handler_.wait_for_waiting(kClients);
  handler_.answer();
  for (const auto& client : clients) EXPECT_THAT(client->read_to("late"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, WhatWasAnsweredBeforeItStopsIsSent) {
  start();
  Client client(port());
  client.get("/later");
  handler_.wait_for_waiting(1);
  handler_.answer();
  stop();
  EXPECT_THAT(client.read_to("late"), HasSubstr("200 OK"));
}

TEST(HttpServer, RefusesAddressesItCannotHave) {
  EXPECT_FALSE(HttpServer::listen("not an address", 0, {}));
  const auto first = HttpServer::listen("127.0.0.1", 0, {});
  ASSERT_TRUE(first);
  EXPECT_FALSE(HttpServer::listen("127.0.0.1", (*first)->port(), {}));
  EXPECT_TRUE(HttpServer::listen("localhost", 0, {}));
}

}  // namespace
}  // namespace llmprof::workload
