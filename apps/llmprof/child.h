#pragma once
// Programs that a verb starts, and a place for their files.

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace llmprof::app {

// A folder that is removed with it.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept { std::swap(path_, other.path_); }
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Where a child's standard output goes; standard error is this program's.
struct ChildOutput {
  std::string file;           // "": to standard error, so that standard output holds a verb's own answer alone
  bool errors_too = false;    // standard error goes to the file, too
  std::string hint = {};      // where it cannot be started
  bool own_group = false;     // Ctrl-C on the terminal does not reach it: whoever started it ends it
};

class Child {
 public:
  static Result<Child> start(const std::vector<std::string>& command, const ChildOutput& output);
  Child(Child&& other) noexcept : status_(other.status_) { std::swap(pid_, other.pid_); }
  ~Child();  // one that still runs is asked to end, then ended

  // Its exit status, or 128 + the signal that ended it; nullopt: it runs.
  std::optional<int> status();
  int wait();
  void signal(int number) const;

 private:
  explicit Child(::pid_t pid) : pid_(pid) {}
  ::pid_t pid_ = -1;
  std::optional<int> status_;
};

// Starts a program and waits for it.
Result<int> run_child(const std::vector<std::string>& command, const ChildOutput& output);

}  // namespace llmprof::app
