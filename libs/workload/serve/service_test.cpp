// Both threads of the server with a model that does what a test wants: waits, or fails. What a real model answers over HTTP
// is in tests/e2e/serve_test.py.

#include "workload/serve/service.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <semaphore>
#include <thread>

#include "workload/serve/testing/served.h"

namespace llmprof::workload {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

// Takes a step when it is permitted to.
class HeldRunner final : public StepRunner {
 public:
  explicit HeldRunner(const serving::EngineRules& rules) : fake_(rules) {}
  const ModelConfig& config() const override { return fake_.config(); }
  Result<void> run(const StepInput& input, std::span<Token> next) override {
    permitted.acquire();
    fake_.fails = fails;
    return fake_.run(input, next);
  }
  std::counting_semaphore<> permitted{0};
  std::atomic<bool> fails = false;

 private:
  FakeRunner fake_;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    http_ = std::move(*HttpServer::listen("127.0.0.1", 0, {}));
    ServiceOptions options;
    options.limits = {.model = "m", .vocab = 1 << 24, .max_model_len = 96, .eos = {}};
    options.shutdown = shutdown_;
    service_ = std::make_unique<Service>(rules_, runner_, *http_, options);
    io_ = std::thread([this] { EXPECT_TRUE(http_->run(*service_, stop_, 20s)); });
    engine_ = std::thread([this] {
      ran_ = service_->run_engine();
      if (!ran_) service_->fail_all();
    });
  }
  ~ServiceTest() override {
    service_->end();
    runner_.permitted.release(1000);
    join();
  }
  void join() {
    if (engine_.joinable()) engine_.join();
    stop_ = true;
    http_->wake();
    if (io_.joinable()) io_.join();
  }
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(http_->port());
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  int post(const std::string& body) const {
    const int socket = connect();
    send(socket, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n\r\n" + body);
    return socket;
  }
  static void send(int socket, const std::string& bytes) {
    EXPECT_EQ(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  }
  static std::string read_all(int socket) {
    std::string all;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(socket, buffer, sizeof buffer, 0)) > 0;)
      all.append(buffer, static_cast<std::size_t>(got));
    ::close(socket);
    return all;
  }
  std::string get(const std::string& path) const {
    const int socket = connect();
    send(socket, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return read_all(socket);
  }
  void wait_for(const std::string& sample) const {
    while (get("/metrics").find(sample) == std::string::npos) std::this_thread::sleep_for(1ms);
  }

  std::chrono::milliseconds shutdown_ = 60s;
  serving::EngineRules rules_ = small_engine(32);
  HeldRunner runner_{rules_};
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<Service> service_;
  std::atomic<bool> stop_ = false;
  Result<void> ran_;
  std::thread io_, engine_;
};

constexpr const char* kRunningOne = "num_requests_running{model_name=\"m\",engine=\"0\"} 1\n";

TEST_F(ServiceTest, RequestsThatRunAreFinishedNewOnesAreRefused) {
  const int running = post(R"({"prompt":[1,2,3],"max_tokens":4,"stream":true})");
  runner_.permitted.release();
  wait_for(kRunningOne);
  service_->shut_down();
  while (get("/health").find("503") == std::string::npos) continue;
  EXPECT_THAT(read_all(post(R"({"prompt":[1]})")), StartsWith("HTTP/1.1 503"));
  runner_.permitted.release(3);
  const std::string answer = read_all(running);
  EXPECT_THAT(answer, HasSubstr("\"finish_reason\":\"length\""));
  EXPECT_THAT(answer, HasSubstr("[DONE]"));
  engine_.join();
  EXPECT_TRUE(ran_);
}

TEST_F(ServiceTest, AFailureOfTheModelAnswersAllWhoWait) {
  const int stream = post(R"({"prompt":[1,2,3],"max_tokens":4,"stream":true})");
  runner_.permitted.release();
  wait_for(kRunningOne);
  const int whole = post(R"({"prompt":[4,5],"max_tokens":4})");
  runner_.fails = true;
  runner_.permitted.release();
  EXPECT_THAT(read_all(stream), HasSubstr("\"finish_reason\":\"error\""));
  EXPECT_THAT(read_all(whole), StartsWith("HTTP/1.1 50"));  // 503 where it came when the engine had failed
  engine_.join();
  EXPECT_FALSE(ran_);
  EXPECT_THAT(get("/health"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(read_all(post(R"({"prompt":[1]})")), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(get("/metrics"), HasSubstr("finished_reason=\"error\"} "));
}

TEST_F(ServiceTest, WhoLeavesWhileAStepRunsIsGoneAfterIt) {
  const int leaves = post(R"({"prompt":[1,2,3],"max_tokens":90})");
  runner_.permitted.release();
  wait_for(kRunningOne);
  ::close(leaves);
  EXPECT_THAT(get("/health"), StartsWith("HTTP/1.1 200"));  // by now it has been noticed
  const int stays = post(R"({"prompt":[4,5],"max_tokens":2})");
  runner_.permitted.release(4);  // steps; far fewer than the one that left had asked for
  EXPECT_THAT(read_all(stays), HasSubstr("\"completion_tokens\":2"));
  EXPECT_THAT(get("/metrics"), HasSubstr("finished_reason=\"abort\"} 1\n"));
  EXPECT_THAT(get("/metrics"), HasSubstr("vllm:kv_cache_usage_perc{model_name=\"m\",engine=\"0\"} 0\n"));
}

}  // namespace
}  // namespace llmprof::workload
