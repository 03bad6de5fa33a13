#include "view/listen.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"

namespace llmprof::view {
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
