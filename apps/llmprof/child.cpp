#include "child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/text_table.h"

extern char** environ;

namespace llmprof::app {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);  // between asking a child to end and ending it

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make() {
  std::string path = base::env_or("TMPDIR", "/tmp") + "/llmprof-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return Error{ErrorCode::kIo, "no temporary folder can be made", "TMPDIR says where"};
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<Child> Child::start(const std::vector<std::string>& command, const ChildOutput& output) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (output.file.empty()) {
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (output.errors_too) ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  if (output.own_group) ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Error{ErrorCode::kNotFound, fmt::format("{} cannot be started", base::printable(command[0])), output.hint};
  return Child(pid);
}

std::optional<int> Child::status() {
  int ended = 0;
  if (!status_ && pid_ > 0 && ::waitpid(pid_, &ended, WNOHANG) == pid_)
    status_ = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
  return status_;
}

int Child::wait() {
  int ended = 0;
  while (!status_) {
    if (::waitpid(pid_, &ended, 0) == pid_) {
      status_ = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    } else if (errno != EINTR) {
      status_ = 128;
    }
  }
  return *status_;
}

void Child::signal(int number) const {
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

Child::~Child() {
  if (pid_ <= 0 || status()) return;
  signal(SIGTERM);
  for (const auto until = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < until;) {
    if (status()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  signal(SIGKILL);
  wait();
}

Result<int> run_child(const std::vector<std::string>& command, const ChildOutput& output) {
  LLMPROF_LET(Child child, Child::start(command, output));
  return child.wait();
}

}  // namespace llmprof::app
