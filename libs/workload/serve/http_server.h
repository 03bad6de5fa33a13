#pragma once
// An HTTP/1.1 server for answers that come bit by bit: one thread, epoll, a bounded number of connections and of bytes
// for each. What a request means is the handler's business. A client that does not read what it asked for is
// disconnected when more than its share of bytes waits for it; nobody else waits for it. A client that closes its
// sending side is gone: nothing else tells a server that nobody waits for an answer that has not begun.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/http.h"
#include "base/result.h"

namespace llmprof::workload {

struct HttpLimits {
  std::size_t connections = 4096;
  std::size_t refusals = 256;  // connections beyond them that are told so; more are closed without a word
  std::size_t body_bytes = 8 << 20;
  std::size_t unsent_bytes = 1 << 20;         // for one client
  std::chrono::milliseconds request{10'000};  // from the first byte of a request to its last
  std::chrono::milliseconds keep_alive{75'000};
};

class HttpServer {
 public:
  using Id = std::uint64_t;  // of a connection; never used again

  class Handler {
   public:
    virtual ~Handler() = default;
    // Answers now or later, with reply() or begin_stream(). The next request of the connection waits for the end of it.
    virtual void request(Id connection, const base::Request& request) = 0;
    virtual void gone(Id connection) = 0;  // before its answer was whole
    virtual void woken() = 0;              // by wake()
  };

  // Listens on a numeric address; port 0: any that is free.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& address, std::uint16_t port, HttpLimits limits);
  ~HttpServer();

  std::uint16_t port() const { return port_; }
  // Until `stop` and, after it, until everything was sent, at most `linger`.
  Result<void> run(Handler& handler, const std::atomic<bool>& stop, std::chrono::milliseconds linger);
  void wake();  // from any thread, or a signal's handler

  // Called by the handler. `headers`: whole lines, each with its CR LF.
  void reply(Id connection, int status, std::string_view type, std::string_view body, std::string_view headers = "");
  void begin_stream(Id connection, std::string_view type, std::string_view headers = "");
  void send(Id connection, std::string_view part);  // of a stream
  void end_stream(Id connection);

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    Id id = 0;
    int socket = -1;
    std::string input, output;
    std::size_t sent = 0;
    bool busy = false;  // a request is being answered
    bool keep_alive = true;
    bool closing = false;  // after what is to be sent; what arrives is thrown away
    bool refused = false;  // one too many
    bool wants_write = false, flush = false;
    Clock::time_point since;  // the last whole request, or the first byte of one
    bool begun = false;       // a part of a request has arrived
  };

  HttpServer(HttpLimits limits) : limits_(limits) {}
  void accept_all();
  void refuse_without_descriptor();
  Connection* add(int socket);
  void read(Connection& connection);
  void serve(Connection& connection);
  void refuse_bytes(Connection& connection, int status, const char* why);
  void finish(Connection& connection);
  void queue(Connection& connection, std::string_view bytes);
  void flush_all();
  bool flush(Connection& connection);
  void close(Id id);
  void close_late();
  bool all_sent() const;

  HttpLimits limits_;
  int listener_ = -1, epoll_ = -1, wake_ = -1;
  int spare_ = -1;  // a descriptor that is given up to refuse a client when there are no more
  std::size_t refused_ = 0;
  std::uint16_t port_ = 0;
  Id next_ = 2;  // 0 and 1 are the listener and wake()
  std::unordered_map<Id, Connection> connections_;
  std::vector<Id> to_flush_, to_close_, to_serve_;
  Clock::time_point swept_;
  Handler* handler_ = nullptr;
};

}  // namespace llmprof::workload
