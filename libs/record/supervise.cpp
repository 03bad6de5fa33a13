#include "record/supervise.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/file.h"

namespace llmprof::record {
namespace {

// SIGTSTP, SIGCONT and alike keep their defaults: a terminal stops and continues the whole group, us included.
constexpr std::array kPassedOn{SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

// Signals are blocked and fetched one by one; the state found is put back in the child and at the end.
class SignalGate {
 public:
  SignalGate() {
    ::sigemptyset(&waited_);
    ::sigaddset(&waited_, SIGCHLD);
    for (const int signal : kPassedOn) ::sigaddset(&waited_, signal);
    ::pthread_sigmask(SIG_BLOCK, &waited_, &found_mask_);
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;  // an inherited SIG_IGN would reap the child and lose its status
    ::sigaction(SIGCHLD, &standard, &found_child_action_);
  }
  ~SignalGate() {
    const timespec now{};
    sigset_t terminal;  // a Ctrl-C meant for the program must not interrupt what comes after it
    ::sigemptyset(&terminal);
    for (const int signal : {SIGINT, SIGQUIT}) ::sigaddset(&terminal, signal);
    while (::sigtimedwait(&terminal, nullptr, &now) > 0) {
    }
    restore();
  }
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  void restore() const {
    ::sigaction(SIGCHLD, &found_child_action_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &found_mask_, nullptr);
  }
  // For the child, between fork and exec: a handler of ours must not swallow a signal meant for the program.
  void restore_for_exec() const {
    for (const int signal : kPassedOn) {
      struct sigaction action {};
      if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) ::signal(signal, SIG_DFL);
    }
    restore();
  }
  // Number of the next signal, 0 after the time.
  int next(std::chrono::milliseconds timeout, siginfo_t& info) const {
    const timespec wait{timeout.count() / 1000, (timeout.count() % 1000) * 1'000'000};
    const int signal = ::sigtimedwait(&waited_, &info, &wait);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t waited_{};
  sigset_t found_mask_{};
  struct sigaction found_child_action_ {};
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));  // execve's old signature
  result.push_back(nullptr);
  return result;
}

Error exec_error(const std::string& command, int error_number) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return base::errno_error(missing ? ErrorCode::kNotFound : ErrorCode::kPermission, command, error_number);
}

// Starts the program. The pipe closes at a successful exec; else errno comes through it.
Result<pid_t> start(const Launch& launch, const SignalGate& gate) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  const std::vector<char*> arguments = pointers(launch.arguments);
  const std::vector<char*> environment = pointers(launch.environment);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (launch.stdout_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    gate.restore_for_exec();
    ::execvpe(launch.path.c_str(), arguments.data(), environment.data());  // the p: scripts without "#!" go to sh
    const int error_number = errno;
    (void)!::write(pipe_ends[1], &error_number, sizeof error_number);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(pipe_ends[1]);
  int error_number = 0;
  const ssize_t count = pid < 0 ? 0 : ::read(pipe_ends[0], &error_number, sizeof error_number);
  ::close(pipe_ends[0]);
  if (pid < 0) return base::errno_error(ErrorCode::kIo, "fork", fork_error);
  if (count <= 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return exec_error(launch.arguments.front(), error_number);
}

bool sent_by_terminal(const siginfo_t& info) { return info.si_code == SI_KERNEL; }

Ended ended_as(pid_t pid, int status) {
  if (WIFSIGNALED(status)) return {pid, 128 + WTERMSIG(status), WTERMSIG(status)};
  return {pid, WEXITSTATUS(status), 0};
}

}  // namespace

Result<Ended> launch_and_wait(const Launch& launch, const Watch& watch) {
  const SignalGate gate;
  LLMPROF_LET(const pid_t pid, start(launch, gate));
  watch.started(pid);
  auto next_poll = std::chrono::steady_clock::now() + watch.every;
  while (true) {
    int status = 0;
    const pid_t waited = ::waitpid(pid, &status, WNOHANG);
    if (waited == pid) return ended_as(pid, status);
    if (waited < 0 && errno != EINTR) return base::errno_error(ErrorCode::kInternal, "waitpid", errno);
    siginfo_t info{};
    const int signal = gate.next(watch.every, info);
    if (signal != 0 && signal != SIGCHLD && !sent_by_terminal(info)) ::kill(pid, signal);
    if (std::chrono::steady_clock::now() >= next_poll) {
      watch.poll();
      next_poll = std::chrono::steady_clock::now() + watch.every;
    }
  }
}

}  // namespace llmprof::record
