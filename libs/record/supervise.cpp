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
    ::sigaddset(&waited_, dump_signal());
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

// A pipe that programs do not inherit.
struct Pipe {
  int read_end = -1, write_end = -1;

  static Result<Pipe> make() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
    return Pipe{ends[0], ends[1]};
  }
  void close_read() { close(read_end); }
  void close_write() { close(write_end); }

 private:
  static void close(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
};

// The child. Allocates nothing: another thread may have held the allocator's lock at the fork.
[[noreturn]] void become_program(const Launch& launch, char* const* arguments, char* const* environment,
                                 const SignalGate& gate, Pipe go, const Pipe& failed) {
  go.close_write();  // else the end of the recorder would never be seen
  char released = 0;
  while (::read(go.read_end, &released, 1) < 0 && errno == EINTR) {
  }
  if (launch.stdout_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  gate.restore_for_exec();
  ::execvpe(launch.path.c_str(), arguments, environment);  // the p: scripts without "#!" go to sh
  const int error_number = errno;
  (void)!::write(failed.write_end, &error_number, sizeof error_number);
  ::_exit(127);
}

// Starts the program when `watch.forked` has returned. `failed` closes at a successful exec; else errno comes through
// it. `go` holds the process back; its end, also by our death, lets it go.
Result<pid_t> start(const Launch& launch, const Watch& watch, const SignalGate& gate) {
  LLMPROF_LET(Pipe failed, Pipe::make());
  auto go = Pipe::make();
  const std::vector<char*> arguments = pointers(launch.arguments);
  const std::vector<char*> environment = pointers(launch.environment);
  const pid_t pid = go ? ::fork() : -1;
  const int fork_error = errno;
  if (pid == 0) become_program(launch, arguments.data(), environment.data(), gate, *go, failed);
  failed.close_write();
  if (go) go->close_read();
  if (pid > 0) watch.forked(pid);
  if (go) go->close_write();
  int error_number = 0;
  const ssize_t count = pid < 0 ? 0 : ::read(failed.read_end, &error_number, sizeof error_number);
  failed.close_read();
  if (!go) return go.error();
  if (pid < 0) return base::errno_error(ErrorCode::kIo, "fork", fork_error);
  if (count <= 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return exec_error(launch.arguments.front(), error_number);
}

bool sent_by_terminal(const siginfo_t& info) { return info.si_code == SI_KERNEL; }

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

Result<Ended> collect(pid_t pid) {
  int status = 0;
  Ended ended{.pid = pid};
  while (::wait4(pid, &status, 0, &ended.used) != pid) {
    if (errno != EINTR) return base::errno_error(ErrorCode::kInternal, "wait4", errno);
  }
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ended.exit_status = ended.signal != 0 ? 128 + ended.signal : WEXITSTATUS(status);
  return ended;
}

}  // namespace

Result<Ended> launch_and_wait(const Launch& launch, const Watch& watch) {
  const SignalGate gate;
  LLMPROF_LET(const pid_t pid, start(launch, watch, gate));
  watch.started(pid);
  auto next_poll = std::chrono::steady_clock::now() + watch.every;
  while (true) {
    if (has_ended(pid)) {
      watch.ended(pid);
      return collect(pid);
    }
    siginfo_t info{};
    const int signal = gate.next(watch.every, info);
    if (signal == dump_signal()) {
      watch.dump();
      continue;
    }
    if (signal != 0 && signal != SIGCHLD && !sent_by_terminal(info)) ::kill(pid, signal);
    if (std::chrono::steady_clock::now() >= next_poll) {
      watch.poll();
      next_poll = std::chrono::steady_clock::now() + watch.every;
    }
  }
}

}  // namespace llmprof::record
