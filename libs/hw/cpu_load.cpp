#include "hw/cpu_load.h"

#include <cstdint>
#include <thread>

namespace llmprof::hw {
namespace {

struct CpuTimes {
  std::int64_t all = 0, idle = 0;
};

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are already part of user and nice.
std::optional<CpuTimes> parse(std::string_view stat) {
  constexpr std::size_t kIdleField = 3, kWaitField = 4, kFields = 8;
  const std::string_view line = stat.substr(0, stat.find('\n'));
  if (!line.starts_with("cpu ")) return std::nullopt;
  CpuTimes times;
  std::size_t field = 0;
  for (const std::string_view word : split(line.substr(4), ' ')) {
    if (word.empty() || field == kFields) continue;
    const std::optional<std::int64_t> ticks = to_number(word);
    if (!ticks) return std::nullopt;
    times.all += *ticks;
    if (field == kIdleField || field == kWaitField) times.idle += *ticks;
    ++field;
  }
  return field >= kWaitField ? std::optional(times) : std::nullopt;
}

}  // namespace

std::optional<double> busy_share(std::string_view stat_before, std::string_view stat_after) {
  const std::optional<CpuTimes> before = parse(stat_before), after = parse(stat_after);
  if (!before || !after || after->all <= before->all) return std::nullopt;
  return 1 - static_cast<double>(after->idle - before->idle) / static_cast<double>(after->all - before->all);
}

std::optional<double> busy_share(const SystemFiles& files, std::chrono::milliseconds time) {
  const std::string before = files.text("proc/stat");
  std::this_thread::sleep_for(time);
  return busy_share(before, files.text("proc/stat"));
}

}  // namespace llmprof::hw
