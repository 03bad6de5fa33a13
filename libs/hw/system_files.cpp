#include "hw/system_files.h"

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <string>

#include "base/file.h"

namespace llmprof::hw {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\"";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr std::int64_t kMaxCpu = 65536;
  std::vector<int> cpus;
  for (const std::string_view part : split(trim(text), ',')) {
    const auto bounds = split(part, '-');
    const auto first = to_number(bounds.front());
    const auto last = to_number(bounds.back());
    if (!first || !last || *first < 0) continue;
    for (std::int64_t cpu = *first; cpu <= std::min(*last, kMaxCpu); ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

SystemFiles::SystemFiles(std::string root) : root_(std::move(root)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

std::string SystemFiles::path(std::string_view relative) const { return root_ + "/" + std::string(relative); }

std::string SystemFiles::text(std::string_view relative) const {
  const Result<std::string> bytes = base::read_file(path(relative), 16u << 20);
  return bytes ? *bytes : "";
}

std::string SystemFiles::line(std::string_view relative) const {
  const std::string all = text(relative);
  return std::string(trim(std::string_view(all).substr(0, all.find('\n'))));
}

std::optional<std::int64_t> SystemFiles::number(std::string_view relative) const { return to_number(line(relative)); }

std::vector<std::string> SystemFiles::list(std::string_view relative) const {
  return base::list_directory(path(relative));
}

bool SystemFiles::exists(std::string_view relative) const { return ::access(path(relative).c_str(), F_OK) == 0; }

std::string SystemFiles::value(std::string_view relative, std::string_view key) const {
  const std::string all = text(relative);
  for (const std::string_view line : split(all, '\n')) {
    const std::size_t separator = line.find_first_of(":=");
    if (separator == std::string_view::npos || trim(line.substr(0, separator)) != key) continue;
    return std::string(trim(line.substr(separator + 1)));
  }
  return "";
}

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
