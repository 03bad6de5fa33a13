#include "hw/cgroup.h"

#include <algorithm>
#include <string>

namespace llmprof::hw {
namespace {

// "sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup". In a container the path may be the host's and lead nowhere;
// the mount's own root still holds the container's limits.
std::vector<std::string> with_ancestors(const std::string& mount, std::string_view group) {
  std::vector<std::string> folders;
  std::string path(group.starts_with('/') ? group : "");
  while (path.size() > 1) {
    folders.push_back(mount + path);
    path.erase(path.find_last_of('/'));
  }
  folders.push_back(mount);
  return folders;
}

template <class T>
void tighten(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void read_cpu(const SystemFiles& files, const std::string& folder, CgroupLimits& limits) {
  const std::string line = files.line(folder + "/cpu.max");  // version 2: "quota period", quota may be "max"
  const auto parts = split(line, ' ');
  auto quota = to_number(parts.front());
  auto period = parts.size() == 2 ? to_number(parts.back()) : std::nullopt;
  if (!quota) {
    quota = files.number(folder + "/cpu.cfs_quota_us");  // version 1: -1 is unlimited
    period = files.number(folder + "/cpu.cfs_period_us");
  }
  if (quota && period && *quota > 0 && *period > 0) {
    tighten(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
  }
}

void read_memory(const SystemFiles& files, const std::string& folder, CgroupLimits& limits) {
  for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
    const auto bytes = files.number(folder + name);
    if (bytes && *bytes > 0) tighten(limits.memory_bytes, *bytes);
  }
}

bool has_controller(std::string_view controllers, std::string_view name) {
  const auto names = split(controllers, ',');
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

CgroupLimits cgroup_limits(const SystemFiles& files) {
  CgroupLimits limits;
  const std::string text = files.text("proc/self/cgroup");
  for (const std::string_view line : split(text, '\n')) {  // "4:memory:/path", version 2: "0::/path"
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const std::string_view group = trim(parts[2]);
    const bool unified = parts[1].empty();
    if (unified) {
      for (const std::string& folder : with_ancestors("sys/fs/cgroup", group)) {
        read_cpu(files, folder, limits);
        read_memory(files, folder, limits);
      }
    }
    if (has_controller(parts[1], "cpu")) {
      const std::string mount = "sys/fs/cgroup/" + std::string(files.exists("sys/fs/cgroup/cpu") ? "cpu" : parts[1]);
      for (const std::string& folder : with_ancestors(mount, group)) read_cpu(files, folder, limits);
    }
    if (has_controller(parts[1], "memory")) {
      for (const std::string& folder : with_ancestors("sys/fs/cgroup/memory", group))
        read_memory(files, folder, limits);
    }
  }
  return limits;
}

}  // namespace llmprof::hw
