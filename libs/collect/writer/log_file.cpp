#include "collect/writer/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/os.h"
#include "collect/state.h"
#include "wire/encode.h"

namespace llmprof::collect {
namespace {

constexpr int kHighDescriptor = 500;  // programs that number their own descriptors start low
constexpr int kMaxImages = 100000;    // execs of one process

struct Log {
  int descriptor = -1;
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t bytes = 0;        // written so far
  std::uint64_t last_append = 0;  // bytes of the last one; 0: must stay
  std::uint32_t appends = 0;
  std::uint64_t ticks = 0;
  int image = 0;       // n of its name
  bool noted = false;  // note_off() was here
  char host[65] = {};
  char path[4096] = {};
  char off_path[4096] = {};
};
constinit Log log_state;

bool is_log(const struct stat& status) { return status.st_dev == log_state.device && status.st_ino == log_state.inode; }

// Whether the descriptor is the log, and the log still has a name: what goes into a deleted file nobody will read.
bool is_ours(int descriptor) {
  struct stat status;
  return descriptor >= 0 && fstat(descriptor, &status) == 0 && is_log(status) && status.st_nlink > 0;
}

// Out of the way of a program that closes or numbers low descriptors. Where that is not permitted, it stays.
int move_up(int descriptor) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= static_cast<rlim_t>(kHighDescriptor))
    return descriptor;
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, kHighDescriptor);
  if (high < 0) return descriptor;
  close(descriptor);
  return high;
}

// Writes the n-th name of this process.
bool put_path(char (&out)[4096], int n, const char* suffix) {
  const int length = snprintf(out, sizeof(out), "%s/%s-%d-%llu-%d.%s", g.settings.folder, log_state.host, getpid(),
                              static_cast<unsigned long long>(log_state.ticks), n, suffix);
  return length > 0 && static_cast<std::size_t>(length) < sizeof(out);
}

bool create_file() {
  for (int n = 0; n < kMaxImages; ++n) {
    if (!put_path(log_state.path, n, "log")) return false;
    const int descriptor = open(log_state.path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (descriptor >= 0) {
      log_state.descriptor = move_up(descriptor);
      log_state.image = n;
      return true;
    }
    if (errno != EEXIST && errno != EINTR) return false;
  }
  return false;
}

// Writes everything, however often the kernel takes only a part. False: errno says why.
bool write_all(const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(log_state.descriptor, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

// The program closed or replaced our descriptor: the file itself is still there, unless its name was taken too.
void reopen() {
  struct stat status;
  if (fstat(log_state.descriptor, &status) == 0 && is_log(status)) close(log_state.descriptor);  // ours, but deleted
  log_state.descriptor = -1;
  const int descriptor = open(log_state.path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return note_off(errno, "log");
  if (is_ours(descriptor)) {
    log_state.descriptor = move_up(descriptor);
  } else {
    close(descriptor);
    note_off(ESTALE, "log");
  }
}

// The header is written on a thread of the program. A file size limit that small must not kill it: the signal that
// comes with the failed write is kept back and taken away again. (The writer's thread has all signals blocked.)
class HoldFileSizeSignal {
 public:
  HoldFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~HoldFileSizeSignal() {
    const KeepErrno keep;
    const timespec now = {};
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HoldFileSizeSignal(const HoldFileSizeSignal&) = delete;
  HoldFileSizeSignal& operator=(const HoldFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool was_pending_ = false;
};

// The file was just created.
bool begin_file(std::uint32_t segment) {
  log_state.bytes = 0;
  log_state.last_append = 0;
  log_state.appends = 0;
  struct stat status;
  if (fstat(log_state.descriptor, &status) != 0) {
    const KeepErrno keep;
    unlink(log_state.path);
    close(log_state.descriptor);
    log_state.descriptor = -1;
    return false;
  }
  log_state.device = status.st_dev;
  log_state.inode = status.st_ino;
  wire::FileHeader header{};
  header.pid = static_cast<std::uint64_t>(getpid());
  header.start_ticks = log_state.ticks;
  header.raw_ns = now_ns();
  header.wall_ns = read_clock_ns(CLOCK_REALTIME);
  header.segment = segment;
  wire::seal_file_header(&header);
  const HoldFileSizeSignal hold;
  int error = 0;
  if (append_to_log(&header, sizeof(header), &error)) return true;
  discard_log();
  errno = error;
  return false;
}

bool put_segment_path(std::uint32_t number) {
  char suffix[32];
  snprintf(suffix, sizeof(suffix), "%u.log", number);
  return put_path(log_state.path, log_state.image, number == 0 ? "log" : suffix);
}

}  // namespace

bool open_log() {
  log_state.descriptor = -1;
  log_state.noted = false;
  log_state.ticks = read_start_ticks();
  read_host_name(log_state.host, sizeof(log_state.host));
  return create_file() && begin_file(0);
}

bool open_segment(std::uint32_t number) {
  close_log();
  if (!put_segment_path(number)) return false;
  const int descriptor = open(log_state.path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return false;
  log_state.descriptor = move_up(descriptor);
  return begin_file(number);
}

void remove_segment(std::uint32_t number) {
  char current[sizeof(log_state.path)];
  memcpy(current, log_state.path, sizeof(current));
  if (put_segment_path(number)) unlink(log_state.path);
  memcpy(log_state.path, current, sizeof(current));
}

void note_off(int error, const char* what) {
  if (log_state.noted) return;
  log_state.noted = true;
  if (log_state.host[0] == '\0') read_host_name(log_state.host, sizeof(log_state.host));
  if (log_state.ticks == 0) log_state.ticks = read_start_ticks();
  char reason[64];
  snprintf(reason, sizeof(reason), "%d %s", error, what);
  for (int n = 0; n < kMaxImages && put_path(log_state.off_path, n, "off"); ++n) {
    if (symlink(reason, log_state.off_path) == 0 || errno != EEXIST) return;
  }
}

void withdraw_note() {
  if (log_state.noted) unlink(log_state.off_path);
  log_state.noted = false;
}

bool append_to_log(const void* bytes, std::size_t size, int* error) {
  if (!is_ours(log_state.descriptor)) {
    // Not written, even though the file can be reached again: the caller is told, and may append its last words.
    *error = EBADF;
    reopen();
    return false;
  }
  if (write_all(static_cast<const char*>(bytes), size)) {
    log_state.bytes += size;
    log_state.last_append = ++log_state.appends > 2 ? size : 0;
    return true;
  }
  *error = errno;
  if (ftruncate(log_state.descriptor, static_cast<off_t>(log_state.bytes)) != 0) return false;
  return false;
}

std::uint64_t cut_last_append() {
  const std::uint64_t size = log_state.last_append;
  if (size == 0 || !is_ours(log_state.descriptor)) return 0;
  if (ftruncate(log_state.descriptor, static_cast<off_t>(log_state.bytes - size)) != 0) return 0;
  log_state.bytes -= size;
  log_state.last_append = 0;
  return size;
}

std::uint64_t log_bytes() { return log_state.bytes; }
std::uint64_t start_ticks() { return log_state.ticks; }
const char* host_name() { return log_state.host; }

bool folder_is_full() {
  char path[kMaxFolderBytes + 8];
  snprintf(path, sizeof(path), "%s/full", g.settings.folder);
  return access(path, F_OK) == 0;
}

void close_log() {
  if (is_ours(log_state.descriptor)) close(log_state.descriptor);
  log_state.descriptor = -1;
}

void close_inherited_log() { close_log(); }

void discard_log() {
  if (is_ours(log_state.descriptor)) unlink(log_state.path);
  close_log();
}

}  // namespace llmprof::collect
