#include "hw/counters/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "hw/doctor_checks.h"

namespace llmprof::hw::counters {
namespace {

// As /proc/PID/comm has them: cut at 15 characters.
constexpr std::string_view kHolders[] = {"nv-hostengine", "dcgm-exporter", "dcgmi",         "ncu",
                                         "ncu-ui.bin",    "nsys",          "nsys-launcher", "QuadDDaemon"};

}  // namespace

std::string restriction(const SystemFiles& files) {
  const std::string setting = files.value("proc/driver/nvidia/params", "RmProfilingAdminOnly");
  const char* who = is_privileged(files) ? "this process is privileged" : "this process is not privileged";
  if (setting.empty()) return fmt::format("/proc/driver/nvidia/params cannot be read here; {}", who);
  return fmt::format("RmProfilingAdminOnly: {} in /proc/driver/nvidia/params; {}", setting, who);
}

std::string likely_holders(const SystemFiles& files) {
  std::string found;
  for (const std::string& entry : files.list("proc")) {
    if (!to_number(entry)) continue;
    const std::string name = files.line("proc/" + entry + "/comm");
    if (std::ranges::find(kHolders, name) == std::end(kHolders)) continue;
    found += fmt::format("{}{} (pid {})", found.empty() ? "" : ", ", name, entry);
  }
  return found;
}

}  // namespace llmprof::hw::counters
