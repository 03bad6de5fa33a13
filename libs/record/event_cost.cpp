#include "record/event_cost.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/version.h"
#include "hw/peaks.h"
#include "llmprof/annotate.h"
#include "record/window_options.h"
#include "wire/collector_v1.h"

namespace llmprof::record {
namespace {

constexpr const char* kSchema = "llmprof.event_cost";
constexpr int kRounds = 15;
constexpr int kEvents = 1000;       // of one round: far below what the collector's buffers hold
constexpr int kPauseUs = 3000;      // lets the writer catch up, so that it does not share the core with the loop
constexpr int kLimitMs = 3000;      // then it is given up
constexpr double kMostNs = 100000;  // more is not a measurement

double now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// What one call of `work` takes, less what the loop takes: the lower quartile of the rounds, because other programs
// only ever add to it.
template <class Work>
double typical_ns(Work work) {
  std::array<double, kRounds> rounds{};
  for (double& round : rounds) {
    ::usleep(kPauseUs);
    for (int i = 0; i < 50; ++i) work();  // warm after the pause
    const double begin = now_ns();
    for (int i = 0; i < kEvents; ++i) {
      work();
      asm volatile("" ::: "memory");
    }
    const double middle = now_ns();
    for (int i = 0; i < kEvents; ++i) asm volatile("" ::: "memory");
    round = ((middle - begin) - (now_ns() - middle)) / kEvents;
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 4, rounds.end());
  return rounds[kRounds / 4];
}

// In the process of its own.
std::optional<EventCost> measure_here(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW);
  void* entry = handle != nullptr ? ::dlsym(handle, "llmprof_collector_v1") : nullptr;
  if (entry == nullptr) return std::nullopt;
  const llmprof_collector_table* table = reinterpret_cast<decltype(&llmprof_collector_v1)>(entry)();
  if (table == nullptr || table->size < sizeof(llmprof_collector_table)) return std::nullopt;
  EventCost cost;
  cost.range_ns = typical_ns([] {
                    llmprof_module_push("layers.0.mlp.up_proj");
                    asm volatile("" ::: "memory");
                    llmprof_pop();
                  }) /
                  2;
  wire::GemmRecord call{};
  call.m = call.n = call.k = 64;
  call.batch = 1;
  cost.gemm_ns = typical_ns([&] {
    table->gemm_begin(&call);
    table->gemm_end(&call);
  });
  table->end();
  return cost;
}

[[noreturn]] void child(const std::string& library, const std::string& folder, int out) {
  for (const std::string& name : window_variable_names()) ::unsetenv(name.c_str());
  ::setenv("LLMPROF_CAPTURE_DIR", folder.c_str(), 1);
  ::setenv("NVTX_INJECTION64_PATH", library.c_str(), 1);
  const std::optional<EventCost> cost = measure_here(library);
  const bool told = cost && ::write(out, &*cost, sizeof *cost) == sizeof *cost;
  ::_exit(told ? 0 : 1);
}

bool read_in_time(int in, EventCost& cost) {
  pollfd wait{in, POLLIN, 0};
  int ready = 0;
  do ready = ::poll(&wait, 1, kLimitMs);
  while (ready < 0 && errno == EINTR);
  return ready == 1 && ::read(in, &cost, sizeof cost) == sizeof cost;
}

bool plausible(double ns) { return std::isfinite(ns) && ns > 0 && ns < kMostNs; }

std::string cache_file(const hw::Device& cpu) {
  const std::string folder = base::cache_folder();
  return folder.empty() ? "" : fmt::format("{}/event-cost-{}.json", folder, hw::fingerprint(cpu));
}

}  // namespace

std::optional<EventCost> cached_event_cost(const hw::Device& cpu) {
  const std::string path = cache_file(cpu);
  if (path.empty()) return std::nullopt;
  const auto json = base::read_json(path);
  if (!json || !json->is_object() || json->value("schema", base::Json()) != kSchema ||
      json->value("llmprof_version", base::Json()) != base::version())
    return std::nullopt;
  const base::Json range = json->value("range_event_ns", base::Json());
  const base::Json gemm = json->value("gemm_event_ns", base::Json());
  if (!range.is_number() || !gemm.is_number()) return std::nullopt;
  const EventCost cost{range.get<double>(), gemm.get<double>()};
  if (!plausible(cost.range_ns) || !plausible(cost.gemm_ns)) return std::nullopt;
  return cost;
}

Result<void> store_event_cost(const hw::Device& cpu, const EventCost& cost) {
  const std::string path = cache_file(cpu);
  if (path.empty()) return Error{ErrorCode::kNotFound, "no folder for the cache", "set LLMPROF_CACHE_DIR"};
  LLMPROF_TRY(base::make_directories(base::cache_folder()));
  return base::write_file(path, base::to_text(base::Json{{"schema", kSchema},
                                                         {"llmprof_version", base::version()},
                                                         {"fingerprint", hw::fingerprint(cpu)},
                                                         {"range_event_ns", cost.range_ns},
                                                         {"gemm_event_ns", cost.gemm_ns}}));
}

Result<EventCost> measure_event_cost(const std::string& library_folder) {
  std::error_code ignored;
  std::string folder = (std::filesystem::temp_directory_path(ignored) / "llmprof-event-cost-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return base::errno_error(ErrorCode::kIo, folder, errno);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error(ErrorCode::kIo, "pipe", errno);
  const pid_t pid = ::fork();
  if (pid == 0) child(library_folder + "/libllmprof_inject.so", folder, ends[1]);
  ::close(ends[1]);
  EventCost cost;
  const bool told = pid > 0 && read_in_time(ends[0], cost);
  ::close(ends[0]);
  if (pid > 0) {
    if (!told) ::kill(pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  std::filesystem::remove_all(folder, ignored);
  if (!told || !plausible(cost.range_ns) || !plausible(cost.gemm_ns)) {
    return Error{ErrorCode::kUnsupported, "what recording an event costs could not be measured", ""};
  }
  return cost;
}

}  // namespace llmprof::record
