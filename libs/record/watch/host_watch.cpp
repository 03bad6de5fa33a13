#include "record/watch/host_watch.h"

#include <fmt/format.h>

#include <utility>

#include "host/host_log.h"
#include "record/launch/injection.h"
#include "record/run/model_notes.h"

namespace llmprof::record {

HostWatch::HostWatch(const HostOptions& options, const TelemetryOptions& telemetry, std::string capture_folder,
                     const CounterOptions& counters, const wire::Rests& rests)
    : options_(options),
      rests_(rests),
      capture_(std::move(capture_folder)),
      telemetry_({telemetry.on, telemetry.hz, rests}),
      counters_(counters) {
  telemetry_.start();
  counters_.start();
}

bool HostWatch::receive() {
  const bool telemetry = telemetry_.receive();
  const bool counters = counters_.receive();
  if (counters_.refused() && !std::exchange(activity_often_, true)) telemetry_.read_activity_often();
  return telemetry || counters;
}

void HostWatch::write(host::HostLog& log) {
  telemetry_.write(log);
  counters_.write(log);
}

void HostWatch::stop_children() {
  telemetry_.stop();
  counters_.stop();
}

void HostWatch::create(pid_t root) {
  if (!options_.on) return;
  host::SamplerOptions options;
  options.log_path = fmt::format("{}/{}", capture_, host::kHostLogName);
  if (!options_.running) options.setting = fmt::format("{}={}", kCaptureVariable, capture_);
  options.stack.running = options_.running;
  options.usage_hz = options_.usage_hz;
  options.stacks = options_.stacks;
  options.stack.hz = options_.sample_hz;
  options.rests = rests_;
  options.also = [this](host::HostLog& log) {
    if (receive()) write(log);
  };
  auto sampler = host::Sampler::create(root, options);
  if (sampler) {
    sampler_ = std::move(*sampler);
  } else {
    problem_ = sampler.error().message;
  }
}

void HostWatch::attach(Watch& watch) {
  watch.forked = [this, next = std::move(watch.forked)](pid_t pid) {
    create(pid);
    next(pid);
  };
  watch.started = [this, next = std::move(watch.started)](pid_t pid) {
    if (sampler_) sampler_->start();
    next(pid);
  };
  watch.ended = [this, next = std::move(watch.ended)](pid_t pid) {
    stop_children();
    if (sampler_) sampler_->stop();
    next(pid);
  };
}

void HostWatch::poll() {
  if (!sampler_ && !full_) write_alone();
}

// With --no-host, devices are read all the same.
void HostWatch::write_alone() {
  if (!receive()) return;
  if (!own_log_) {
    auto log = host::HostLog::create(fmt::format("{}/{}", capture_, host::kHostLogName));
    if (!log) return;  // tried again the next time; the losses say it at the end
    own_log_.emplace(std::move(*log));
  }
  write(*own_log_);
  (void)own_log_->flush();
}

void HostWatch::full() {
  if (std::exchange(full_, true)) return;
  stop_children();
  if (sampler_) sampler_->pause();
}

std::string contention_text(const host::Contention& seen) {
  constexpr double kLeastWait = 0.05, kLeastStolen = 0.02;  // of the thread's life; of the machine's CPU time
  constexpr std::uint64_t kLeastNs = 200'000'000;
  const double waited =
      seen.lived_ns > 0 ? static_cast<double>(seen.waited_ns) / static_cast<double>(seen.lived_ns) : 0;
  std::string out;
  if (seen.waited_ns >= kLeastNs && waited >= kLeastWait)
    out = fmt::format(
        "the program's main thread waited {:.0f} % of its time for a core ({} used {:.0f} % of the machine's CPU "
        "time): times of the host, and of a device that waits for it, are longer than on a quiet machine",
        waited * 100, seen.others >= kLeastWait ? "other programs" : "its own threads had them; others",
        seen.others * 100);
  if (seen.stolen >= kLeastStolen)
    out += fmt::format("{}a hypervisor took away {:.0f} % of the machine's CPU time", out.empty() ? "" : "; ",
                       seen.stolen * 100);
  return out;
}

void HostWatch::finish(const Ended& ended, CaptureInfo& info) {
  const auto note = [&](trace::Loss loss, std::uint64_t count, const std::string& detail) {
    if (count > 0) info.losses.push_back({loss, static_cast<std::int64_t>(count), detail});
  };
  if (!options_.on || !options_.stacks) {
    note(trace::Loss::kNoStackSamples, 1, options_.on ? "--no-stacks" : "--no-host");
  }
  if (!problem_.empty()) note(trace::Loss::kUsageUnreadable, 1, problem_);
  if (!sampler_) {
    write_alone();
    telemetry_.finish(info);
    return counters_.finish(info);
  }
  const host::SamplerOutcome outcome = sampler_->finish(ended.used);
  sampler_.reset();
  telemetry_.finish(info);
  counters_.finish(info);
  note_opened_models(outcome.model_files, info.models);
  note(trace::Loss::kUsageUnreadable, outcome.unreadable, "");
  if (full_) note(trace::Loss::kSizeLimit, 1, std::string(host::kHostLogName));
  if (!outcome.no_stacks.empty()) note(trace::Loss::kNoStackSamples, 1, outcome.no_stacks);
  note(trace::Loss::kSamplesLost, outcome.stacks.lost, "");
  if (const std::string text = contention_text(outcome.contention); !text.empty()) info.notes.push_back({"cpu", text});
  const host::StackStats& stacks = outcome.stacks;
  if (!outcome.no_causes.empty())
    info.notes.push_back(
        {"threads",
         "what threads wait for is told by kernel functions and states only, less exactly: " + outcome.no_causes});
  if (outcome.unread_threads > 0)
    info.notes.push_back(
        {"threads", fmt::format("states of {} threads were not read: 1024 are read at once", outcome.unread_threads)});
  if (stacks.samples > 0 && !stacks.kernel_why.empty()) info.notes.push_back({"stacks", stacks.kernel_why});
  if (stacks.left_out > 0)
    info.notes.push_back(
        {"stacks", fmt::format("{} of {} stack samples were worked on, so that llmprof takes little CPU time; "
                               "each stands for those left out: sums are right, details coarser",
                               stacks.samples, stacks.samples + stacks.left_out)});
  note(trace::Loss::kNoPythonFrames, stacks.python_failed,
       stacks.python_why.empty() ? fmt::format("of {} in Python", stacks.python_failed + stacks.python_samples)
                                 : stacks.python_why);
  if (!outcome.problem.empty()) note(trace::Loss::kWriteFailed, 1, outcome.problem);
}

}  // namespace llmprof::record
