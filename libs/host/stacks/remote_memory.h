#pragma once
// Memory of another process, read by pages: following pointers through structures that lie close together then costs
// few system calls. Nothing is stopped, so what is read may change meanwhile.

#include <sys/types.h>
#include <sys/uio.h>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/eh_frame.h"

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

// What the kernel took with a sample: registers, and the stack of the thread.

// The registers of x86-64 by their DWARF numbers; 16 is the return address, of the innermost frame the instruction.

using wire::kRbp;
using wire::kRegisters;
using wire::kRip;
using wire::kRsp;

struct Registers {
  std::array<std::uint64_t, kRegisters> value{};
  std::uint32_t known = 0;  // one bit each

  bool has(std::size_t number) const { return number < kRegisters && (known >> number & 1) != 0; }
  std::optional<std::uint64_t> get(std::size_t number) const {
    if (!has(number)) return std::nullopt;
    return value[number];
  }
  void set(std::size_t number, std::uint64_t content) {
    value[number] = content;
    known |= 1u << number;
  }
  void forget(std::size_t number) { known &= ~(1u << number); }
};

// The kernel's copy of a stack ends at the first page that is not in memory: large arrays that the program has not
// touched make such holes. What lies behind is read from the process when unwinding gets there.
class StackTail {
 public:
  // `before` is the end of the copy: if the process has something else there by now, the thread has moved on and the
  // tail counts as unreadable.
  StackTail(pid_t pid, std::uint64_t begin, std::size_t bytes, std::span<const std::uint8_t> before)
      : pid_(pid), begin_(begin), most_(bytes), before_(before) {}

  bool read(std::uint64_t address, void* out, std::size_t bytes);

 private:
  void load();

  pid_t pid_;
  std::uint64_t begin_;
  std::size_t most_;
  std::span<const std::uint8_t> before_;
  bool loaded_ = false;
  std::vector<std::uint8_t> bytes_;
};

// The part of a thread's stack that the kernel copied when it took the sample, and what lies behind it, if there is a
// tail. Nothing else is read to unwind.
class StackMemory {
 public:
  StackMemory(std::uint64_t begin, std::span<const std::uint8_t> bytes, StackTail* tail = nullptr)
      : begin_(begin), bytes_(bytes), tail_(tail) {}

  // All of them or false.
  bool read(std::uint64_t address, void* out, std::size_t bytes) const {
    if (address < begin_ || bytes_.size() < bytes || address - begin_ > bytes_.size() - bytes)
      return tail_ != nullptr && tail_->read(address, out, bytes);
    std::memcpy(out, bytes_.data() + (address - begin_), bytes);
    return true;
  }
  std::optional<std::uint64_t> word(std::uint64_t address) const {
    std::uint64_t value = 0;
    if (!read(address, &value, sizeof value)) return std::nullopt;
    return value;
  }
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + bytes_.size(); }

 private:
  std::uint64_t begin_;
  std::span<const std::uint8_t> bytes_;
  StackTail* tail_;
};

}  // namespace llmprof::host
