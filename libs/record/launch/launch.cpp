#include "record/launch/launch.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <iterator>
#include <sstream>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/strings.h"
#include "host/proc.h"

namespace llmprof::record {
namespace {

constexpr int kMaxInterpreters = 5;  // the kernel's own limit is 4 nested scripts

#if defined(__x86_64__)
constexpr Elf64_Half kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kOwnMachine = EM_AARCH64;
#else
constexpr Elf64_Half kOwnMachine = EM_NONE;
#endif

enum class Access : std::uint8_t { kMissing, kDenied, kRunnable };

Access access_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno == EACCES ? Access::kDenied : Access::kMissing;
  if (!S_ISREG(info.st_mode)) return Access::kDenied;
  return ::access(path.c_str(), X_OK) == 0 ? Access::kRunnable : Access::kDenied;
}

std::vector<std::string> candidates(const std::string& command, std::string_view search_path) {
  if (command.find('/') != std::string::npos) return {command};
  std::vector<std::string> paths;
  for (const std::string_view folder : base::split(search_path, ':')) {
    paths.push_back(folder.empty() ? "./" + command : fmt::format("{}/{}", folder, command));
  }
  return paths;
}

// First runnable candidate; else why not.
Result<std::string> search(const std::string& command, std::string_view search_path) {
  bool denied = false;
  for (const std::string& path : candidates(command, search_path)) {
    const Access access = access_of(path);
    if (access == Access::kRunnable) return path;
    denied = denied || access == Access::kDenied;
  }
  if (denied) return Error{ErrorCode::kPermission, command + ": not an executable program", "check its permissions"};
  return Error{ErrorCode::kNotFound, command + ": command not found", "check the spelling, and PATH"};
}

struct Opened {
  int fd = -1;
  ~Opened() {
    if (fd >= 0) ::close(fd);
  }
};

template <class T>
bool read_at(int fd, std::uint64_t offset, T& value) {
  return ::pread(fd, &value, sizeof value, static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof value);
}

bool has_interpreter(int fd, const Elf64_Ehdr& header) {
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(fd, header.e_phoff + static_cast<std::uint64_t>(i) * header.e_phentsize, segment)) return false;
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

std::optional<std::string> why_not_elf(int fd, const std::string& path) {
  unsigned char ident[EI_NIDENT] = {};
  if (!read_at(fd, 0, ident)) return path + " is too short to be a program";
  if (ident[EI_CLASS] != ELFCLASS64) return path + " is a 32-bit program";
  Elf64_Ehdr header{};
  if (!read_at(fd, 0, header)) return path + " is too short to be a program";
  if (header.e_machine != kOwnMachine) return path + " is for another processor architecture";
  if (!has_interpreter(fd, header)) return path + " is statically linked";
  return std::nullopt;
}

// The dynamic linker ignores LD_PRELOAD when the program gains rights by being started.
std::optional<std::string> why_not_privileged(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return std::nullopt;
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != ::geteuid()) return path + " is setuid";
  const bool group_runs = (info.st_mode & S_IXGRP) != 0;  // without it the bit means mandatory locking
  if ((info.st_mode & S_ISGID) != 0 && group_runs && info.st_gid != ::getegid()) return path + " is setgid";
  const bool gains_rights = ::geteuid() != 0;  // root has them already
  if (gains_rights && ::fgetxattr(fd, "security.capability", nullptr, 0) > 0) return path + " has file capabilities";
  return std::nullopt;
}

// "#!/usr/bin/env -S python3 -u" -> the words after "#!".
std::vector<std::string> interpreter_words(int fd) {
  char line[256] = {};
  const ssize_t count = ::pread(fd, line, sizeof line - 1, 2);
  if (count <= 0) return {};
  const std::string_view text(line, static_cast<std::size_t>(count));
  std::istringstream words(std::string(text.substr(0, text.find('\n'))));
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

// The program that "env" starts: the first word that is neither an option nor a variable.
std::optional<std::string> started_by_env(const std::vector<std::string>& words) {
  if (words.empty() || !words.front().ends_with("/env")) return std::nullopt;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-') && words[i].find('=') == std::string::npos) return words[i];
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const std::string& path, std::string_view search_path, int depth) {
  const Opened file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return std::nullopt;  // unreadable programs run; whether they can be injected shows in their log
  if (auto reason = why_not_privileged(file.fd, path)) return reason;
  char magic[4] = {};
  if (!read_at(file.fd, 0, magic)) return std::nullopt;  // shorter than any program: a script run by sh
  if (std::memcmp(magic, ELFMAG, SELFMAG) == 0) return why_not_elf(file.fd, path);
  if (magic[0] != '#' || magic[1] != '!' || depth >= kMaxInterpreters) return std::nullopt;
  const std::vector<std::string> words = interpreter_words(file.fd);
  if (words.empty()) return std::nullopt;
  if (const auto program = started_by_env(words)) {
    if (const auto found = search(*program, search_path)) return why_not(*found, search_path, depth + 1);
  }
  return why_not(words.front(), search_path, depth + 1);
}

}  // namespace

std::optional<std::string> why_not_injectable(const std::string& path, std::string_view search_path) {
  return why_not(path, search_path, 0);
}

Result<Target> find_target(const std::string& command, std::string_view search_path) {
  if (command.empty()) return Error{ErrorCode::kNotFound, "the command is empty", ""};
  LLMPROF_LET(const std::string path, search(command, search_path));
  return Target{path, why_not_injectable(path, search_path)};
}

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

Result<Attached> attach_and_wait(pid_t pid, std::optional<std::chrono::nanoseconds> duration, const Watch& watch) {
  constexpr std::chrono::milliseconds kLook{50};
  const SignalGate gate;
  const auto begin = std::chrono::steady_clock::now();
  const host::StatFile stat(pid);  // names this process, whoever gets its number later
  const auto runs = [&] {
    const auto now = stat.read();
    return now && !now->ended();
  };
  if (!runs()) return Error{ErrorCode::kNotFound, fmt::format("there is no process {}", pid), "ps -e lists them"};
  watch.forked(pid);
  watch.started(pid);
  Attached out;
  for (auto next_poll = begin + watch.every;;) {
    siginfo_t info{};
    const int signal = gate.next(kLook, info);
    out.ended = !runs();
    const auto now = std::chrono::steady_clock::now();
    const bool stop = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    if (out.ended || stop || (duration && now - begin >= *duration)) break;
    if (signal == dump_signal()) watch.dump();
    if (now < next_poll) continue;
    watch.poll();
    next_poll = now + watch.every;
  }
  watch.ended(pid);
  return out;
}

}  // namespace llmprof::record
