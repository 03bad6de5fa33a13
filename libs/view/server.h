#pragma once
// A poll loop that answers HTTP requests: one thread, a bounded number of connections, every wait bounded. What a
// request means is the handler's business; who may ask is the guard's.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "view/guard.h"
#include "view/http.h"

namespace llmprof::view {

// The sockets of the server: loopback, and nothing else unless the user understood what that means.

// Descriptors that close themselves.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  int get() const { return number_; }
  void reset();

 private:
  int number_;
};

struct Listeners {
  std::vector<Descriptor> sockets;  // of 127.0.0.1 and, where this machine has it, ::1; or of the one given
  std::uint16_t port = 0;
  std::string address;  // "" loopback; else as it stands in a URL: "192.168.1.5", "[fd00::1]"
};

// `address` is loopback ("127.0.0.1", "::1", "localhost"), or one address of this machine with `understood`.
Result<Listeners> listen_on(const std::string& address, std::uint16_t port, bool understood);

struct ServerLimits {
  std::size_t connections = 64;
  std::chrono::milliseconds request{10'000};     // from the first byte of a request to its last
  std::chrono::milliseconds keep_alive{60'000};  // between two requests
  std::chrono::milliseconds write{60'000};       // of a whole answer
  std::chrono::milliseconds drain{1'000};        // for a client to read why it was refused
};

class Server {
 public:
  using Ticket = std::uint64_t;
  // Nothing: the answer comes later, by answer().
  using Handler = std::function<std::optional<Response>(const Request& request, Ticket ticket)>;

  static Result<Server> create(Listeners listeners, Site site, ServerLimits limits = {});
  // Until `stop`, or until no request that the guard let through came for `idle` (0: never).
  Result<void> run(const Handler& handler, const std::atomic<bool>& stop, std::chrono::seconds idle);
  // From any thread.
  void answer(Ticket ticket, Response response);

  const Site& site() const { return site_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { kReading, kWaiting, kWriting, kDraining };
  struct Connection {
    Descriptor socket;
    State state = State::kReading;
    Ticket ticket = 0;
    std::string input, output;
    std::size_t sent = 0;
    bool keep_alive = true, with_body = true, closed = false;
    Clock::time_point since;  // of the state; of a request its first byte
    bool begun = false;       // a part of a request has arrived
  };
  struct Late {  // answers of other threads
    std::mutex mutex;
    std::vector<std::pair<Ticket, Response>> answers;
  };

  Server(Listeners listeners, Site site, ServerLimits limits);
  void turn(const Handler& handler, const std::vector<short>& seen);
  void accept_all(int listener);
  bool make_room();
  void read(Connection& connection, const Handler& handler);
  void serve(Connection& connection, const Handler& handler);
  void reply(Connection& connection, const Response& response);
  void write(Connection& connection, const Handler& handler);
  void drain(Connection& connection);
  void deliver();
  void close_late();
  Clock::time_point deadline(const Connection& connection) const;
  short events(const Connection& connection) const;

  Listeners listeners_;
  Site site_;
  ServerLimits limits_;
  Descriptor wake_read_, wake_write_;
  std::list<Connection> connections_;
  std::unique_ptr<Late> late_;
  Ticket tickets_ = 0;
  Clock::time_point last_request_;
};

}  // namespace llmprof::view
