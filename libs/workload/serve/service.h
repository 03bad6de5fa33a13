#pragma once
// The server: OpenAI's endpoints on one thread, the engine on another, and two queues between them.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "workload/serve/http_server.h"
#include "workload/serve/live_engine.h"
#include "workload/serve/openai.h"
#include "workload/serve/server_metrics.h"

namespace llmprof::workload {

// What the server's thread tells the engine's.
class Inbox {
 public:
  struct Orders {
    std::vector<GenerationRequest> requests;
    std::vector<std::uint64_t> aborts;
    bool drain = false;  // no more will come
    std::int64_t until_ns = 0;  // drain: what is left then is aborted
  };
  void add(GenerationRequest generation);
  void abort(std::uint64_t ticket);
  void drain(std::int64_t until_ns);
  // What has come since; waits for something where `wait`.
  Orders take(bool wait);

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  Orders orders_;
  bool changed_ = false;
};

struct ServiceOptions {
  openai::Limits limits;
  std::chrono::milliseconds shutdown{30'000};  // for the requests that run
  std::string steps_path;                      // JSONL of the steps; "" none
};

class Service final : public HttpServer::Handler, public EngineListener {
 public:
  Service(const serving::EngineRules& rules, StepRunner& runner, HttpServer& http, ServiceOptions options);
  ~Service() override;

  // Opens what the options name.
  Result<void> open();
  // The engine's thread: until it is told to end and all requests are answered, or aborted. The first failure of the
  // model ends it, too.
  Result<void> run_engine();
  // From a signal's handler: no more requests are taken, those that run are finished.
  void shut_down() {
    draining_ = true;
    http_.wake();
  }
  // The engine ends, whatever runs: from any thread.
  void end() { inbox_.drain(0); }
  // Answers all that wait with an error: the engine has failed.
  void fail_all() { failed_ = true, http_.wake(); }

  // The server's thread.
  void request(HttpServer::Id connection, const base::Request& request) override;
  void gone(HttpServer::Id connection) override;
  void woken() override;

  // The engine's thread.
  void scheduled(std::int32_t prompt_tokens, std::int32_t cached_tokens) override;
  void token(std::int64_t since_last_ns, bool first, std::int32_t prompt_tokens) override;
  void ended(const Ended& ended) override;
  void step(const StepReport& report) override;
  void deliver(std::span<const Delivery> deliveries) override;

 private:
  struct Pending {  // a request that is being answered
    HttpServer::Id connection = 0;
    openai::Answer answer;
    bool stream = false, begun = false;
    std::vector<Token> prompt, tokens;
    std::int32_t outputs = 0;
  };
  void complete(HttpServer::Id connection, openai::Endpoint endpoint, const base::Request& request);
  void refuse(HttpServer::Id connection, const openai::Refusal& refusal, std::string_view headers = "");
  std::string id_of(const base::Request& request) const;
  std::string engine_id(const std::string& id);
  Result<void> steps_written() const;
  void count_load();
  void hand_out(const Delivery& delivery);
  void stream(Pending& pending, const Delivery& delivery);

  ServiceOptions options_;
  HttpServer& http_;
  ServerMetrics metrics_;
  LiveEngine engine_;
  std::int64_t started_s_;  // wall clock
  std::string instance_;    // makes ids of ours unlike those of other runs
  std::atomic<bool> draining_ = false, failed_ = false;
  bool told_ = false;  // the engine
  Inbox inbox_;
  // Of the server's thread.
  std::uint64_t tickets_ = 0;
  std::unordered_set<std::string> ids_;                           // that requests had
  std::unordered_map<std::uint64_t, Pending> pending_;             // by ticket
  std::unordered_map<HttpServer::Id, std::uint64_t> tickets_of_;  // by connection
  // From the engine's thread to the server's.
  std::mutex mutex_;
  std::vector<Delivery> deliveries_;
  std::FILE* steps_ = nullptr;
  int steps_error_ = 0;  // errno of the first line that could not be written
};

}  // namespace llmprof::workload
