#pragma once
// What verbs share that print lines while something goes on: monitor, top.

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace llmprof::app {

// Ctrl-C and its like end the loop, not the program: what was begun is finished.
inline volatile sig_atomic_t ended_by_signal = 0;
inline void end_at_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, [](int) { ended_by_signal = 1; });
  ::signal(SIGPIPE, SIG_IGN);
}

inline double wall_now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Lines to stdout or a file, each written whole: what is there when we are ended is good.
class Lines {
 public:
  static Result<Lines> open(const std::string& path) {
    if (path.empty()) return Lines(STDOUT_FILENO);
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0) return base::errno_error(base::code_of_errno(errno), path, errno);
    return Lines(descriptor);
  }
  // False: nobody reads any more, or the disk is full.
  bool write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(descriptor_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

 private:
  explicit Lines(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace llmprof::app
