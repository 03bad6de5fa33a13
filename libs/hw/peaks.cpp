#include "hw/peaks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "hw/cpu_load.h"
#include "hw/cpu_peaks.h"
#include "hw/system_files.h"

namespace llmprof::hw {
namespace {

// About 2 s in all when the machine is idle, 3 s when it is not: the best of many short rounds, each part within its
// time.
constexpr auto kComputeTime = std::chrono::milliseconds(260);  // per instruction set
constexpr auto kStreamTime = std::chrono::milliseconds(400);   // each of two
constexpr double kExpectedSeconds = 2;

}  // namespace

Result<std::vector<Peak>> measure_cpu_peaks(const Device& device, const base::Progress& progress) {
  const CpuTeam team(device.units);
  const auto begin = PeakClock::now();
  const GoOn go_on = [&] {
    const double seconds = std::chrono::duration<double>(PeakClock::now() - begin).count();
    return progress({"measuring peaks", std::min(seconds, kExpectedSeconds), kExpectedSeconds, "s"});
  };
  LLMPROF_LET(Peak float32, measure_multiply_add(team, "float32", kComputeTime, go_on));
  LLMPROF_LET(Peak float64, measure_multiply_add(team, "float64", kComputeTime, go_on));
  const StreamLevel memory = stream_levels({}, device, team.size()).back();
  const PeakBuffer buffer(memory.bytes_per_thread * static_cast<std::size_t>(team.size()));
  if (buffer.data() == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("no {} of memory for the bandwidth measurement",
                             base::human_bytes(static_cast<double>(buffer.bytes()))),
                 ""};
  }
  LLMPROF_TRY(touch(team, buffer));
  LLMPROF_LET(Peak read, measure_stream(team, Stream::kRead, memory, buffer, kStreamTime, go_on));
  LLMPROF_LET(Peak triad, measure_stream(team, Stream::kTriad, memory, buffer, kStreamTime, go_on));
  return std::vector<Peak>{std::move(float32), std::move(float64), std::move(read), std::move(triad)};
}

bool cpu_peaks_are_good(const std::vector<Peak>& peaks) {
  for (const std::string_view stream : {"read", "triad"}) {
    if (find_peak(peaks, "bandwidth", stream) == nullptr) return false;
  }
  if (!measured_while_busy(peaks)) return true;
  const std::optional<double> busy = busy_share(SystemFiles(), std::chrono::milliseconds(100));
  return !busy || *busy > kIdle;
}

}  // namespace llmprof::hw
