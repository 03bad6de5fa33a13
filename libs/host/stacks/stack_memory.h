#pragma once
// The part of a thread's stack that the kernel copied when it took the sample, and what lies behind it, if there is a
// tail. Nothing else is read to unwind.

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "host/stacks/stack_tail.h"

namespace llmprof::host {

class StackMemory {
 public:
  StackMemory(std::uint64_t begin, std::span<const std::uint8_t> bytes, StackTail* tail = nullptr)
      : begin_(begin), bytes_(bytes), tail_(tail) {}

  // All of them or false.
  bool copy(std::uint64_t address, void* out, std::size_t bytes) const {
    if (address < begin_ || bytes_.size() < bytes || address - begin_ > bytes_.size() - bytes)
      return tail_ != nullptr && tail_->copy(address, out, bytes);
    std::memcpy(out, bytes_.data() + (address - begin_), bytes);
    return true;
  }
  std::optional<std::uint64_t> word(std::uint64_t address) const {
    std::uint64_t value = 0;
    if (!copy(address, &value, sizeof value)) return std::nullopt;
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
