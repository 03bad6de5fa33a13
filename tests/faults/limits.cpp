// Descriptors, files, limits and filters that the program sets up around or against us.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "victim.h"

namespace fault {
namespace {

struct Limit {
  const char* name;
  int resource;
};
constexpr Limit kLimits[] = {{"fsize", RLIMIT_FSIZE}, {"nofile", RLIMIT_NOFILE},   {"as", RLIMIT_AS},
                             {"nproc", RLIMIT_NPROC}, {"memlock", RLIMIT_MEMLOCK}, {"stack", RLIMIT_STACK}};

bool set_limit(const std::string& name, long value) {
  for (const Limit& limit : kLimits) {
    if (name != limit.name) continue;
    rlimit now;
    getrlimit(static_cast<__rlimit_resource>(limit.resource), &now);
    now.rlim_cur = static_cast<rlim_t>(value);
    return setrlimit(static_cast<__rlimit_resource>(limit.resource), &now) == 0;
  }
  return false;
}

// LIMIT VALUE EVENTS [EARLY_EVENTS]: events before the limit, then the limit, then events.
int limited(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, static_cast<std::uint64_t>(number(arguments, 4, 0)), 0);
  if (!set_limit(arguments.at(1), number(arguments, 2, 0))) return 1;
  const auto events = static_cast<std::uint64_t>(number(arguments, 3, 1000));
  for (std::uint64_t part = 0; part < 10; ++part) {
    mine.emit(0, events / 10, 0);
    usleep(10000);
  }
  std::printf("limited\n");
  return 0;
}

int unmasked(const Arguments& arguments) {
  umask(0);
  Ledger mine(arguments[0]);
  mine.emit(0, 10, 0);
  std::printf("no mask\n");
  return 0;
}

int write_file(const std::string& name, int descriptor) {
  const std::string text = "the program's own data in " + name + "\n";
  return write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
}

// Closes everything, then takes the same numbers for its own files.
int close_descriptors(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, 10, 0);
  usleep(300000);
  if (syscall(SYS_close_range, 3, ~0u, 0) != 0) return 1;
  const int file = open("own.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (int number = 400; number < 700; ++number) {
    if (dup2(file, number) != number) return 2;
  }
  mine.emit(0, 10, 0);
  usleep(300000);
  mine.emit(0, 10, 0);
  std::printf("closed %d\n", write_file("own.txt", 555));
  return 0;
}

// PHASE: "before" or "after" the first event, every open fails with EPERM from then on.
int no_more_opens(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  if (arguments.at(1) == "after") {
    mine.emit(0, 10, 0);
    usleep(300000);
  }
  dlsym(RTLD_DEFAULT, "nothing");  // whatever the loader opens lazily is open by now
  const sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(code)), const_cast<sock_filter*>(code)};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) return 2;
  mine.emit(0, 100, 0);
  std::printf("opened %d\n", open("/dev/null", O_RDONLY));
  return 0;
}

// WHAT: "log" deletes the logs under its feet, "folder" the whole recording, "cwd" the folder it stands in.
int delete_files(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  mine.emit(0, 10, 0);
  usleep(300000);
  const char* folder = std::getenv("LLMPROF_CAPTURE_DIR");
  std::error_code ignored;
  if (arguments.at(1) == "cwd") {
    std::filesystem::create_directory("gone", ignored);
    if (chdir("gone") != 0 || rmdir("../gone") != 0) return 1;
  } else if (folder != nullptr && arguments.at(1) == "folder") {
    std::filesystem::remove_all(folder, ignored);
  } else if (folder != nullptr) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (entry.path().extension() == ".log") std::filesystem::remove(entry.path(), ignored);
    }
  }
  mine.emit(0, 100, 0);
  usleep(300000);
  mine.emit(0, 100, 0);
  std::printf("deleted\n");
  return 0;
}

// Unloads and loads again everything that can be: the injected library among it.
int unload(const Arguments& arguments) {
  Ledger mine(arguments[0]);
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  for (int i = 0; i < 20; ++i) {
    mine.emit(0, 10, 0);
    void* library = dlopen(path != nullptr ? path : "libm.so.6", RTLD_NOW);
    if (library == nullptr) return 1;
    for (int k = 0; k < 3; ++k) dlclose(library);  // more often than it was opened
  }
  std::printf("unloaded\n");
  return 0;
}

// BYTES: takes memory, step by step, with events in between, until somebody stops it.
int eat_memory(const Arguments& arguments) {
  Ledger mine(arguments[0], 1, true);
  mine.emit(0, 100, 0);
  usleep(300000);
  constexpr std::size_t kStep = 1 << 20;
  for (long eaten = 0; eaten < number(arguments, 1, 0); eaten += kStep) {
    void* memory = std::malloc(kStep);
    if (memory == nullptr) break;
    std::memset(memory, 1, kStep);
    mine.emit(0, 10, 100);
  }
  std::printf("full\n");
  return 0;
}

constexpr Scenario kScenarios[] = {
    {"eat_memory", eat_memory},
    {"limited", limited},
    {"unmasked", unmasked},
    {"close_descriptors", close_descriptors},
    {"no_more_opens", no_more_opens},
    {"delete_files", delete_files},
    {"unload", unload},
};

}  // namespace

Scenarios limits() { return {kScenarios, std::size(kScenarios)}; }

}  // namespace fault
