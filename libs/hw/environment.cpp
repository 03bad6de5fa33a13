#include "hw/environment.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <array>

#include "base/json.h"
#include "base/version.h"
#include "hw/cpu/cpu.h"
#include "hw/redact.h"
#include "hw/system_files.h"

namespace llmprof::hw {
namespace {

using base::Json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json or_null(std::int64_t count) { return count > 0 ? Json(count) : Json(); }

Json cpu_json(const Cpu& cpu) {
  Json json{{"name", cpu.name}, {"isa", or_null(cpu.isa)}};
  json["sockets"] = or_null(cpu.sockets);
  json["cores"] = or_null(cpu.cores);
  json["cpus"] = cpu.online.size();
  json["threads_per_core"] = or_null(cpu.threads_per_core);
  json["usable_cpus"] = cpu.usable_cpus();
  json["affinity_cpus"] = cpu.allowed.size();
  json["quota_cpus"] = or_null(cpu.quota_cpus);
  json["max_mhz"] = or_null(cpu.max_mhz);
  json["now_mhz"] = or_null(cpu.now_mhz);
  json["governor"] = or_null(cpu.governor);
  json["caches"] = Json::array();
  for (const CpuCache& cache : cpu.caches) {
    json["caches"].push_back(
        {{"level", cache.level}, {"type", cache.type}, {"bytes", cache.bytes}, {"instances", cache.instances}});
  }
  return json;
}

Json turbo_json(const SystemFiles& files) {
  if (const auto off = files.number("sys/devices/system/cpu/intel_pstate/no_turbo")) return *off == 0;
  if (const auto on = files.number("sys/devices/system/cpu/cpufreq/boost")) return *on != 0;
  return {};
}

Json memory_json(const SystemFiles& files, const Cpu& cpu) {
  Json json{{"bytes", cpu.memory_bytes}, {"limit_bytes", or_null(cpu.memory_limit_bytes)}};
  const std::string available = files.value("proc/meminfo", "MemAvailable");
  const auto kib = to_number(split(available, ' ').front());
  json["available_bytes"] = kib ? Json(*kib * 1024) : Json();
  // "always [madvise] never"
  const std::string pages = files.line("sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = pages.find('['), close = pages.find(']');
  json["huge_pages"] =
      open < close && close != std::string::npos ? Json(pages.substr(open + 1, close - open - 1)) : Json();
  int nodes = 0;
  for (const std::string& name : files.list("sys/devices/system/node")) {
    if (name.starts_with("node") && to_number(name.substr(4))) ++nodes;
  }
  json["numa_nodes"] = or_null(nodes);
  return json;
}

// Hints, in the order of trust; "" when nothing says so.
std::string container_of(const SystemFiles& files) {
  if (files.exists("run/.containerenv")) return "podman";
  if (files.exists(".dockerenv")) return "docker";
  const std::string groups = files.text("proc/1/cgroup");
  for (const char* name : {"kubepods", "docker", "libpod", "lxc", "containerd"}) {
    if (groups.find(name) != std::string::npos) return name;
  }
  return "";
}

std::string hypervisor_of(const SystemFiles& files) {
  const std::string type = files.line("sys/hypervisor/type");
  if (!type.empty()) return type;
  const std::string maker = files.line("sys/class/dmi/id/sys_vendor"),
                    product = files.line("sys/class/dmi/id/product_name");
  for (const char* name :
       {"QEMU", "KVM", "VMware", "VirtualBox", "Google Compute Engine", "Amazon EC2", "Virtual Machine"}) {
    if (maker.find(name) != std::string::npos || product.find(name) != std::string::npos) return name;
  }
  const std::string flags = " " + files.value("proc/cpuinfo", "flags") + " ";
  return flags.find(" hypervisor ") != std::string::npos ? "unknown kind" : "";
}

Json system_json(const SystemFiles& files) {
  Json json;
  json["kernel"] = or_null(files.line("proc/sys/kernel/osrelease"));
  json["distribution"] = or_null(files.value("etc/os-release", "PRETTY_NAME"));
  struct utsname name {};
  json["architecture"] = ::uname(&name) == 0 ? Json(name.machine) : Json();
  json["container"] = or_null(container_of(files));
  json["hypervisor"] = or_null(hypervisor_of(files));
  json["clock_source"] = or_null(files.line("sys/devices/system/clocksource/clocksource0/current_clocksource"));
  return json;
}

Json gpus_json() {
  Json rows = Json::array();
  for (const Device& gpu : probe_gpus()) {
    rows.push_back({{"name", gpu.name},
                    {"chip", or_null(gpu.chip)},
                    {"units", or_null(gpu.units)},
                    {"memory_bytes", gpu.memory_bytes},
                    {"clock_mhz", or_null(gpu.clock_mhz)},
                    {"driver", gpu.driver}});
  }
  return rows;
}

Json versions_json(const SystemFiles& files) {
  Json json{{"llmprof", base::version()}, {"build", base::build_description()}, {"glibc", ::gnu_get_libc_version()}};
  json["fmt"] = fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  json["nlohmann_json"] =
      fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  …"
  json["nvidia_driver"] = or_null(files.value("proc/driver/nvidia/version", "NVRM version"));
  return json;
}

constexpr std::array<std::string_view, 22> kPrefixes{
    "OMP_",    "GOMP_",   "KMP_",   "OPENBLAS_",     "GOTO_",   "MKL_",    "BLIS_",    "VECLIB_",
    "CUDA_",   "CUBLAS_", "CUDNN_", "NCCL_",         "NVTX_",   "TORCH_",  "PYTORCH_", "VLLM_",
    "SGLANG_", "TRTLLM_", "HF_",    "TRANSFORMERS_", "MALLOC_", "LLMPROF_"};
constexpr std::array<std::string_view, 12> kNames{"LD_PRELOAD",
                                                  "LD_LIBRARY_PATH",
                                                  "LD_AUDIT",
                                                  "GLIBC_TUNABLES",
                                                  "TOKENIZERS_PARALLELISM",
                                                  "NVIDIA_VISIBLE_DEVICES",
                                                  "RANK",
                                                  "LOCAL_RANK",
                                                  "WORLD_SIZE",
                                                  "PYTHONUNBUFFERED",
                                                  "PYTHONPERFSUPPORT",
                                                  "VIRTUAL_ENV"};

bool is_relevant(std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  for (const std::string_view exact : kNames) {
    if (name == exact) return true;
  }
  return false;
}

// "/home/anna/x" -> "~/x": a run is passed on, a user's name need not be.
std::string without_home(std::string value, std::string_view home) {
  if (home.size() < 2) return value;
  for (std::size_t at = value.find(home); at != std::string::npos; at = value.find(home, at + 1))
    value.replace(at, home.size(), "~");
  return value;
}

Json variables_json(const SystemFiles& files) {
  const std::string text = files.text("proc/self/environ");
  std::string_view home;
  for (const std::string_view entry : split(text, '\0')) {
    if (entry.starts_with("HOME=")) home = entry.substr(5);
  }
  Json json = Json::object();
  for (const std::string_view entry : split(text, '\0')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !is_relevant(entry.substr(0, equals))) continue;
    const std::string_view name = entry.substr(0, equals);
    json[std::string(name)] = without_home(redact_variable(name, entry.substr(equals + 1)), home);
  }
  return json;
}

}  // namespace

Json environment_card(const std::string& root) {
  const SystemFiles files(root);
  const Cpu cpu = read_cpu(files);
  Json card;
  card["cpu"] = cpu_json(cpu);
  card["cpu"]["turbo"] = turbo_json(files);
  card["memory"] = memory_json(files, cpu);
  card["system"] = system_json(files);
  card["gpus"] = root == "/" ? gpus_json() : Json::array();
  card["versions"] = versions_json(files);
  card["variables"] = variables_json(files);
  return card;
}

}  // namespace llmprof::hw
