#include <fmt/format.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/human.h"
#include "hw/doctor_checks.h"

namespace llmprof::hw {
namespace {

double clock_read_ns() {
  constexpr int kReads = 2000, kRounds = 20;
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = now();
    for (int read = 0; read < kReads; ++read) now();
    best = std::min(best, (now() - begin) / kReads);
  }
  return best;
}

}  // namespace

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

}  // namespace llmprof::hw
