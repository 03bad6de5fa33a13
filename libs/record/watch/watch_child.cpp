#include "record/watch/watch_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/file.h"

namespace llmprof::record {
namespace {

constexpr int kPipeBytes = 1 << 20;  // seconds of readings of many devices; where refused, it stays at 64 KiB
constexpr std::size_t kReadBytes = 64 * 1024;

void close_both(const int (&ends)[2]) {
  ::close(ends[0]);
  ::close(ends[1]);
}

// Signals of the terminal are for the program; whoever reads our parent's output must not wait for us.
void leave_everything(int& events, int& orders) {
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE}) {
    ::signal(signal, SIG_IGN);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also in the middle of a call that hangs
  ::prctl(PR_SET_NAME, "llmprof-watch");
  const int null = ::open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor < 3; ++descriptor) ::dup2(null, descriptor);
  const int high = ::fcntl(events, F_DUPFD, 500);
  const int higher = ::fcntl(orders, F_DUPFD, 500);
  if (high < 0 || higher < high) return;
  const auto close_range = [](int from, int to) {
    ::syscall(SYS_close_range, static_cast<unsigned>(from), static_cast<unsigned>(to), 0);
  };
  close_range(3, high - 1);
  if (higher - high > 1) close_range(high + 1, higher - 1);
  close_range(higher + 1, -1);
  events = high;
  orders = higher;
}

[[noreturn]] void live(const WatchChild::Body& body, int events, int orders) {
  leave_everything(events, orders);
  body(events, orders);
  ::_exit(0);  // nothing of the parent is ours to destroy
}

}  // namespace

Result<std::unique_ptr<WatchChild>> WatchChild::start(const Body& body) {
  int events[2], orders[2];
  if (::pipe2(events, O_CLOEXEC | O_NONBLOCK) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  // A socket: writing to one whose other end is gone can be asked to raise no signal.
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, orders) != 0) {
    close_both(events);
    return base::errno_error(ErrorCode::kIo, "socketpair", errno);
  }
  (void)::fcntl(events[1], F_SETPIPE_SZ, kPipeBytes);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(orders[1]);  // else our own end would keep us waiting
    live(body, events[1], orders[0]);
  }
  ::close(events[1]);
  ::close(orders[0]);
  if (pid < 0) {
    ::close(events[0]);
    ::close(orders[1]);
    return base::errno_error(ErrorCode::kIo, "fork", errno);
  }
  return std::unique_ptr<WatchChild>(new WatchChild(pid, events[0], orders[1]));
}

WatchChild::~WatchChild() {
  stop(std::chrono::milliseconds(0));
  ::close(events_);
}

void WatchChild::receive() { read_some(); }

// False: the pipe has ended.
bool WatchChild::read_some() {
  char buffer[kReadBytes];
  while (true) {
    const ssize_t count = ::read(events_, buffer, sizeof buffer);
    if (count == 0) ended_ = true;
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    bytes_.append(buffer, static_cast<std::size_t>(count));
  }
}

void WatchChild::tell(char word) const {
  if (orders_ >= 0) (void)::send(orders_, &word, 1, MSG_NOSIGNAL);
}

bool WatchChild::stop(std::chrono::milliseconds patience) {
  if (pid_ < 0) return true;
  ::close(std::exchange(orders_, -1));
  const auto until = std::chrono::steady_clock::now() + patience;
  bool ended = false;
  while (!(ended = !read_some())) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd wait{events_, POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(left.count()));
  }
  ::kill(pid_, SIGKILL);  // its last word is said, or it hangs
  // A call that hangs in the kernel outlives even that; then init collects it.
  for (int i = 0; i < (ended ? 20 : 1) && ::waitpid(pid_, nullptr, WNOHANG) == 0; ++i) ::usleep(1000);
  pid_ = -1;
  return ended;
}

}  // namespace llmprof::record
