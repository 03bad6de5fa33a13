#pragma once
// A child process that reads untrusted bytes. It gets an open input and one pipe to write to, and nothing else: all
// other descriptors are closed, memory, CPU time and files are limited, and system calls outside a short list are
// refused. It dies alone: how it ended is an error with words, never a signal of llmprof.
//
// Children are forked before this process has threads, because a fork copies only the calling thread: they start at
// once, and wait where `work` waits for go().

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace llmprof::importers {

struct ChildLimits {
  std::uint64_t memory_bytes = std::uint64_t{768} << 20;  // of address space, beyond what the program has at the start
  std::uint64_t cpu_seconds = 120;                        // of all its threads
  std::uint64_t file_bytes = 0;                           // that it may write into an open file
  // A file that it may open itself, for reading: libraries that want a path. Every other is kept from it by Landlock;
  // where the system has none, the child does not start. "": none.
  std::string readable_file = "";
};

class Child {
 public:
  // In the child: what it was given to write to, and to wait for go().
  struct Ends {
    int output = -1;
    int signal = -1;
    bool wait_for_go() const;  // false: the parent gave up
  };

  // `keep`: descriptors of this process that the work needs. `name` stands in the words of errors.
  static Result<Child> start(std::string name, const std::function<void(const Ends&)>& work, std::span<const int> keep,
                             const ChildLimits& limits);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();  // kills it, if it still runs

  int output() const { return output_; }  // to read from; does not block
  void go();
  // Waits for its end. An error says what stopped it: memory, CPU time, a forbidden call, a signal.
  Result<void> wait();

 private:
  Child() = default;
  std::string name_;
  ChildLimits limits_;
  pid_t pid_ = -1;
  int output_ = -1, signal_ = -1;
};

// Whether memory limits and the filter are in force: sanitizers need more of both than they leave.
bool sandbox_is_complete();

}  // namespace llmprof::importers
