#pragma once
// The sockets of the server: loopback, and nothing else unless the user understood what that means (RELIABILITY W1).

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace llmprof::view {

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

}  // namespace llmprof::view
