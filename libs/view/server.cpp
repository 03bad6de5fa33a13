#include "view/server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

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

}  // namespace llmprof::view
