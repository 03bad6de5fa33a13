// A preload that makes calls of the collector fail, and only of the collector: whoever calls is told by the return
// address. Without a collector in the process it does nothing, so the same command runs with and without one.
//   FAULT_CALL=write FAULT_FROM=3 FAULT_TO=5 FAULT_ERROR=28   calls 3 to 5 fail with errno 28
//   FAULT_ERROR=-1                                            a write takes only half of what it is given
//   FAULT_DISK_BYTES=1000                                     the disk of the log is full after so many bytes
//   FAULT_SLEEP_US=20000                                      every write of the collector takes that long
//   FAULT_CLOCK_STEP_S=3600                                   wall time jumps there and back, for everybody

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

long setting(const char* name, long fallback) {
  const char* text = getenv(name);
  return text != nullptr ? atol(text) : fallback;
}

bool is_collector(void* return_address) {
  Dl_info info;
  return dladdr(return_address, &info) != 0 && info.dli_fname != nullptr &&
         strstr(info.dli_fname, "/libllmprof_") != nullptr;
}

// 0: let it happen.
int error_of(const char* call, void* return_address) {
  static std::atomic<long> calls{0};
  const char* wanted = getenv("FAULT_CALL");
  if (wanted == nullptr || strcmp(wanted, call) != 0 || !is_collector(return_address)) return 0;
  const long now = ++calls;
  const long from = setting("FAULT_FROM", 1);
  return now >= from && now <= setting("FAULT_TO", from) ? static_cast<int>(setting("FAULT_ERROR", EIO)) : 0;
}

}  // namespace

#define CALLER __builtin_return_address(0)
#define NEXT(name)                              \
  static decltype(&name) real_##name = nullptr; \
  if (real_##name == nullptr) real_##name = reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))
#define SHIM(result, name, parameters, arguments, failure)       \
  extern "C" result name parameters {                            \
    NEXT(name);                                                  \
    if (const int error = error_of(#name, CALLER); error != 0) { \
      errno = error;                                             \
      return failure;                                            \
    }                                                            \
    return real_##name arguments;                                \
  }
// Functions that return their error.
#define SHIM_ERROR(name, parameters, arguments)                              \
  extern "C" int name parameters {                                           \
    NEXT(name);                                                              \
    if (const int error = error_of(#name, CALLER); error != 0) return error; \
    return real_##name arguments;                                            \
  }

#pragma GCC diagnostic ignored "-Wmissing-declarations"
SHIM(int, access, (const char* path, int mode) noexcept, (path, mode), -1)
SHIM(int, fstat, (int descriptor, struct stat* status) noexcept, (descriptor, status), -1)
SHIM(int, ftruncate, (int descriptor, off_t size) noexcept, (descriptor, size), -1)
SHIM(int, gethostname, (char* name, size_t size) noexcept, (name, size), -1)
SHIM(int, getrlimit, (__rlimit_resource_t resource, rlimit* limit) noexcept, (resource, limit), -1)
SHIM(int, madvise, (void* at, size_t size, int advice) noexcept, (at, size, advice), -1)
SHIM(ssize_t, read, (int descriptor, void* bytes, size_t size), (descriptor, bytes, size), -1)
SHIM(ssize_t, readlink, (const char* path, char* out, size_t size) noexcept, (path, out, size), -1)
SHIM(int, symlink, (const char* target, const char* path) noexcept, (target, path), -1)
SHIM(int, unlink, (const char* path) noexcept, (path), -1)
SHIM(int, munmap, (void* at, size_t size) noexcept, (at, size), -1)
SHIM(void*, mmap, (void* at, size_t size, int protection, int flags, int descriptor, off_t offset) noexcept,
     (at, size, protection, flags, descriptor, offset), MAP_FAILED)
SHIM_ERROR(pthread_attr_init, (pthread_attr_t * attributes) noexcept, (attributes))
SHIM_ERROR(pthread_create,
           (pthread_t * thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) noexcept,
           (thread, attributes, body, argument))
SHIM_ERROR(pthread_key_create, (pthread_key_t * key, void (*destroy)(void*)) noexcept, (key, destroy))
SHIM_ERROR(pthread_setspecific, (pthread_key_t key, const void* value) noexcept, (key, value))

extern "C" int open(const char* path, int flags, ...) {
  NEXT(open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (const int error = error_of("open", CALLER); error != 0) {
    errno = error;
    return -1;
  }
  return real_open(path, flags, mode);
}

extern "C" int fcntl(int descriptor, int command, ...) {
  NEXT(fcntl);
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (const int error = error_of("fcntl", CALLER); error != 0) {
    errno = error;
    return -1;
  }
  return real_fcntl(descriptor, command, argument);
}

namespace {

// How much of `size` still fits on a disk that holds nothing but this file.
size_t disk_room(int descriptor, size_t size) {
  const long disk = setting("FAULT_DISK_BYTES", -1);
  const long room = disk - static_cast<long>(lseek(descriptor, 0, SEEK_END));
  if (disk < 0 || room >= static_cast<long>(size)) return size;
  return room > 0 ? static_cast<size_t>(room) : 0;
}

}  // namespace

extern "C" ssize_t write(int descriptor, const void* bytes, size_t size) {
  NEXT(write);
  if (!is_collector(CALLER)) return real_write(descriptor, bytes, size);
  if (const long sleep_us = setting("FAULT_SLEEP_US", 0); sleep_us > 0) usleep(static_cast<useconds_t>(sleep_us));
  const int error = error_of("write", CALLER);
  if (error > 0) {
    errno = error;
    return -1;
  }
  if (error < 0 && size > 1) size /= 2;
  const size_t room = disk_room(descriptor, size);
  if (room == 0 && size > 0) {
    errno = ENOSPC;
    return -1;
  }
  return real_write(descriptor, bytes, room);
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  NEXT(clock_gettime);
  const int result = real_clock_gettime(clock, time);
  const long step_s = setting("FAULT_CLOCK_STEP_S", 0);
  if (step_s == 0 || clock != CLOCK_REALTIME) return result;
  static std::atomic<long> readings{0};
  const long which = readings++ % 3;  // as it is, ahead, behind
  time->tv_sec += which == 0 ? 0 : which == 1 ? step_s : -step_s;
  return result;
}

extern "C" int prctl(int option, ...) {
  NEXT(prctl);
  va_list rest;
  va_start(rest, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(rest, unsigned long);
  va_end(rest);
  if (const int error = error_of("prctl", CALLER); error != 0) {
    errno = error;
    return -1;
  }
  return real_prctl(option, words[0], words[1], words[2], words[3]);
}
