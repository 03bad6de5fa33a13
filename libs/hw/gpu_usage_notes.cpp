// From what NVML says of a GPU to the sentences a reader of measurements needs.

#include <fmt/format.h>

#include <algorithm>

#include "hw/gpu_usage.h"

namespace llmprof::hw {
namespace {

// What a driver and the context of one program take on the largest GPUs: less says nothing about others.
constexpr std::int64_t kOwnBytes = std::int64_t{2} << 30;
// Opening a context shows as a few percent.
constexpr double kIdleShare = 0.10;
constexpr std::size_t kNamed = 3;  // processes that a note names

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string in_words(const GpuProcess& process) {
  std::string text = fmt::format("pid {}", process.pid);
  if (!process.name.empty()) text += " " + process.name;
  if (process.memory_bytes) text += fmt::format(", {:.1f} GiB", gib(*process.memory_bytes));
  return text;
}

// Without this process. Where its pid is not among them (a container), one of them is it if it holds a context.
std::vector<GpuProcess> others_of(std::vector<GpuProcess> processes, std::int64_t own_pid, bool we_hold_context) {
  const std::size_t all = processes.size();
  std::erase_if(processes, [own_pid](const GpuProcess& process) { return process.pid == own_pid; });
  if (processes.size() < all || !we_hold_context || processes.empty()) return processes;
  // Ours is one that /proc does not know, if any.
  const auto unnamed =
      std::find_if(processes.begin(), processes.end(), [](const GpuProcess& p) { return p.name.empty(); });
  if (unnamed != processes.end()) processes.erase(unnamed);
  return processes;
}

std::string others_note(const std::vector<GpuProcess>& others, const GpuUsage& usage) {
  std::string names;
  for (std::size_t i = 0; i < std::min(others.size(), kNamed); ++i) {
    names += (i == 0 ? "" : "; ") + in_words(others[i]);
  }
  if (others.size() > kNamed) names += fmt::format("; {} more", others.size() - kNamed);
  std::string note = others.size() == 1 ? "another program has this GPU open (" : "other programs have this GPU open (";
  note += names + ")";
  if (usage.busy_share) note += fmt::format("; a kernel ran {:.0f} % of the last moments", *usage.busy_share * 100);
  return note;
}

}  // namespace

std::vector<std::string> busy_notes(const GpuUsage& usage, std::int64_t own_pid, bool we_hold_context) {
  std::vector<std::string> notes;
  std::vector<GpuProcess> others;
  if (usage.processes) others = others_of(*usage.processes, own_pid, we_hold_context);
  // Where NVML lists this process by its pid and nobody else, load and memory are its own.
  const bool all_seen = usage.processes && std::any_of(usage.processes->begin(), usage.processes->end(),
                                                       [own_pid](const GpuProcess& p) { return p.pid == own_pid; });
  if (!others.empty()) {
    notes.push_back(others_note(others, usage));
  } else if (!all_seen) {
    if (usage.busy_share.value_or(0) > kIdleShare) {
      notes.push_back(fmt::format("this GPU was busy {:.0f} % of the last moments, with work not visible from here",
                                  *usage.busy_share * 100));
    }
    if (usage.memory_used_bytes.value_or(0) > kOwnBytes) {
      notes.push_back(
          fmt::format("{:.1f} of {:.1f} GiB of this GPU's memory were taken already, by programs not visible "
                      "from here",
                      gib(*usage.memory_used_bytes), gib(usage.memory_total_bytes.value_or(0))));
    }
  }
  for (const std::string& limit : usage.clock_limits) {
    notes.push_back("this GPU's clock is limited: " + limit +
                    (usage.sm_clock_mhz ? fmt::format(" ({:.0f} MHz now)", *usage.sm_clock_mhz) : ""));
  }
  return notes;
}

}  // namespace llmprof::hw
