#pragma once
// Memory of another process, read by pages: following pointers through structures that lie close together then costs
// few system calls. Nothing is stopped, so what is read may change meanwhile.

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llmprof::host {

class RemoteMemory {
 public:
  explicit RemoteMemory(pid_t pid) : pid_(pid) {}

  // To be called before each look at a moment, as soon after it as can be: what the last look needed is read again, all
  // at once, and what it did not need is forgotten.
  void refresh();
  bool read(std::uint64_t address, void* out, std::size_t bytes);
  template <class T>
  std::optional<T> value(std::uint64_t address) {
    T out{};
    if (!read(address, &out, sizeof out)) return std::nullopt;
    return out;
  }
  std::string text(std::uint64_t address, std::size_t most);  // up to its 0; "" if unreadable

  // Several places in one system call, without keeping anything; `out` is as long as all of them together.
  bool read_scattered(const std::vector<iovec>& places, std::vector<std::uint8_t>& out) const;
  // Without keeping anything. False also when the system forbids it.
  static bool read_directly(pid_t pid, std::uint64_t address, void* out, std::size_t bytes);

 private:
  static constexpr std::size_t kPageBytes = 4096, kPages = 32;
  static constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
  struct Page {
    std::uint64_t address = kNoPage;
    bool used = false;  // since the last refresh
    std::array<std::uint8_t, kPageBytes> bytes;
  };
  const Page* page(std::uint64_t address);

  pid_t pid_;
  std::array<Page, kPages> pages_;
};

}  // namespace llmprof::host
