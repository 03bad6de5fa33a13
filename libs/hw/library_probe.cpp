#include "hw/library_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace llmprof::hw {
namespace {

constexpr auto kTimeout = std::chrono::seconds(10);

// In the child: the answer is one byte ('1' loaded, '0' not) and the text.
[[noreturn]] void answer(const std::string& path, std::string (*ask)(void*), int out) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* reason = handle == nullptr ? ::dlerror() : nullptr;
  std::string text = handle != nullptr ? "1" : "0";
  if (handle != nullptr && ask != nullptr) text += ask(handle);
  if (reason != nullptr) text += reason;
  (void)!::write(out, text.data(), text.size());
  ::_exit(0);
}

std::string read_until(int fd, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  char buffer[512];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd waiting{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) return text;
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace

LibraryProbe probe_library(const std::string& path, std::string (*ask)(void*)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {false, "no pipe"};
  const pid_t child = ::fork();
  if (child == 0) answer(path, ask, ends[1]);
  ::close(ends[1]);
  const std::string text = child > 0 ? read_until(ends[0], std::chrono::steady_clock::now() + kTimeout) : "";
  ::close(ends[0]);
  if (child > 0) {
    if (text.empty()) ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  if (text.empty()) return {false, "the loader crashed or did not answer within 10 s"};
  return {text.front() == '1', text.substr(1)};
}

}  // namespace llmprof::hw
