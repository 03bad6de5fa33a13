#include "view/server.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"

namespace llmprof::view {

namespace {

constexpr int kTurnMs = 250;  // how long a signal may go unnoticed
constexpr std::size_t kReadBytes = 64 << 10;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Server::Server(Listeners listeners, Site site, ServerLimits limits)
    : listeners_(std::move(listeners)), site_(std::move(site)), limits_(limits), late_(std::make_unique<Late>()) {}

Result<Server> Server::create(Listeners listeners, Site site, ServerLimits limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  Server server(std::move(listeners), std::move(site), limits);
  server.wake_read_ = Descriptor(ends[0]);
  server.wake_write_ = Descriptor(ends[1]);
  return server;
}

void Server::answer(Ticket ticket, Response response) {
  {
    const std::lock_guard lock(late_->mutex);
    late_->answers.emplace_back(ticket, std::move(response));
  }
  (void)!::write(wake_write_.get(), "w", 1);
}

Result<void> Server::run(const Handler& handler, const std::atomic<bool>& stop, std::chrono::seconds idle) {
  last_request_ = Clock::now();
  while (!stop.load()) {
    if (idle.count() > 0 && Clock::now() - last_request_ > idle) return {};
    std::vector<pollfd> waits{{wake_read_.get(), POLLIN, 0}};
    for (const Descriptor& listener : listeners_.sockets) waits.push_back({listener.get(), POLLIN, 0});
    for (const Connection& connection : connections_) waits.push_back({connection.socket.get(), events(connection), 0});
    const int ready = ::poll(waits.data(), waits.size(), kTurnMs);
    if (ready < 0 && errno != EINTR) return base::errno_error(ErrorCode::kIo, "poll", errno);
    std::vector<short> seen;
    for (const pollfd& wait : waits) seen.push_back(ready > 0 ? wait.revents : short{0});
    turn(handler, seen);
    close_late();
  }
  return {};
}

// `seen`: of the pipe, the listeners, the connections.
void Server::turn(const Handler& handler, const std::vector<short>& seen) {
  if (seen[0] != 0) deliver();
  std::size_t at = 1 + listeners_.sockets.size();
  for (Connection& connection : connections_) {
    const short events = seen[at++];
    if (events == 0) continue;
    if ((events & (POLLERR | POLLNVAL)) != 0) {
      connection.closed = true;
    } else if (connection.state == State::kReading) {
      read(connection, handler);
    } else if (connection.state == State::kWriting && (events & POLLOUT) != 0) {
      write(connection, handler);
    } else if (connection.state == State::kDraining) {
      drain(connection);
    } else if ((events & (POLLHUP | POLLRDHUP)) != 0) {
      connection.closed = true;
    }
  }
  for (std::size_t i = 0; i < listeners_.sockets.size(); ++i)
    if (seen[1 + i] != 0) accept_all(listeners_.sockets[i].get());
}

short Server::events(const Connection& connection) const {
  if (connection.state == State::kWriting) return POLLOUT;
  return connection.state == State::kWaiting ? POLLRDHUP : POLLIN;
}

void Server::accept_all(int listener) {
  while (true) {
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) return;
    if (connections_.size() >= limits_.connections && !make_room()) continue;  // closes the new one
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.since = Clock::now();
  }
}

// When all connections are taken, the one that has waited longest without a whole request goes: slow clients cannot
// lock others out.
bool Server::make_room() {
  auto oldest = connections_.end();
  for (auto each = connections_.begin(); each != connections_.end(); ++each) {
    if (each->state != State::kReading && each->state != State::kDraining) continue;
    if (oldest == connections_.end() || each->since < oldest->since) oldest = each;
  }
  if (oldest == connections_.end()) return false;
  connections_.erase(oldest);
  return true;
}

void Server::read(Connection& connection, const Handler& handler) {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && would_block(errno)) return;
  if (got <= 0) {
    connection.closed = true;
    return;
  }
  connection.input.append(buffer.data(), static_cast<std::size_t>(got));
  serve(connection, handler);
}

// The next request of the input, if it is whole.
void Server::serve(Connection& connection, const Handler& handler) {
  if (!connection.begun && !connection.input.empty()) {
    connection.begun = true;
    connection.since = Clock::now();
  }
  ParsedRequest parsed = parse_request(connection.input);
  if (parsed.state == ParsedRequest::State::kMore) return;
  connection.begun = false;
  if (parsed.state == ParsedRequest::State::kBad) {
    connection.keep_alive = false;
    return reply(connection, refusal(parsed.status, "not a request that this server understands"));
  }
  connection.input.erase(0, parsed.consumed);
  connection.keep_alive = parsed.request.keep_alive;
  connection.with_body = parsed.request.method != "HEAD";
  if (const auto refused = refuse(parsed.request, site_)) return reply(connection, *refused);
  last_request_ = Clock::now();
  connection.ticket = ++tickets_;
  connection.state = State::kWaiting;
  connection.since = last_request_;
  if (const auto response = handler(parsed.request, connection.ticket)) reply(connection, *response);
}

void Server::reply(Connection& connection, const Response& response) {
  connection.output = to_bytes(response, connection.keep_alive, connection.with_body);
  connection.sent = 0;
  connection.state = State::kWriting;
  connection.since = Clock::now();
}

void Server::write(Connection& connection, const Handler& handler) {
  const ssize_t sent = ::send(connection.socket.get(), connection.output.data() + connection.sent,
                              connection.output.size() - connection.sent, MSG_NOSIGNAL);
  if (sent < 0 && would_block(errno)) return;
  if (sent < 0) {
    connection.closed = true;
    return;
  }
  connection.sent += static_cast<std::size_t>(sent);
  if (connection.sent < connection.output.size()) return;
  connection.output = {};
  if (!connection.keep_alive) {
    // A socket closed with bytes unread resets the connection, and the client may not see the answer.
    ::shutdown(connection.socket.get(), SHUT_WR);
    connection.state = State::kDraining;
    connection.since = Clock::now();
    return;
  }
  connection.state = State::kReading;
  connection.since = Clock::now();
  serve(connection, handler);  // it may have sent the next one already
}

void Server::drain(Connection& connection) {
  std::array<char, kReadBytes> buffer;
  const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (got == 0 || (got < 0 && !would_block(errno))) connection.closed = true;
}

void Server::deliver() {
  std::array<char, 256> buffer;
  while (::read(wake_read_.get(), buffer.data(), buffer.size()) > 0) {
  }
  std::vector<std::pair<Ticket, Response>> answers;
  {
    const std::lock_guard lock(late_->mutex);
    answers.swap(late_->answers);
  }
  for (const auto& [ticket, response] : answers) {
    for (Connection& connection : connections_) {
      if (connection.state == State::kWaiting && connection.ticket == ticket) reply(connection, response);
    }
  }
}

Server::Clock::time_point Server::deadline(const Connection& connection) const {
  switch (connection.state) {
    case State::kReading:
      return connection.since + (connection.begun ? limits_.request : limits_.keep_alive);
    case State::kWriting:
      return connection.since + limits_.write;
    case State::kDraining:
      return connection.since + limits_.drain;
    case State::kWaiting:
      break;  // whoever works on it has a limit of its own
  }
  return Clock::time_point::max();
}

void Server::close_late() {
  const Clock::time_point now = Clock::now();
  connections_.remove_if([&](const Connection& each) { return each.closed || deadline(each) < now; });
}

namespace {

constexpr int kBacklog = 64;
constexpr int kTries = 16;  // for a port that is free on both addresses
constexpr std::uint16_t kFirstUserPort = 1024;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family = 0;
};

Result<Address> parse_address(const std::string& text, std::uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof(sockaddr_in6);
  } else {
    return Error{ErrorCode::kUsage, fmt::format("--listen {}: not an address", text), "it wants numbers: 192.168.1.5"};
  }
  address.family = address.storage.ss_family;
  return address;
}

bool is_any(const std::string& text) { return text == "0.0.0.0" || text == "::"; }
bool is_loopback(const std::string& text) { return text == "127.0.0.1" || text == "::1" || text == "localhost"; }

// `number` gets errno where the system says no.
Result<Descriptor> listen_at(const std::string& text, std::uint16_t port, int& number) {
  LLMPROF_LET(const Address address, parse_address(text, port));
  Descriptor socket(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int one = 1;
  const bool done =
      socket.get() >= 0 && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
      (address.family != AF_INET6 || ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0 &&
      ::listen(socket.get(), kBacklog) == 0;
  number = errno;
  if (!done) return base::errno_error(ErrorCode::kIo, fmt::format("listening on {} port {}", text, port), number);
  return socket;
}

std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

// Both addresses on one port. A stranger on the other one would get what is meant for us.
Result<Listeners> on_loopback(std::uint16_t port) {
  for (int tries = 0;; ++tries) {
    int number = 0;
    Listeners listeners;
    LLMPROF_LET(Descriptor v4, listen_at("127.0.0.1", port, number));
    listeners.port = port_of(v4);
    listeners.sockets.push_back(std::move(v4));
    auto v6 = listen_at("::1", listeners.port, number);
    if (v6) listeners.sockets.push_back(std::move(*v6));
    const bool taken = !v6 && number == EADDRINUSE;  // otherwise there is no IPv6 here
    if (!taken) return listeners;
    if (port != 0 || tries == kTries) return v6.error();
  }
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    number_ = other.number_;
    other.number_ = -1;
  }
  return *this;
}

void Descriptor::reset() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Result<Listeners> listen_on(const std::string& address, std::uint16_t port, bool understood) {
  if (port != 0 && port < kFirstUserPort)
    return Error{ErrorCode::kUsage, fmt::format("--port {}: {} is the least", port, kFirstUserPort), ""};
  if (is_loopback(address)) return on_loopback(port);
  LLMPROF_LET(const Address parsed, parse_address(address, port));
  if (is_any(address)) {
    return Error{ErrorCode::kUsage, fmt::format("--listen {}: every address is too many", address),
                 "name the one address of this machine that others may use"};
  }
  if (!understood) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--listen {}: others in the network could read what goes over it; it is not encrypted", address),
        "ssh -L PORT:127.0.0.1:PORT needs no --listen; add --i-understand to do it nevertheless"};
  }
  int number = 0;
  Listeners listeners;
  LLMPROF_LET(Descriptor socket, listen_at(address, port, number));
  listeners.port = port_of(socket);
  listeners.address = parsed.family == AF_INET6 ? "[" + address + "]" : address;
  listeners.sockets.push_back(std::move(socket));
  return listeners;
}

}  // namespace llmprof::view
