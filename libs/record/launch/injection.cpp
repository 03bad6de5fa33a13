#include "record/launch/injection.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/version.h"
#include "hw/peaks.h"
#include "llmprof/annotate.h"
#include "record/control/window_options.h"
#include "record/watch/device_watch.h"
#include "wire/clock.h"
#include "wire/collector_v1.h"

extern char** environ;

namespace llmprof::record {
namespace {

constexpr std::string_view kInjectLibrary = "libllmprof_inject.so";
constexpr std::string_view kBlasLibrary = "libllmprof_blas.so";
constexpr std::string_view kPythonHook = "python/hook";  // holds a sitecustomize.py

class Environment {
 public:
  explicit Environment(std::vector<std::string> lines) : lines_(std::move(lines)) {}

  std::string* find(std::string_view name) {
    const auto line = std::ranges::find_if(lines_, [&](const std::string& text) { return is_of(text, name); });
    return line == lines_.end() ? nullptr : &*line;
  }
  bool is_set(std::string_view name) {
    const std::string* line = find(name);
    return line != nullptr && line->size() > name.size() + 1;
  }
  void set(std::string_view name, std::string_view value) {
    const std::string text = fmt::format("{}={}", name, value);
    if (std::string* line = find(name)) {
      *line = text;
    } else {
      lines_.push_back(text);
    }
  }
  void remove(std::string_view name) {
    std::erase_if(lines_, [&](const std::string& line) { return is_of(line, name); });
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  static bool is_of(std::string_view line, std::string_view name) {
    return line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=';
  }

  std::vector<std::string> lines_;
};

// Ours goes last: a preload of the user (a memory allocator, a sanitizer) often must come first.
void append_preload(Environment& environment, const std::string& library, std::vector<std::string>& kept) {
  if (!environment.is_set("LD_PRELOAD")) return environment.set("LD_PRELOAD", library);
  std::string& line = *environment.find("LD_PRELOAD");
  kept.push_back(line);
  line += ":" + library;
}

void set_unless_set(Environment& environment, std::string_view name, const std::string& value,
                    std::vector<std::string>& kept) {
  if (environment.is_set(name)) {
    kept.push_back(*environment.find(name));
  } else {
    environment.set(name, value);
  }
}

// In front, because Python takes the first sitecustomize it finds; ours then looks for the next. An empty entry would
// mean the current folder.
void prepend_python_path(Environment& environment, const std::string& folder) {
  if (!environment.is_set("PYTHONPATH")) return environment.set("PYTHONPATH", folder);
  const std::string users = environment.find("PYTHONPATH")->substr(sizeof("PYTHONPATH"));
  environment.set("PYTHONPATH", fmt::format("{}:{}", folder, users));
}

void set_if_given(Environment& environment, std::string_view name, const std::optional<std::uint64_t>& value) {
  if (value) environment.set(name, std::to_string(*value));
}

Result<void> check_python_hook(const std::string& library_folder) {
  const std::string hook = fmt::format("{}/{}", library_folder, kPythonHook);
  if (!base::is_file(hook + "/sitecustomize.py")) {
    return Error{ErrorCode::kNotFound, hook + "/sitecustomize.py is missing",
                 "reinstall llmprof, or set LLMPROF_LIBDIR to its folder"};
  }
  if (library_folder.find(':') == std::string::npos) return {};
  return Error{ErrorCode::kUnsupported, library_folder + ": a folder with a colon cannot stand in PYTHONPATH",
               "move llmprof to another folder, or leave out --modules and --requests"};
}

}  // namespace

std::string library_folder() {
  const std::string override_folder = base::env_or("LLMPROF_LIBDIR", "");
  std::error_code ignored;
  if (!override_folder.empty()) return std::filesystem::absolute(override_folder, ignored).string();
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path().parent_path() / "lib" / "llmprof").string();
}

Result<void> check_libraries(const InjectionOptions& options) {
  for (const std::string_view library : {kInjectLibrary, kBlasLibrary}) {
    if (library == kBlasLibrary && !options.blas) continue;
    const std::string path = fmt::format("{}/{}", options.library_folder, library);
    if (!base::is_file(path)) {
      return Error{ErrorCode::kNotFound, path + " is missing",
                   "reinstall llmprof, or set LLMPROF_LIBDIR to its folder"};
    }
  }
  // LD_PRELOAD separates its entries by colons and blanks and knows no quoting.
  if (options.blas && options.library_folder.find_first_of(": \t\n") != std::string::npos) {
    return Error{ErrorCode::kUnsupported,
                 options.library_folder + ": a library folder with blanks or colons cannot be preloaded",
                 "move llmprof to another folder, or use --no-blas"};
  }
  return options.modules || options.requests ? check_python_hook(options.library_folder) : Result<void>{};
}

Result<std::uint64_t> parse_stacks(std::string_view text) {
  std::uint64_t stacks = 0;
  for (const std::string_view word : base::split(text, ',')) {
    if (word != "python" && word != "native")
      return Error{ErrorCode::kUsage, fmt::format("--stacks {}: not python, native or python,native", text), ""};
    stacks |= word == "python" ? 1 : 2;
  }
  return stacks;
}

std::optional<std::string> why_no_python_hook(const std::vector<std::string>& command) {
  if (command.empty()) return std::nullopt;
  const std::string_view program = std::string_view(command.front()).substr(command.front().rfind('/') + 1);
  if (!program.starts_with("python")) return std::nullopt;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string_view word = command[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return std::nullopt;
    for (const char letter : word.substr(1)) {
      if (letter == 'I' || letter == 'S' || letter == 'E') {
        return fmt::format("{} -{}: Python then does not load what --modules and --requests need", program, letter);
      }
      if (letter == 'c' || letter == 'm') return std::nullopt;  // what follows is the program's
      if (letter == 'W' || letter == 'X') {                     // has a value: the rest of the word, or the next one
        if (word.back() == letter) ++i;
        break;
      }
    }
  }
  return std::nullopt;
}

Injection child_environment(const std::vector<std::string>& environment, const InjectionOptions& options) {
  Injection injection;
  Environment child(environment);
  const std::string inject = fmt::format("{}/{}", options.library_folder, kInjectLibrary);
  if (options.blas) append_preload(child, fmt::format("{}/{}", options.library_folder, kBlasLibrary), injection.kept);
  if (options.nvtx) set_unless_set(child, "NVTX_INJECTION64_PATH", inject, injection.kept);
  const bool gpu = !options.collector.gpu || *options.collector.gpu != 0;
  if (gpu) set_unless_set(child, "CUDA_INJECTION64_PATH", inject, injection.kept);
  child.set(kCaptureVariable, options.capture_folder);
  child.set("LLMPROF_MAX_BYTES", std::to_string(options.max_bytes));
  for (const std::string& name : window_variable_names()) child.remove(name);
  for (const auto& [name, value] : options.window) child.set(name, value);
  set_if_given(child, "LLMPROF_GPU", options.collector.gpu);
  set_if_given(child, "LLMPROF_GRAPHS", options.collector.graphs);
  set_if_given(child, "LLMPROF_KERNELS", options.collector.kernels);
  set_if_given(child, "LLMPROF_STACKS", options.collector.stacks);
  for (const char* name : {"LLMPROF_REST_FROM_NS", "LLMPROF_REST_EVERY_MS", "LLMPROF_REST_MS"}) child.remove(name);
  if (options.rests.any()) {
    child.set("LLMPROF_REST_FROM_NS", std::to_string(options.rests.from_ns));
    child.set("LLMPROF_REST_EVERY_MS", std::to_string(options.rests.every_ns / 1'000'000));
    child.set("LLMPROF_REST_MS", std::to_string(options.rests.lasts_ns / 1'000'000));
  }
  child.remove("LLMPROF_COUNTERS");  // of an outer recording
  if (options.counters) child.set("LLMPROF_COUNTERS", "1");
  if (options.modules) child.set("LLMPROF_MODULES", "1");
  if (options.requests) child.set("LLMPROF_REQUESTS", "1");  // also for plugins of engines, in all their processes
  if (options.modules || options.requests)
    prepend_python_path(child, fmt::format("{}/{}", options.library_folder, kPythonHook));
  injection.environment = child.take();
  return injection;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) lines.emplace_back(*line);
  return lines;
}

namespace {

constexpr const char* kSchema = "llmprof.event_cost";
constexpr int kRounds = 15;
constexpr int kEvents = 1000;   // of one round: far below what the collector's buffers hold
constexpr int kPauseUs = 3000;  // lets the writer catch up, so that it does not share the core with the loop
constexpr auto kPatience = std::chrono::seconds(3);  // then it is given up
constexpr double kMostNs = 100000;                   // more is not a measurement

// What one call of `work` takes, less what the loop takes: the lower quartile of the rounds, because other programs
// only ever add to it.
template <class Work>
double typical_ns(Work work) {
  std::array<double, kRounds> rounds{};
  for (double& round : rounds) {
    ::usleep(kPauseUs);
    for (int i = 0; i < 50; ++i) work();  // warm after the pause
    const std::uint64_t begin = wire::now_ns();
    for (int i = 0; i < kEvents; ++i) {
      work();
      asm volatile("" ::: "memory");
    }
    const std::uint64_t middle = wire::now_ns();
    for (int i = 0; i < kEvents; ++i) asm volatile("" ::: "memory");
    const std::uint64_t end = wire::now_ns();
    round = (static_cast<double>(middle - begin) - static_cast<double>(end - middle)) / kEvents;
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 4, rounds.end());
  return rounds[kRounds / 4];
}

// In the process of its own.
std::optional<EventCost> measure_here(const std::string& library, const std::string& folder) {
  for (const std::string& name : window_variable_names()) ::unsetenv(name.c_str());
  ::setenv(kCaptureVariable, folder.c_str(), 1);
  ::setenv("NVTX_INJECTION64_PATH", library.c_str(), 1);
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
  const auto child = WatchChild::start([&](WatchSender& sender, int) {
    const auto cost = measure_here(fmt::format("{}/{}", library_folder, kInjectLibrary), folder);
    if (cost) sender.add({{}, "", {cost->range_ns, cost->gemm_ns}});
  });
  std::vector<WatchEvent> told;
  if (child && (*child)->stop(kPatience)) told = (*child)->receive();
  std::filesystem::remove_all(folder, ignored);
  if (told.empty() || !plausible(told[0].values[0]) || !plausible(told[0].values[1]))
    return Error{ErrorCode::kUnsupported, "what recording an event costs could not be measured", ""};
  return EventCost{told[0].values[0], told[0].values[1]};
}

}  // namespace llmprof::record
