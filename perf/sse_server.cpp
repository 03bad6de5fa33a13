// A server to load against: answers /v1/completions with a stream of so many events, at once or with so much time
// between, on one thread, with prepared bytes. What it costs is far below what a client costs.
//
//   build/perf/sse_server PORT EVENTS GAP_US [EVENTS_PER_WRITE]

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  int events = 0, per_write = 1;
  std::chrono::microseconds gap{0};
};

std::string chunk(const std::string& data) {
  char size[16];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  return size + data + "\r\n";
}

const std::string kEvent =
    R"(data: {"id":"cmpl-0123456789abcdef","object":"text_completion","created":1763580000,"model":"m","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null})"
    "\n\n";

struct Connection {
  std::string in, out;
  std::size_t sent = 0;
  int left = 0;  // events
  bool waits_for_room = false;
};

class Server {
 public:
  Server(int port, const Settings& settings) : settings_(settings) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 4096) != 0) std::exit(1);
    epoll_ = ::epoll_create1(0);
    watch(listener_, EPOLLIN, EPOLL_CTL_ADD);
    for (int i = 0; i < settings.per_write; ++i) events_ += kEvent;
    events_ = chunk(events_);
  }

  [[noreturn]] void run() {
    std::vector<epoll_event> ready(256);
    for (;;) {
      int wait_ms = -1;
      if (!due_.empty()) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due_.top().first - Clock::now()).count();
        wait_ms = left > 0 ? static_cast<int>(left) : 0;
      }
      const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), wait_ms);
      for (int i = 0; i < count; ++i) take(ready[static_cast<std::size_t>(i)]);
      for (const auto now = Clock::now(); !due_.empty() && due_.top().first <= now;) {
        const auto [at, socket] = due_.top();
        due_.pop();
        step(socket, at);
      }
    }
  }

 private:
  void watch(int socket, std::uint32_t events, int how) const {
    epoll_event event{};
    event.events = events, event.data.fd = socket;
    ::epoll_ctl(epoll_, how, socket, &event);
  }
  void take(const epoll_event& event) {
    if (event.data.fd == listener_) return accept_all();
    if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) return close(event.data.fd);
    if ((event.events & EPOLLOUT) != 0) flush(event.data.fd);
    if ((event.events & EPOLLIN) != 0) read(event.data.fd);
  }
  void accept_all() {
    for (int socket = 0; (socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connections_[socket] = {};
      watch(socket, EPOLLIN, EPOLL_CTL_ADD);
    }
  }
  void close(int socket) {
    connections_.erase(socket);
    ::close(socket);
  }
  void read(int socket) {
    Connection& connection = connections_[socket];
    char bytes[65536];
    const ssize_t count = ::read(socket, bytes, sizeof bytes);
    if (count == 0 || (count < 0 && errno != EAGAIN)) return close(socket);
    if (count > 0) connection.in.append(bytes, static_cast<std::size_t>(count));
    const std::size_t head = connection.in.find("\r\n\r\n");
    if (head == std::string::npos) return;
    const std::size_t length_at = connection.in.find("Content-Length: ");
    const std::size_t length = length_at < head ? std::strtoul(connection.in.c_str() + length_at + 16, nullptr, 10) : 0;
    if (connection.in.size() < head + 4 + length) return;
    const bool models = connection.in.starts_with("GET"), generates = connection.in.find("\"prompt\"") != std::string::npos;
    connection.in.erase(0, head + 4 + length);
    if (models) return reply(socket, "200 OK", R"({"data":[{"id":"m"}]})");
    if (!generates) return reply(socket, "400 Bad Request", R"({"error":"prompt"})");
    connection.left = settings_.events;
    connection.out += "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    due_.emplace(Clock::now(), socket);
  }
  void reply(int socket, const char* status, const std::string& body) {
    connections_[socket].out += std::string("HTTP/1.1 ") + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body;
    flush(socket);
  }
  // The next events of a stream, and when those behind them are due.
  void step(int socket, Clock::time_point at) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (connection.waits_for_room) {
      due_.emplace(Clock::now() + std::chrono::milliseconds(1), socket);
      return;
    }
    connection.out += events_;
    connection.left -= settings_.per_write;
    if (connection.left <= 0) {
      const int events = settings_.events;
      connection.out += chunk("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,"
                              "\"completion_tokens\":" + std::to_string(events) + "}}\n\ndata: [DONE]\n\n") + "0\r\n\r\n";
    } else {
      due_.emplace(at + settings_.gap, socket);
    }
    flush(socket);
  }
  void flush(int socket) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    while (connection.sent < connection.out.size()) {
      const ssize_t count = ::send(socket, connection.out.data() + connection.sent, connection.out.size() - connection.sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      connection.sent += static_cast<std::size_t>(count);
    }
    const bool full = connection.sent < connection.out.size();
    if (!full) connection.out.clear(), connection.sent = 0;
    if (full != connection.waits_for_room) watch(socket, full ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
    connection.waits_for_room = full;
  }

  Settings settings_;
  int listener_ = -1, epoll_ = -1;
  std::string events_;
  std::unordered_map<int, Connection> connections_;
  using Due = std::pair<Clock::time_point, int>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "sse_server PORT EVENTS GAP_US [EVENTS_PER_WRITE]\n"), 1;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  Settings settings{.events = std::atoi(argv[2]), .per_write = argc > 4 ? std::atoi(argv[4]) : 1};
  settings.gap = std::chrono::microseconds(std::atoi(argv[3]));
  Server(std::atoi(argv[1]), settings).run();
}
