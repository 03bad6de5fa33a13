// A program under test: raises NVTX events in one of several ways. `client SCENARIO [NUMBER…]`.

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "collect/testing/nvtx_client.h"

namespace {

using Arguments = std::vector<std::string>;

long number(const Arguments& arguments, std::size_t index, long fallback) {
  return index < arguments.size() ? std::atol(arguments[index].c_str()) : fallback;
}

nvtxEventAttributes_t event() {
  nvtxEventAttributes_t result;
  std::memset(&result, 0, sizeof(result));
  result.version = NVTX_VERSION;
  result.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return result;
}
nvtxEventAttributes_t named(const char* name) {
  nvtxEventAttributes_t result = event();
  result.messageType = NVTX_MESSAGE_TYPE_ASCII;
  result.message.ascii = name;
  return result;
}

void mark_payloads() {
  nvtxEventAttributes_t e = named("payload");
  const auto mark = [&](int type) {
    e.payloadType = type;
    nvtxMarkEx(&e);
    e.payload.ullValue = 0;
  };
  e.payload.ullValue = 0xffffffffffffffffull, mark(NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
  e.payload.llValue = -5, mark(NVTX_PAYLOAD_TYPE_INT64);
  e.payload.dValue = 2.5, mark(NVTX_PAYLOAD_TYPE_DOUBLE);
  e.payload.uiValue = 0xffffffffu, mark(NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
  e.payload.iValue = -7, mark(NVTX_PAYLOAD_TYPE_INT32);
  e.payload.fValue = 0.5f, mark(NVTX_PAYLOAD_TYPE_FLOAT);
  mark(0);
  e.size = 8;  // a client whose structure ends after the category: no payload, no message
  e.category = 3;
  nvtxMarkEx(&e);
}

int everything(const Arguments&) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("my domain");
  const nvtxDomainHandle_t wide = nvtxDomainCreateW(L"d\u00f6main");
  nvtxDomainNameCategoryA(domain, 7, "stage");
  nvtxNameCategoryA(9, "plain category");
  nvtxEventAttributes_t registered = event();
  registered.category = 7;
  registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  registered.message.registered = nvtxDomainRegisterStringA(domain, "registered name");
  std::printf("%d ", nvtxRangePushA("outer"));
  std::printf("%d ", nvtxRangePushW(L"inn\u00e9r \U0001F600"));
  std::printf("%d ", nvtxDomainRangePushEx(domain, &registered));  // levels are per domain
  std::printf("%d ", nvtxDomainRangePop(domain));
  std::printf("%d ", nvtxRangePop());
  std::printf("%d ", nvtxRangePop());
  std::printf("%d\n", nvtxRangePop());  // one too many
  const nvtxEventAttributes_t in_wide = named("in wide domain");
  nvtxDomainMarkEx(wide, &in_wide);
  nvtxMarkA("odd \xff\n</script>");
  mark_payloads();
  const nvtxRangeId_t id = nvtxRangeStartA("across threads");
  const nvtxRangeId_t other = nvtxDomainRangeStartEx(domain, &registered);
  std::thread([=] {
    nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), "ender");
    nvtxRangeEnd(id);
    nvtxDomainRangeEnd(domain, other);
  }).join();
  nvtxNameOsThreadA(4000000, "somebody else");
  nvtxDomainDestroy(domain);
  return 0;
}

void pairs(long count) {
  for (long i = 0; i < count; ++i) {
    nvtxRangePushA("step");
    nvtxRangePop();
  }
}

int load(const Arguments& arguments) {
  std::vector<std::thread> threads;
  for (long i = 0; i < number(arguments, 0, 1); ++i) threads.emplace_back(pairs, number(arguments, 1, 1000));
  for (auto& thread : threads) thread.join();
  return 0;
}

int churn(const Arguments& arguments) {
  for (long i = 0; i < number(arguments, 0, 1000); ++i) std::thread(pairs, 5).join();
  return 0;
}

// All threads alive at once, then all end.
int crowd(const Arguments& arguments) {
  const long count = number(arguments, 0, 1000);
  std::atomic<long> there{0};
  std::atomic<bool> complete{false};
  std::vector<std::thread> threads;
  for (long i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      pairs(5);
      if (++there == count) {
        complete = true;
        complete.notify_all();
      }
      complete.wait(false);
    });
  }
  for (auto& thread : threads) thread.join();
  return 0;
}

int fork_once(const Arguments&) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("before fork");
  nvtxRangePushA("parent range");
  const pid_t child = fork();
  if (child == 0) {
    const nvtxEventAttributes_t mine = named("child range");
    nvtxDomainRangePushEx(domain, &mine);  // the handle is from before the fork
    nvtxDomainRangePop(domain);
    std::exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  nvtxRangePop();
  return status == 0 ? 0 : 1;
}

int fork_under_load(const Arguments& arguments) {
  pairs(1);  // the nvtx3 headers themselves wait for ever in a child that was forked while they look for a tool
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!stop) pairs(10);
    });
  }
  int failed = 0;
  for (long i = 0; i < number(arguments, 0, 20); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a deadlock ends in SIGALRM
      pairs(3);
      usleep(1000);
      if (i % 2 == 0) _exit(0);
      std::exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  return failed;
}

int exec_chain(const Arguments& arguments) {
  const long left = number(arguments, 0, 0);
  nvtxMarkA(("image " + std::to_string(left)).c_str());
  if (left == 0) return 0;
  usleep(300000);  // longer than a flush: an image that execs ends without its exit handlers
  execl("/proc/self/exe", "client", "exec", std::to_string(left - 1).c_str(), nullptr);
  return 1;
}

// Prints the time of each step after it was recorded, until killed.
int until_killed(const Arguments&) {
  for (;;) {
    nvtxMarkA("tick");
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    std::printf("%lld\n", static_cast<long long>(now.tv_sec) * 1000000000 + now.tv_nsec);
    std::fflush(stdout);
    usleep(1000);
  }
}

int close_descriptors(const Arguments&) {
  pairs(10);
  usleep(500000);
  for (int descriptor = 3; descriptor < 1024; ++descriptor) close(descriptor);
  pairs(10);
  usleep(500000);
  pairs(10);
  return 0;
}

int small_files(const Arguments& arguments) {
  const rlim_t bytes = static_cast<rlim_t>(number(arguments, 0, 20000));
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
  for (int i = 0; i < 20; ++i) {
    pairs(5000);
    usleep(50000);
  }
  return 0;
}

std::atomic<long> marks_attempted{0};
void on_alarm(int) {
  ++marks_attempted;
  nvtxMarkA("in handler");
}

int reenter(const Arguments&) {
  nvtxMarkA("begin");
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval every = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &every, nullptr);
  for (int i = 0; i < 300; ++i) pairs(1000);
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("%ld\n", marks_attempted.load());
  return 0;
}

int many_names(const Arguments& arguments) {
  for (long i = 0; i < number(arguments, 0, 100000); ++i) {
    nvtxMarkA(("name " + std::to_string(i)).c_str());
    if (i % 1000 == 0) usleep(1000);
  }
  nvtxMarkA(std::string(1 << 20, 'x').c_str());
  return 0;
}

std::atomic<long> masked{0};

// Recording ends at a size; what comes later must not ask the kernel for anything. Prints how often signals were
// masked.
int stopped(const Arguments& arguments) {
  pairs(number(arguments, 0, 100000));
  usleep(300000);
  pairs(10);  // the writer has ended it by now, if not before
  const long before = masked;
  pairs(1000);
  std::printf("%ld\n", masked - before);
  return 0;
}

int late(const Arguments&) {
  pairs(10);
  std::atexit([] { pairs(10); });
  std::thread([] {
    for (;;) pairs(1);
  }).detach();
  usleep(20000);
  return 5;  // exit runs while the thread goes on
}

int cuda(const Arguments&) {
  void* library = dlopen(std::getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
  const auto entry = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (entry == nullptr || entry() != 1) return 1;
  pairs(2);
  const pid_t child = fork();
  if (child == 0) {
    pairs(3);
    std::exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int threads_beside_main() {
  int tasks = 0;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = folder != nullptr ? readdir(folder) : nullptr) tasks += entry->d_name[0] != '.';
  if (folder != nullptr) closedir(folder);
  return tasks - 1;
}

// Loaded and never asked, or asked for a handle only: the number of threads that were added.
int quiet(const Arguments&) { return threads_beside_main(); }
int handles_only(const Arguments&) {
  nvtxDomainCreateA("never used");
  return threads_beside_main();
}

struct Scenario {
  const char* name;
  int (*run)(const Arguments& arguments);
};
constexpr Scenario kScenarios[] = {
    {"everything", everything},
    {"load", load},
    {"churn", churn},
    {"crowd", crowd},
    {"fork", fork_once},
    {"fork_under_load", fork_under_load},
    {"exec", exec_chain},
    {"until_killed", until_killed},
    {"close_descriptors", close_descriptors},
    {"small_files", small_files},
    {"reenter", reenter},
    {"many_names", many_names},
    {"stopped", stopped},
    {"late", late},
    {"cuda", cuda},
    {"quiet", quiet},
    {"handles_only", handles_only},
};

long peak_memory_kb() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

// Stands before the C library's.
extern "C" int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  ++masked;
  return syscall(SYS_rt_sigprocmask, how, set, old, 8) == 0 ? 0 : errno;
}

int main(int argc, char** argv) {
  for (const Scenario& scenario : kScenarios) {
    if (argc < 2 || std::string(argv[1]) != scenario.name) continue;
    const int status = scenario.run(Arguments(argv + 2, argv + argc));
    std::fprintf(stderr, "peak %ld KiB\n", peak_memory_kb());
    return status;
  }
  return 99;
}
