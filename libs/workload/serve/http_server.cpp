#include "workload/serve/http_server.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/errors.h"
#include "base/file.h"
#include "workload/serve/openai.h"

namespace llmprof::workload {
namespace {

constexpr std::uint64_t kListener = 0, kWake = 1;
constexpr int kBacklog = 1024;
constexpr int kTurnMs = 250;  // how late a deadline may be noticed

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

Result<Address> parse_address(const std::string& text, std::uint16_t port) {
  Address address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text == "localhost" ? "127.0.0.1" : text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof(sockaddr_in6);
  } else {
    return usage_error("--host {}: not a numeric address", text);
  }
  return address;
}

std::uint16_t port_of(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
}

std::string head_of(int status, std::string_view type, std::string_view length, bool keep_alive,
                    std::string_view headers) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}\r\nConnection: {}\r\n{}\r\n", status,
                     base::status_words(status), type, length, keep_alive ? "keep-alive" : "close", headers);
}

// What a client is told that is one too many.
const std::string& full_answer() {
  static const std::string answer = head_of(503, "application/json", "Content-Length: 0", false, "Retry-After: 1\r\n");
  return answer;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& address, std::uint16_t port,
                                                       HttpLimits limits) {
  LLMPROF_LET(const Address parsed, parse_address(address, port));
  std::unique_ptr<HttpServer> server(new HttpServer(limits));
  const int one = 1;
  server->listener_ = ::socket(parsed.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (server->listener_ < 0 ||
      ::setsockopt(server->listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      ::bind(server->listener_, reinterpret_cast<const sockaddr*>(&parsed.storage), parsed.length) != 0 ||
      ::listen(server->listener_, kBacklog) != 0)
    return base::errno_error(ErrorCode::kIo, fmt::format("listening on {} port {}", address, port), errno);
  server->port_ = port_of(server->listener_);
  server->epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  server->wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  server->spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  epoll_event listens{.events = EPOLLIN, .data = {.u64 = kListener}}, wakes{.events = EPOLLIN, .data = {.u64 = kWake}};
  if (server->epoll_ < 0 || server->wake_ < 0 ||
      ::epoll_ctl(server->epoll_, EPOLL_CTL_ADD, server->listener_, &listens) != 0 ||
      ::epoll_ctl(server->epoll_, EPOLL_CTL_ADD, server->wake_, &wakes) != 0)
    return base::errno_error(ErrorCode::kIo, "epoll", errno);
  return server;
}

HttpServer::~HttpServer() {
  for (const auto& [id, connection] : connections_) ::close(connection.socket);
  for (const int each : {listener_, epoll_, wake_, spare_}) {
    if (each >= 0) ::close(each);
  }
}

void HttpServer::wake() {
  const int before = errno;  // a signal's handler may not change it
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  errno = before;
}

Result<void> HttpServer::run(Handler& handler, const std::atomic<bool>& stop, std::chrono::milliseconds linger) {
  handler_ = &handler;
  std::array<epoll_event, 256> events;
  Clock::time_point stopped = Clock::time_point::max();
  for (;;) {
    if (stop.load() && stopped == Clock::time_point::max()) {
      stopped = Clock::now();
      handler.woken();  // whatever was to be told before: its wake() may not have been read yet
      flush_all();
    }
    if (stopped != Clock::time_point::max() && (all_sent() || Clock::now() - stopped > linger)) return {};
    const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), kTurnMs);
    if (ready < 0 && errno != EINTR) return base::errno_error(ErrorCode::kIo, "epoll_wait", errno);
    for (int i = 0; i < ready; ++i) {
      // Copies: an epoll_event is packed, and what it holds cannot be referred to.
      const std::uint32_t flags = events[static_cast<std::size_t>(i)].events;
      const Id id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == kListener) {
        accept_all();
      } else if (id == kWake) {
        std::uint64_t count = 0;
        (void)!::read(wake_, &count, sizeof count);
        handler.woken();
      } else if (const auto found = connections_.find(id); found != connections_.end()) {
        Connection& connection = found->second;
        if ((flags & EPOLLIN) != 0) read(connection);
        if ((flags & EPOLLOUT) != 0 && !connection.flush) connection.flush = true, to_flush_.push_back(id);
        if ((flags & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0) to_close_.push_back(id);
      }
    }
    flush_all();
    close_late();
  }
}

void HttpServer::accept_all() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0 && (errno == EMFILE || errno == ENFILE)) return refuse_without_descriptor();
    if (socket < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
    if (socket < 0) return;
    const bool full = connections_.size() - refused_ >= limits_.connections;
    if (full && refused_ >= limits_.refusals) {
      ::close(socket);
      continue;
    }
    Connection* const connection = add(socket);
    if (connection == nullptr || !full) continue;
    // It ends with the client's end of it: a socket that is closed with something unread takes its answer with it.
    connection->refused = connection->closing = true, connection->keep_alive = false;
    ++refused_;
    queue(*connection, full_answer());
  }
}

// The listener would be ready for ever: nothing could be accepted, and nothing else would be done.
void HttpServer::refuse_without_descriptor() {
  if (spare_ >= 0) ::close(spare_);
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket >= 0) {
    (void)!::send(socket, full_answer().data(), full_answer().size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(socket);
  }
  spare_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

HttpServer::Connection* HttpServer::add(int socket) {
  // Packets of a machine that is gone are not answered by anybody: half a minute later it is known.
  const int one = 1, idle_s = 30, interval_s = 10, probes = 3, unanswered_ms = 30'000;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof unanswered_ms);
  const Id id = next_++;
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) {
    ::close(socket);
    return nullptr;
  }
  Connection& connection = connections_[id];
  connection.id = id;
  connection.socket = socket;
  connection.since = Clock::now();
  return &connection;
}

void HttpServer::read(Connection& connection) {
  std::array<char, 64 << 10> buffer;
  const ssize_t got = ::recv(connection.socket, buffer.data(), buffer.size(), 0);
  if (got < 0 && would_block(errno)) return;
  if (got <= 0) return to_close_.push_back(connection.id);
  if (connection.closing) return;
  connection.input.append(buffer.data(), static_cast<std::size_t>(got));
  // While an answer is under way, no more than one further request is kept.
  if (connection.busy && connection.input.size() > limits_.body_bytes) return to_close_.push_back(connection.id);
  serve(connection);
}

// The next request of the input, if it is whole and its turn.
void HttpServer::serve(Connection& connection) {
  if (connection.busy || connection.closing || connection.input.empty()) return;
  if (!connection.begun) connection.begun = true, connection.since = Clock::now();
  base::RequestLimits limits;
  limits.body_bytes = limits_.body_bytes;
  base::ParsedRequest parsed = base::parse_request(connection.input, limits);
  if (parsed.state == base::ParsedRequest::State::kMore) return;
  connection.begun = false;
  connection.busy = true;
  if (parsed.state == base::ParsedRequest::State::kBad)
    return refuse_bytes(connection, parsed.status, "not a request that this server understands");
  connection.input.erase(0, parsed.consumed);
  connection.keep_alive = parsed.request.keep_alive;
  handler_->request(connection.id, parsed.request);
}

void HttpServer::queue(Connection& connection, std::string_view bytes) {
  connection.output += bytes;
  if (connection.output.size() - connection.sent > limits_.unsent_bytes + bytes.size())
    return to_close_.push_back(connection.id);
  if (!connection.flush) connection.flush = true, to_flush_.push_back(connection.id);
}

void HttpServer::finish(Connection& connection) {
  connection.busy = false;
  connection.since = Clock::now();
  if (!connection.keep_alive) connection.closing = true;
  if (!connection.input.empty()) to_serve_.push_back(connection.id);
}

void HttpServer::reply(Id id, int status, std::string_view type, std::string_view body, std::string_view headers) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  const std::string length = fmt::format("Content-Length: {}", body.size());
  queue(connection, head_of(status, type, length, connection.keep_alive, headers));
  connection.output += body;
  finish(connection);
}

void HttpServer::begin_stream(Id id, std::string_view type, std::string_view headers) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  queue(found->second, head_of(200, type, "Transfer-Encoding: chunked", found->second.keep_alive, headers));
}

void HttpServer::send(Id id, std::string_view part) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || part.empty()) return;
  queue(found->second, fmt::format("{:x}\r\n{}\r\n", part.size(), part));
}

void HttpServer::end_stream(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  queue(found->second, "0\r\n\r\n");
  finish(found->second);
}

// Sends once per turn and connection, however many parts were queued; then the next requests of those that are done.
void HttpServer::flush_all() {
  while (!to_flush_.empty() || !to_serve_.empty()) {
    std::vector<Id> ids;
    ids.swap(to_flush_);
    for (const Id id : ids) {
      const auto found = connections_.find(id);
      if (found == connections_.end()) continue;
      found->second.flush = false;
      if (!flush(found->second)) to_close_.push_back(id);
    }
    ids.clear();
    ids.swap(to_serve_);
    for (const Id id : ids) {
      if (const auto found = connections_.find(id); found != connections_.end()) serve(found->second);
    }
  }
  std::vector<Id> ids;
  ids.swap(to_close_);
  for (const Id id : ids) close(id);
}

// False: the connection is over.
bool HttpServer::flush(Connection& connection) {
  while (connection.sent < connection.output.size()) {
    const ssize_t sent = ::send(connection.socket, connection.output.data() + connection.sent,
                                connection.output.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && !would_block(errno)) return false;
    if (sent < 0) break;
    connection.sent += static_cast<std::size_t>(sent);
  }
  const bool done = connection.sent == connection.output.size();
  if (done) connection.output.clear(), connection.sent = 0;
  if (connection.wants_write == done) {
    connection.wants_write = !done;
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP | (done ? 0U : EPOLLOUT), .data = {.u64 = connection.id}};
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket, &event);
  }
  if (done && connection.closing) ::shutdown(connection.socket, SHUT_WR);  // its end closes it: nothing unread is reset
  return true;
}

void HttpServer::close(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const bool busy = found->second.busy;
  if (found->second.refused) --refused_;
  ::close(found->second.socket);
  connections_.erase(found);
  if (busy) handler_->gone(id);
}

void HttpServer::close_late() {
  const Clock::time_point now = Clock::now();
  if (now - swept_ < std::chrono::milliseconds(kTurnMs)) return;
  swept_ = now;
  std::vector<Id> unfinished;
  for (const auto& [id, connection] : connections_) {
    if (connection.busy) continue;
    const auto limit = connection.begun || connection.closing ? limits_.request : limits_.keep_alive;
    if (now - connection.since <= limit) continue;
    (connection.begun && !connection.closing ? unfinished : to_close_).push_back(id);
  }
  for (const Id id : unfinished) refuse_bytes(connections_.at(id), 408, "the request was not whole in time");
}

// The end of a connection: where its next request would begin is not known.
void HttpServer::refuse_bytes(Connection& connection, int status, const char* why) {
  connection.keep_alive = connection.begun = false;
  connection.input.clear();
  reply(connection.id, status, "application/json", openai::error_body({status, why, ""}));
}

bool HttpServer::all_sent() const {
  return std::ranges::all_of(connections_, [](const auto& each) { return each.second.output.empty(); });
}

}  // namespace llmprof::workload
