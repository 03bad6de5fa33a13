#include "hw/in_child.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>

#include "base/file.h"

namespace llmprof::hw {

namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::size_t kMarkBytes = 1;  // after the text: all of it is there

[[noreturn]] void answer(const std::function<std::string()>& work, int descriptor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  // Whoever reads our parent's output must not wait for a child that hangs.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard < 3; ++standard) ::dup2(null, standard);
  const std::string text = work().substr(0, kMostBytes) + '\n';
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(descriptor, text.data() + at, text.size() - at);
    if (count <= 0) break;
    at += static_cast<std::size_t>(count);
  }
  ::_exit(0);  // nothing of the parent is ours to destroy
}

// Until the end of the pipe; nothing when the time is over.
std::optional<std::string> read_until(int descriptor, std::chrono::steady_clock::time_point until) {
  std::string text;
  while (text.size() <= kMostBytes + kMarkBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd wait{descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char buffer[4096];
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

Result<std::string> in_child(const std::function<std::string()>& work, std::chrono::milliseconds patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    answer(work, ends[1]);
  }
  const int fork_error = errno;
  ::close(ends[1]);
  std::optional<std::string> text;
  if (pid > 0) text = read_until(ends[0], std::chrono::steady_clock::now() + patience);
  ::close(ends[0]);
  if (pid < 0) return base::errno_error(ErrorCode::kIo, "fork", fork_error);
  ::kill(pid, SIGKILL);
  // A call that hangs in the kernel outlives that: it is waited for only if it said all.
  const bool whole = text && text->ends_with('\n');
  for (int i = 0; i < (whole ? 100 : 1) && ::waitpid(pid, nullptr, WNOHANG) == 0; ++i) ::usleep(1000);
  if (!text) return Error{ErrorCode::kUnsupported, "no answer in time", ""};
  if (!whole) return Error{ErrorCode::kUnsupported, "it died", ""};
  text->pop_back();
  return *text;
}

LibraryProbe probe_library(const std::string& path, std::string (*ask)(void*)) {
  // The answer is one byte ('1' loaded, '0' not) and the text.
  const Result<std::string> text = in_child(
      [&]() -> std::string {
        void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle != nullptr) return "1" + (ask != nullptr ? ask(handle) : std::string());
        const char* reason = ::dlerror();
        return std::string("0") + (reason != nullptr ? reason : "");
      },
      std::chrono::seconds(10));
  if (!text || text->empty()) return {false, "the loader crashed or did not answer within 10 s"};
  return {text->front() == '1', text->substr(1)};
}

}  // namespace llmprof::hw
