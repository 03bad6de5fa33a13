#pragma once
// Many HTTP requests at once on one thread: libcurl's multi interface over epoll, and a timer that wakes it in time for
// the next moment of a schedule. libcurl is loaded at run time (ARCHITECTURE.md says why it, and why so).
// Moments are those of the run's clock (wire/clock.h).

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::load {

struct HttpSettings {
  std::string base_url;              // "http://127.0.0.1:8000", no slash behind it
  std::vector<std::string> headers;  // of every request: "Name: value"
  bool verify_tls = true;
  std::string ca_file;  // "" the system's certificates
  std::uint64_t timeout_ns = 600'000'000'000;  // without a byte
};

enum class Failure : std::uint8_t {
  kNone,         // an answer came to its end, whatever its status
  kRefused,      // nothing listens
  kUnreachable,  // no such host, no route, no TLS
  kReset,        // the connection was closed before an answer
  kCut,          // within an answer
  kTimeout,
  kAborted,  // by cancel()
  kClient,   // libcurl itself
};
std::string_view status_of(Failure failure);  // "refused", the word in rows; "finished" of kNone

struct Outcome {
  Failure failure = Failure::kNone;
  int http_status = 0;  // 0: none came
  std::string error;    // in words
};

class HttpClient {
 public:
  using Id = std::uint32_t;  // chosen by the caller, unique among those that run

  class Handler {
   public:
    virtual ~Handler() = default;
    // A part of an answer's body, at the moment it was read.
    virtual void data(Id id, int status, bool event_stream, std::string_view bytes, std::uint64_t now_ns) = 0;
    virtual void ended(Id id, const Outcome& outcome, std::uint64_t now_ns) = 0;
  };

  static Result<std::unique_ptr<HttpClient>> make(const HttpSettings& settings);
  ~HttpClient();

  // Begins a request: POST with a body, GET without. It goes out with the next push() or wait().
  void start(Id id, const std::string& path, std::string body, const std::vector<std::string>& headers);
  void push(Handler& handler);
  void cancel(Id id, Handler& handler);  // ended() follows at once
  // Until something happened, at most until this moment, or a signal.
  void wait(std::uint64_t until_ns, Handler& handler);
  std::size_t running() const;

  // How late bytes may have been read because others were: since the client last had nothing to do. Bounds by pass.
  const std::vector<std::uint32_t>& read_lags_ns() const;
  static std::string version();  // "libcurl/7.88.1 OpenSSL/3.0.17"; "" where there is none

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One request, whole. For what has to be known before a load.
struct HttpReply {
  Outcome outcome;
  std::string body;
};
HttpReply fetch(HttpClient& client, const std::string& path, const std::string& body = "");

}  // namespace llmprof::load
