#include "hw/doctor.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "base/file.h"
#include "base/human.h"
#include "hw/device.h"
#include "hw/in_child.h"
#include "hw/gpu/nvml.h"
#include "hw/peaks.h"
#include "hw/redact.h"
#include "hw/system_files.h"
#include "wire/clock.h"

namespace llmprof::hw {

namespace {

constexpr const char* kReinstall = "reinstall llmprof, or set LLMPROF_LIBDIR to the folder of its libraries";

std::string duckdb_version(void* handle) {
  const auto get = reinterpret_cast<const char* (*)()>(::dlsym(handle, "duckdb_library_version"));
  return get != nullptr ? get() : "version unknown";
}

Finding check_library(const std::string& check, const std::string& path, std::string (*ask)(void*)) {
  if (!base::is_file(path)) return {check, Status::kFail, path + " is missing", kReinstall};
  const LibraryProbe probe = probe_library(path, ask);
  if (!probe.loaded) return {check, Status::kFail, probe.detail, kReinstall};
  return {check, Status::kOk, probe.detail.empty() ? "loads" : probe.detail, ""};
}

Finding check_injection_variables(const SystemFiles& files) {
  std::string found;
  const auto add = [&](const std::string& text) { found += (found.empty() ? "" : ", ") + text; };
  for (const char* name : {"LD_PRELOAD", "LD_AUDIT", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    const std::string value = variable(files, name);
    if (!value.empty()) add(fmt::format("{}={}", name, redact_text(value)));
  }
  if (const std::string line = files.line("etc/ld.so.preload"); !line.empty()) add("/etc/ld.so.preload: " + line);
  if (found.empty()) return {"other injections", Status::kOk, "none", ""};
  return {"other injections", Status::kWarn, found,
          "kept and reported by record; unset them if the program then misbehaves"};
}

Finding check_secure_execution() {
  if (::getauxval(AT_SECURE) == 0) {
    return {"secure execution", Status::kOk, "off; setuid programs still run without injection", ""};
  }
  return {"secure execution", Status::kWarn, "llmprof itself runs with raised privileges",
          "remove its setuid bit or file capabilities"};
}

Finding check_peaks(const SystemFiles& files) {
  const std::vector<Peak> peaks = cached_peaks(probe_cpu(files.path("")));
  if (peaks.empty())
    return {"cpu peaks", Status::kAbsent, "not measured yet", "record measures them once, or: llmprof roofline"};
  std::string found;
  for (const Peak& peak : peaks) {
    if (!principal(peak)) continue;
    found +=
        fmt::format("{}{} {}", found.empty() ? "" : ", ", peak.type, base::human_rate(peak.value, peak.unit.c_str()));
  }
  if (!measured_while_busy(peaks)) return {"cpu peaks", Status::kOk, found, ""};
  return {"cpu peaks", Status::kWarn, found + "; measured on a busy machine",
          "the next record on an idle machine measures again, or: llmprof roofline"};
}

constexpr const char* kNoGpuNeeded = "nothing to do for a CPU; for an NVIDIA GPU install its driver";

std::string cupti_version(void* handle) {
  const auto get = reinterpret_cast<int (*)(std::uint32_t*)>(::dlsym(handle, "cuptiGetVersion"));
  std::uint32_t version = 0;
  return get != nullptr && get(&version) == 0 ? fmt::format("API version {}", version) : "version unknown";
}

// What sampling CPU stacks from outside needs: tried, not guessed, because sandboxes forbid it in many ways.

// 0, or the errno of perf_event_open with what the recorder asks for.
int try_perf_events(bool with_kernel) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = 10'000'000;
  attr.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attr.sample_regs_user = 0xff01ff;
  attr.sample_stack_user = 8192;
  attr.disabled = attr.inherit = attr.exclude_hv = attr.use_clockid = 1;
  attr.exclude_kernel = with_kernel ? 0 : 1;
  attr.clockid = CLOCK_MONOTONIC_RAW;
  const long descriptor = ::syscall(SYS_perf_event_open, &attr, ::getpid(), 0, -1, PERF_FLAG_FD_CLOEXEC);
  if (descriptor < 0) return errno;
  ::close(static_cast<int>(descriptor));
  return 0;
}

// 0, or the errno of reading a word of a child.
int try_child_memory() {
  static const std::uint64_t wanted = 0x6c6c6d70726f66;
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    for (;;) ::pause();
  }
  std::uint64_t read = 0;
  iovec here{&read, sizeof read}, there{const_cast<std::uint64_t*>(&wanted), sizeof wanted};
  const bool good = ::process_vm_readv(child, &here, 1, &there, 1, 0) == sizeof read && read == wanted;
  const int error = good ? 0 : errno;
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return error;
}

double clock_read_ns() {
  constexpr int kReads = 2000, kRounds = 20;
  const auto now = [] { return static_cast<double>(wire::now_ns()); };
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now();
    for (int read = 0; read < kReads; ++read) now();
    best = std::min(best, (now() - begin) / kReads);
  }
  return best;
}

void add_packages(const std::string& library_folder, std::vector<std::string>& paths) {
  for (const std::string& python : SystemFiles(library_folder).list("")) {
    if (!python.starts_with("python")) continue;
    for (const char* packages : {"/site-packages/nvidia/", "/dist-packages/nvidia/"}) {
      const std::string folder = library_folder + "/" + python + packages;
      paths.push_back(folder + "cu13/lib/libcupti.so.13");
      paths.push_back(folder + "cuda_cupti/lib/libcupti.so.12");
    }
  }
}

}  // namespace

std::string_view name_of(Status status) {
  constexpr std::string_view kNames[] = {"ok", "warn", "fail", "absent"};
  return kNames[static_cast<std::size_t>(status)];
}

std::vector<Finding> examine(const DoctorInput& input) {
  const SystemFiles files(input.root);
  return {
      check_library("collector", input.library_folder + "/libllmprof_inject.so", nullptr),
      check_library("blas hook", input.library_folder + "/libllmprof_blas.so", nullptr),
      check_library("duckdb", input.library_folder + "/libduckdb.so", duckdb_version),
      check_folder(input.folder),
      check_disk(input.folder),
      check_injection_variables(files),
      check_secure_execution(),
      check_clock(files),
      check_peaks(files),
      check_driver(files),
      check_nvml(),
      check_cupti(files),
      check_counters(files),
      check_perf_events(files),
      check_cpu_stacks(),
      check_python_frames(),
  };
}

bool can_record(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.status == Status::kFail; });
}

Finding check_driver(const SystemFiles& files) {
  const std::string version = files.value("proc/driver/nvidia/version", "NVRM version");
  if (version.empty()) return {"gpu driver", Status::kAbsent, "no NVIDIA driver", kNoGpuNeeded};
  if (!files.exists("dev/nvidiactl")) {
    return {"gpu driver", Status::kWarn, version + ", but no /dev/nvidiactl",
            "start the container with its GPUs (docker run --gpus all)"};
  }
  return {"gpu driver", Status::kOk, version, ""};
}

Finding check_nvml() {
  const Result<NvmlApi> nvml = load_nvml();
  if (!nvml) return {"nvml", Status::kAbsent, "libnvidia-ml.so.1 not found", kNoGpuNeeded};
  if (const int code = nvml->init(); code != kNvmlSuccess) {
    return {"nvml", Status::kWarn, nvml->error_text(code, "error"),
            "check that the driver is loaded and matches its libraries (nvidia-smi says more)"};
  }
  (void)succeeds(nvml->shutdown);
  const std::vector<Device> gpus = probe_gpus();
  std::string found = fmt::format("{} GPU{}", gpus.size(), gpus.size() == 1 ? "" : "s");
  for (const Device& gpu : gpus) found += (&gpu == &gpus.front() ? ": " : ", ") + gpu.name;
  return {"nvml", Status::kOk, found, ""};
}

Finding check_cupti(const SystemFiles& files) {
  for (const std::string& path : cupti_paths(files)) {
    const bool by_name = path.find('/') == std::string::npos;
    if (!by_name && !SystemFiles("/").exists(path)) continue;
    const LibraryProbe probe = probe_library(path, cupti_version);
    if (probe.loaded) return {"cupti", Status::kOk, fmt::format("{}, {}", path, probe.detail), ""};
  }
  return {"cupti", Status::kAbsent, "libcupti.so.13 and libcupti.so.12 not found",
          "nothing to do for a CPU; for GPU kernels install the CUDA toolkit, or pip install nvidia-cuda-cupti"};
}

Finding check_counters(const SystemFiles& files) {
  const std::string admin_only = files.value("proc/driver/nvidia/params", "RmProfilingAdminOnly");
  if (admin_only.empty()) return {"gpu counters", Status::kAbsent, "no NVIDIA driver", kNoGpuNeeded};
  if (admin_only == "0") return {"gpu counters", Status::kOk, "open to all users", ""};
  if (is_privileged(files))
    return {"gpu counters", Status::kOk, "for administrators only, and this process is one", ""};
  return {
      "gpu counters", Status::kWarn, "for administrators only (RmProfilingAdminOnly = 1)",
      "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run as root (container: --cap-add SYS_ADMIN)"};
}

Finding check_cpu_stacks() {
#if !defined(__x86_64__)
  return {"cpu stacks", Status::kAbsent, "sampled on x86-64 only", "nothing to do: recording does not need them"};
#endif
  if (try_perf_events(true) == 0) return {"cpu stacks", Status::kOk, "perf_event_open works", ""};
  const int error = try_perf_events(false);
  if (error == 0) return {"cpu stacks", Status::kOk, "perf_event_open works; time in system calls is not sampled", ""};
  return {"cpu stacks", Status::kWarn, fmt::format("perf_event_open: {}", std::strerror(error)),
          error == ENOSYS ? "none in this kernel or sandbox; there will be no function table"
                          : "sudo sysctl kernel.perf_event_paranoid=2; in a container --cap-add PERFMON, or a seccomp "
                            "profile that permits perf_event_open. Without it there is no function table"};
}

Finding check_python_frames() {
  const int error = try_child_memory();
  if (error == 0) return {"python frames", Status::kOk, "memory of children can be read (process_vm_readv)", ""};
  return {"python frames", Status::kWarn, fmt::format("process_vm_readv: {}", std::strerror(error)),
          "in a container: --cap-add SYS_PTRACE, or a seccomp profile that permits process_vm_readv; else sudo sysctl "
          "kernel.yama.ptrace_scope=1. Without it Python functions are not shown"};
}

std::string variable(const SystemFiles& files, std::string_view name) {
  const std::string text = files.text("proc/self/environ");
  for (const std::string_view entry : split(text, '\0')) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
  }
  return "";
}

bool is_privileged(const SystemFiles& files) {
  constexpr int kCapSysAdmin = 21, kCapPerfmon = 38;
  const std::string text = files.value("proc/self/status", "CapEff");
  std::uint64_t mask = 0;
  std::from_chars(text.data(), text.data() + text.size(), mask, 16);
  return (mask >> kCapSysAdmin & 1) != 0 || (mask >> kCapPerfmon & 1) != 0;
}

Finding check_perf_events(const SystemFiles& files) {
  const auto level = files.number("proc/sys/kernel/perf_event_paranoid");
  if (!level)
    return {"perf events", Status::kAbsent, "this kernel has none", "nothing to do: recording does not need them"};
  if (is_privileged(files))
    return {"perf events", Status::kOk, fmt::format("perf_event_paranoid = {}, privileged", *level), ""};
  if (*level <= 2) return {"perf events", Status::kOk, fmt::format("perf_event_paranoid = {}", *level), ""};
  return {"perf events", Status::kWarn, fmt::format("perf_event_paranoid = {}: not for this user", *level),
          "sudo sysctl kernel.perf_event_paranoid=2 (recording works without; CPU stacks need it)"};
}

Finding check_clock(const SystemFiles& files) {
  const std::string source = files.line("sys/devices/system/clocksource/clocksource0/current_clocksource");
  const double cost_ns = clock_read_ns();
  const std::string found =
      fmt::format("CLOCK_MONOTONIC_RAW read in {:.0f} ns, source {}", cost_ns, source.empty() ? "unknown" : source);
  constexpr double kSystemCallNs = 150;  // above it the read is a system call: two of them per event
  if (cost_ns <= kSystemCallNs) return {"clock", Status::kOk, found, ""};
  return {"clock", Status::kWarn, found,
          "use the tsc clock source (kernel parameter clocksource=tsc); events cost more until then"};
}

Finding check_folder(const std::string& folder) {
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {"folder", Status::kOk, "writable", ""};
  return {"folder", Status::kFail, fmt::format("{}: {}", folder, std::strerror(errno)),
          "change to a writable folder, or name one with record -o"};
}

Finding check_disk(const std::string& folder) {
  constexpr double kTooLittle = 64e6, kLittle = 1e9;
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) {
    return {"disk", Status::kWarn, fmt::format("{}: {}", folder, std::strerror(errno)), "check the file system"};
  }
  const double free_bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  const std::string found = base::human_bytes(free_bytes) + " free";
  if (free_bytes >= kLittle) return {"disk", Status::kOk, found, ""};
  return {"disk", free_bytes < kTooLittle ? Status::kFail : Status::kWarn, found,
          "free space, or record to another folder with -o"};
}

// Beside the loader's: the toolkit's folders and the Python package's.
std::vector<std::string> cupti_paths(const SystemFiles& files) {
  if (const std::string wanted = variable(files, "LLMPROF_CUPTI"); !wanted.empty()) return {wanted};
  std::vector<std::string> paths{"libcupti.so.13", "libcupti.so.12"};
  std::vector<std::string> roots{variable(files, "CUDA_HOME"), variable(files, "CUDA_PATH"),
                                 files.path("usr/local/cuda")};
  for (const std::string& name : files.list("usr/local")) {
    if (name.starts_with("cuda-")) roots.push_back(files.path("usr/local/" + name));
  }
  for (const std::string& root : roots) {
    if (root.empty()) continue;
    for (const char* folder : {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"}) {
      for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) paths.push_back(root + folder + name);
    }
  }
  std::vector<std::string> prefixes{variable(files, "VIRTUAL_ENV"), variable(files, "CONDA_PREFIX"),
                                    files.path("usr/local"), files.path("opt/conda")};
  for (const std::string& prefix : prefixes) {
    if (!prefix.empty()) add_packages(prefix + "/lib", paths);
  }
  return paths;
}

}  // namespace llmprof::hw
