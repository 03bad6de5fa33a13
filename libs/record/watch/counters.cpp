// The process that samples counters: alone with the devices and a pipe.

#include "record/watch/counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include "wire/clock.h"

namespace llmprof::record {
namespace {

using hw::counters::PmRefusal;
using hw::counters::PmSample;
using hw::counters::PmSampler;
using Kind = WatchEvent::Kind;

std::uint64_t process_cpu_ns() { return wire::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

trace::Loss loss_of(PmRefusal refusal) {
  switch (refusal) {
    case PmRefusal::kForbidden:
      return trace::Loss::kCountersForbidden;
    case PmRefusal::kHeld:
      return trace::Loss::kCountersHeld;
    case PmRefusal::kFailed:
      return trace::Loss::kCountersFailed;
    case PmRefusal::kNone:
    case PmRefusal::kUnsupported:
    case PmRefusal::kAbsent:
      break;
  }
  return trace::Loss::kCountersSkipped;
}

class Loop {
 public:
  Loop(hw::counters::PmDevices& devices, const CounterPace& pace, WatchSender& sender, int orders)
      : devices_(devices), pacer_(pacer_for(devices, pace)), sender_(sender), orders_(orders) {}

  void run() {
    start_all();
    clocks_.add(read_clocks());
    sampled_since_ns_ = wire::now_ns();
    while (!devices_.samplers.empty() && !wait(pacer_.wait_ns())) {
      read(false);
      if (pacer_.rest_ns() > 0 && rest()) break;
    }
    read(true);
    tell_tallies();
  }

 private:
  // Never so far apart that a buffer could be full.
  static CounterPacer pacer_for(const hw::counters::PmDevices& devices, const CounterPace& pace) {
    auto longest = std::chrono::nanoseconds(pace.longest);
    for (const auto& sampler : devices.samplers) longest = std::min(longest, sampler->longest_apart());
    return {pace.share, static_cast<std::uint64_t>(std::chrono::nanoseconds(pace.shortest).count()),
            static_cast<std::uint64_t>(longest.count())};
  }

  void start_all() {
    for (const auto& sampler : devices_.samplers) {
      tell(sampler->info());
      sender_.send();
      if (auto started = sampler->start(); !started) fails(*sampler, started.error());
    }
    forget_failed();
  }

  void tell(const hw::counters::PmDeviceInfo& info) {
    sender_.add({{.kind = Kind::kDevice, .device = info.device, .uuid_high = info.uuid_high, .uuid_low = info.uuid_low},
                 info.name,
                 {}});
    for (const std::string& metric : info.metrics)
      sender_.add({{.kind = Kind::kMetric, .device = info.device}, metric, {}});
  }

  // True: it is time to end.
  bool wait(std::uint64_t wait_ns) {
    const std::uint64_t until_ns = wire::now_ns() + wait_ns;
    for (std::uint64_t now_ns = 0; (now_ns = wire::now_ns()) < until_ns;) {
      pollfd both[]{{orders_, POLLIN, 0}, {sender_.waits_for(), POLLOUT, 0}};
      ::poll(both, 2, static_cast<int>((until_ns - now_ns) / 1'000'000 + 1));
      if (both[0].revents != 0) return true;
      sender_.send();
    }
    return false;
  }

  void read(bool last) {
    const std::uint64_t cpu_ns = process_cpu_ns();
    const std::uint64_t begin_ns = wire::now_ns();
    std::vector<std::pair<std::uint32_t, std::vector<PmSample>>> all;
    for (const auto& sampler : devices_.samplers) {
      auto samples = sampler->poll(last);
      if (samples) all.emplace_back(sampler->info().device, std::move(*samples));
      if (!samples) begin_again(*sampler, samples.error());
    }
    clocks_.add(read_clocks());  // later than all of them
    for (const auto& [device, samples] : all) {
      for (const PmSample& sample : samples) tell(device, sample);
    }
    forget_failed();
    sender_.send();
    pacer_.took(begin_ns - sampled_since_ns_, process_cpu_ns() - cpu_ns);
    sampled_since_ns_ = begin_ns;
  }

  void tell(std::uint32_t device, const PmSample& sample) {
    const auto raw_ns = [&](std::uint64_t ns) {
      return static_cast<std::uint64_t>(clocks_.raw_ns(static_cast<std::int64_t>(ns)));
    };
    const WatchHead head{.device = device, .begin_ns = raw_ns(sample.begin_ns), .end_ns = raw_ns(sample.end_ns)};
    sender_.add({head, "", sample.values});
  }

  // Sampling costs more than it may: it rests. True: it is time to end.
  bool rest() {
    for (const auto& sampler : devices_.samplers) sampler->pause();
    const std::uint64_t begin_ns = wire::now_ns();
    const bool ends = wait(pacer_.rest_ns());
    rested_ns_ += wire::now_ns() - begin_ns;
    if (ends) return true;
    for (const auto& sampler : devices_.samplers) {
      if (auto started = sampler->start(); !started) fails(*sampler, started.error());
    }
    forget_failed();
    sampled_since_ns_ = wire::now_ns();
    return false;
  }

  // A reading that failed is no reason to end, unless it happens again and again.
  void begin_again(PmSampler& sampler, const Error& error) {
    constexpr int kMostFailures = 3;
    if (++failures_ > kMostFailures) return fails(sampler, error);
    sender_.loss(trace::Loss::kCountersFailed, 1, error.message);
    sampler.pause();
    if (auto started = sampler.start(); !started) fails(sampler, started.error());
  }

  void fails(const PmSampler& sampler, const Error& error) {
    sender_.loss(trace::Loss::kCountersFailed, 1,
                 fmt::format("samples of GPU {}: {}", sampler.info().device, error.message));
    failed_.push_back(&sampler);
  }
  void forget_failed() {
    std::erase_if(devices_.samplers,
                  [&](const auto& sampler) { return std::ranges::count(failed_, sampler.get()) > 0; });
    failed_.clear();
  }

  void tell_tallies() {
    for (const auto& sampler : devices_.samplers) {
      const PmSampler::Tally& tally = sampler->tally();
      if (tally.restarts + tally.overflows == 0) continue;
      sender_.say(Kind::kNote, fmt::format("samples of GPU {}: {}, begun again {} times, {:.1f} ms in all between them",
                                           sampler->info().device, tally.samples, tally.restarts,
                                           static_cast<double>(tally.gap_ns) * 1e-6));
      if (tally.overflows > 0) {
        sender_.loss(trace::Loss::kCountersSkipped, tally.overflows,
                     fmt::format("the buffer of GPU {} for samples was full", sampler->info().device));
      }
    }
    if (rested_ns_ > 0) {
      sender_.say(Kind::kNote, fmt::format("sampling rested for {:.1f} s to keep its CPU time low",
                                           static_cast<double>(rested_ns_) * 1e-9));
    }
    if (sender_.dropped() > 0) {
      sender_.loss(trace::Loss::kCountersSkipped, sender_.dropped(), "samples that nobody took");
    }
    sender_.say(Kind::kNote,
                fmt::format("sampling took {:.2f} s of CPU time", static_cast<double>(process_cpu_ns()) * 1e-9));
  }

  hw::counters::PmDevices& devices_;
  CounterPacer pacer_;
  WatchSender& sender_;
  int orders_;
  ClockTrack clocks_;
  std::uint64_t sampled_since_ns_ = 0, rested_ns_ = 0;
  std::vector<const PmSampler*> failed_;
  int failures_ = 0;
};

// Who asks for a shorter period pays for it: the CPU time is per sample.
double share_for(std::chrono::nanoseconds period) {
  constexpr double kShare = 0.12, kPeriodNs = 1e6;
  return std::min(0.9, kShare * std::max(1.0, kPeriodNs / static_cast<double>(period.count())));
}

}  // namespace

Result<std::unique_ptr<WatchChild>> start_counters(const CounterOpen& open, const CounterPace& pace) {
  return WatchChild::start([&](WatchSender& sender, int orders) {
    hw::counters::PmDevices devices = open();
    for (const auto& problem : devices.problems) sender.loss(loss_of(problem.refusal), 1, problem.text);
    for (const std::string& metric : devices.unknown) sender.loss(trace::Loss::kCounterUnknown, 1, metric);
    if (!devices.not_sampled.empty()) {
      sender.loss(trace::Loss::kCountersSkipped, devices.not_sampled.size(),
                  fmt::format("samples do not offer {}", fmt::join(devices.not_sampled, ", ")));
    }
    for (const std::string& metric : devices.left_out) {
      sender.loss(trace::Loss::kCountersSkipped, 1, metric + ": needs a pass of its own, which samples do not have");
    }
    if (!devices.samplers.empty()) Loop(devices, pace, sender, orders).run();
  });
}

CounterOpen open_sampled_devices(const CounterOptions& options) {
  return [set = options.set, period = options.period] { return hw::counters::open_pm_devices(set, period); };
}

void CounterSampler::start() {
  if (options_.set.empty() || options_.method != CounterMethod::kSampled) return;
  begin(start_counters(open_, {.share = share_for(options_.period)}));
}

}  // namespace llmprof::record
