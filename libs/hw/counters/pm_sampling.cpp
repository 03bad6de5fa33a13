#include "hw/counters/pm_sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "hw/doctor.h"

namespace llmprof::hw::counters {
namespace {

// As /proc/PID/comm has them: cut at 15 characters.
constexpr std::string_view kHolders[] = {"nv-hostengine", "dcgm-exporter", "dcgmi",         "ncu",
                                         "ncu-ui.bin",    "nsys",          "nsys-launcher", "QuadDDaemon"};

constexpr std::size_t kLeastSamples = 64;  // between two starts: else nothing but starting is done

}  // namespace

PmSampler::PmSampler(PmDeviceInfo info, std::unique_ptr<PmDevice> device)
    : info_(std::move(info)), device_(std::move(device)), most_(device_->most_samples()) {}

// Half of what fits: at every reading, as much again may come until the next.
std::chrono::nanoseconds PmSampler::longest_apart() const {
  return info_.period * static_cast<std::int64_t>(std::max(most_ / 2, kLeastSamples));
}

Result<void> PmSampler::start() {
  LLMPROF_TRY(device_->start());
  started_ = true;
  since_start_ = 0;
  return {};
}

Result<std::vector<PmSample>> PmSampler::poll(bool last) {
  std::vector<PmSample> samples = std::exchange(waiting_, {});
  if (!started_) return samples;
  LLMPROF_LET(const bool full, take(samples));
  if (full) learn_from_overflow();
  if (last) {
    LLMPROF_TRY(stop_and_take(samples));
  } else if (full || since_start_ >= most_ / 2) {
    LLMPROF_TRY(stop_and_take(samples));
    LLMPROF_TRY(start());
    ++tally_.restarts;
  }
  return samples;
}

void PmSampler::pause() {
  if (started_) (void)stop_and_take(waiting_);
}

Result<void> PmSampler::stop_and_take(std::vector<PmSample>& into) {
  started_ = false;
  LLMPROF_TRY(device_->stop());
  LLMPROF_TRY(take(into));
  return {};
}

// What the device has. True: its buffer was full.
Result<bool> PmSampler::take(std::vector<PmSample>& into) {
  for (bool more = true; more;) {
    LLMPROF_LET(PmDevice::Batch batch, device_->decode());
    for (PmSample& sample : batch.samples) keep(std::move(sample), into);
    more = batch.more && !batch.samples.empty();
    if (batch.overflow) return true;
  }
  return false;
}

void PmSampler::keep(PmSample sample, std::vector<PmSample>& into) {
  if (since_start_++ == 0) return;  // it spans the set-up
  if (since_start_ == 2 && last_end_ns_ != 0 && sample.begin_ns > last_end_ns_) {
    tally_.gap_ns += sample.begin_ns - last_end_ns_;
  }
  last_end_ns_ = sample.end_ns;
  ++tally_.samples;
  into.push_back(std::move(sample));
}

void PmSampler::learn_from_overflow() {
  ++tally_.overflows;
  most_ = std::max(kLeastSamples, std::min(most_, since_start_) / 2);
}

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
