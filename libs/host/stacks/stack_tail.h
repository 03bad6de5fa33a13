#pragma once
// The kernel's copy of a stack ends at the first page that is not in memory: large arrays that the program has not
// touched make such holes. What lies behind is read from the process when unwinding gets there.

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <vector>

namespace llmprof::host {

class StackTail {
 public:
  // `before` is the end of the copy: if the process has something else there by now, the thread has moved on and the
  // tail counts as unreadable.
  StackTail(pid_t pid, std::uint64_t begin, std::size_t bytes, std::span<const std::uint8_t> before)
      : pid_(pid), begin_(begin), most_(bytes), before_(before) {}

  bool copy(std::uint64_t address, void* out, std::size_t bytes);

 private:
  void load();

  pid_t pid_;
  std::uint64_t begin_;
  std::size_t most_;
  std::span<const std::uint8_t> before_;
  bool loaded_ = false;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace llmprof::host
