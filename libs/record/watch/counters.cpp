// The process that samples counters: alone with the devices and a pipe.

#include "record/watch/counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "hw/telemetry/telemetry.h"

namespace llmprof::record {
namespace {

using hw::counters::PmRefusal;
using hw::counters::PmSample;
using hw::counters::PmSampler;
using Kind = CounterEvent::Kind;

constexpr std::size_t kMostWaitingBytes = std::size_t{64} << 20;  // for a parent that does not read
constexpr int kLastWordMs = 2000;

std::uint64_t process_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t raw_now_ns() { return static_cast<std::uint64_t>(read_clocks().raw_ns); }

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

// The pipe does not block: what finds no room waits here, up to a limit.
class Sender {
 public:
  explicit Sender(int events) : events_(events) {}

  void add(const CounterEvent& event) {
    if (event.kind == Kind::kSample && bytes_.size() > kMostWaitingBytes) {
      ++dropped_;
    } else {
      append(bytes_, event);
    }
  }
  void loss(trace::Loss loss, std::uint64_t count, std::string text) {
    CounterEvent event;
    event.kind = Kind::kLoss;
    event.loss = loss;
    event.count = count;
    event.text = std::move(text);
    add(event);
  }
  void note(std::string text) {
    CounterEvent event;
    event.kind = Kind::kNote;
    event.text = std::move(text);
    add(event);
  }
  void send() {
    while (!bytes_.empty()) {
      const ssize_t count = ::write(events_, bytes_.data(), bytes_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      bytes_.erase(0, static_cast<std::size_t>(count));
    }
  }
  void send_all() {
    for (int waited_ms = 0; waited_ms < kLastWordMs; waited_ms += 10) {
      send();
      if (bytes_.empty()) return;
      pollfd wait{events_, POLLOUT, 0};
      ::poll(&wait, 1, 10);
    }
  }
  int waits_for() const { return bytes_.empty() ? -1 : events_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  int events_;
  std::string bytes_;
  std::uint64_t dropped_ = 0;
};

class Loop {
 public:
  Loop(hw::counters::PmDevices& devices, const CounterPace& pace, Sender& sender, int orders)
      : devices_(devices), pacer_(pacer_for(devices, pace)), sender_(sender), orders_(orders) {}

  void run() {
    start_all();
    clocks_.add(read_clocks());
    sampled_since_ns_ = raw_now_ns();
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
    CounterEvent event;
    event.kind = Kind::kDevice;
    event.device = info.device;
    event.uuid_high = info.uuid_high;
    event.uuid_low = info.uuid_low;
    event.text = info.name;
    sender_.add(event);
    event.kind = Kind::kMetric;
    for (const std::string& metric : info.metrics) {
      event.text = metric;
      sender_.add(event);
    }
  }

  // True: it is time to end.
  bool wait(std::uint64_t wait_ns) {
    const std::uint64_t until_ns = raw_now_ns() + wait_ns;
    for (std::uint64_t now_ns = 0; (now_ns = raw_now_ns()) < until_ns;) {
      pollfd both[]{{orders_, POLLIN, 0}, {sender_.waits_for(), POLLOUT, 0}};
      ::poll(both, 2, static_cast<int>((until_ns - now_ns) / 1'000'000 + 1));
      if (both[0].revents != 0) return true;
      sender_.send();
    }
    return false;
  }

  void read(bool last) {
    const std::uint64_t cpu_ns = process_cpu_ns();
    const std::uint64_t begin_ns = raw_now_ns();
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
    CounterEvent event;
    event.device = device;
    event.begin_ns = static_cast<std::uint64_t>(clocks_.raw_ns(static_cast<std::int64_t>(sample.begin_ns)));
    event.end_ns = static_cast<std::uint64_t>(clocks_.raw_ns(static_cast<std::int64_t>(sample.end_ns)));
    event.values = sample.values;
    sender_.add(event);
  }

  // Sampling costs more than it may: it rests. True: it is time to end.
  bool rest() {
    for (const auto& sampler : devices_.samplers) sampler->pause();
    const std::uint64_t begin_ns = raw_now_ns();
    const bool ends = wait(pacer_.rest_ns());
    rested_ns_ += raw_now_ns() - begin_ns;
    if (ends) return true;
    for (const auto& sampler : devices_.samplers) {
      if (auto started = sampler->start(); !started) fails(*sampler, started.error());
    }
    forget_failed();
    sampled_since_ns_ = raw_now_ns();
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
      sender_.note(fmt::format("samples of GPU {}: {}, begun again {} times, {:.1f} ms in all between them",
                               sampler->info().device, tally.samples, tally.restarts,
                               static_cast<double>(tally.gap_ns) * 1e-6));
      if (tally.overflows > 0) {
        sender_.loss(trace::Loss::kCountersSkipped, tally.overflows,
                     fmt::format("the buffer of GPU {} for samples was full", sampler->info().device));
      }
    }
    if (rested_ns_ > 0) {
      sender_.note(
          fmt::format("sampling rested for {:.1f} s to keep its CPU time low", static_cast<double>(rested_ns_) * 1e-9));
    }
    if (sender_.dropped() > 0) {
      sender_.loss(trace::Loss::kCountersSkipped, sender_.dropped(), "samples that nobody took");
    }
    sender_.note(fmt::format("sampling took {:.2f} s of CPU time", static_cast<double>(process_cpu_ns()) * 1e-9));
  }

  hw::counters::PmDevices& devices_;
  CounterPacer pacer_;
  Sender& sender_;
  int orders_;
  ClockTrack clocks_;
  std::uint64_t sampled_since_ns_ = 0, rested_ns_ = 0;
  std::vector<const PmSampler*> failed_;
  int failures_ = 0;
};

// The child's side, until it is told to stop.
void run_counter_child(const CounterChild::Open& open, const CounterPace& pace, int events, int orders) {
  Sender sender(events);
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
  sender.send_all();
}

}  // namespace

void append(std::string& bytes, const CounterEvent& event) {
  const CounterHead& head = event;
  const std::uint32_t sizes[] = {static_cast<std::uint32_t>(event.text.size()),
                                 static_cast<std::uint32_t>(event.values.size())};
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  bytes += event.text;
  bytes.append(reinterpret_cast<const char*>(event.values.data()), event.values.size() * sizeof(double));
}

bool take(std::string_view& bytes, CounterEvent& event) {
  CounterHead head;
  std::uint32_t sizes[2];
  constexpr std::size_t kFixed = sizeof head + sizeof sizes;
  if (bytes.size() < kFixed) return false;
  std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
  std::memcpy(sizes, bytes.data() + sizeof head, sizeof sizes);
  const std::size_t text_bytes = sizes[0], values_bytes = std::size_t{sizes[1]} * sizeof(double);
  if (bytes.size() < kFixed + text_bytes + values_bytes) return false;
  event = {head, std::string(bytes.substr(kFixed, text_bytes)), std::vector<double>(sizes[1])};
  if (values_bytes > 0) std::memcpy(event.values.data(), bytes.data() + kFixed + text_bytes, values_bytes);
  bytes.remove_prefix(kFixed + text_bytes + values_bytes);
  return true;
}

Result<std::unique_ptr<CounterChild>> CounterChild::start(const Open& open, const CounterPace& pace) {
  LLMPROF_LET(auto child,
              WatchChild::start([&](int events, int orders) { run_counter_child(open, pace, events, orders); }));
  return std::unique_ptr<CounterChild>(new CounterChild(std::move(child)));
}

std::vector<CounterEvent> CounterChild::receive() {
  child_->receive();
  std::vector<CounterEvent> events;
  std::string_view left = child_->bytes();
  for (CounterEvent event; take(left, event);) events.push_back(std::move(event));
  child_->bytes().erase(0, child_->bytes().size() - left.size());
  return events;
}

namespace {

using Kind = CounterEvent::Kind;

// Numbers of our devices in the log, beside those that telemetry gives its own.
constexpr std::uint32_t kFirstDevice = 1000;
constexpr std::size_t kSamplesAtOnce = 256;  // records of one kind are written together

// Who asks for a shorter period pays for it: the CPU time is per sample.
double share_for(std::chrono::nanoseconds period) {
  constexpr double kShare = 0.12, kPeriodNs = 1e6;
  return std::min(0.9, kShare * std::max(1.0, kPeriodNs / static_cast<double>(period.count())));
}

void write_device(const CounterEvent& event, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kTelemetryDevice);
  record.telemetry_device = {event.uuid_high, event.uuid_low, log.name(event.text), kFirstDevice + event.device};
  log.add(record);
}

void write_note(const std::string& text, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kNote);
  record.note = {hw::raw_now_ns(), log.name("counters"), log.name(text)};
  log.add(record);
}

}  // namespace

CounterChild::Open open_sampled_devices(const CounterOptions& options) {
  return [set = options.set, period = options.period] { return hw::counters::open_pm_devices(set, period); };
}

void CounterSampler::start() {
  if (options_.set.empty() || options_.method != CounterMethod::kSampled) return;
  auto child = CounterChild::start(open_, {.share = share_for(options_.period)});
  if (child) {
    child_ = std::move(*child);
  } else {
    losses_.push_back({trace::Loss::kCountersFailed, 1, child.error().message});
  }
}

bool CounterSampler::receive() {
  const std::lock_guard lock(mutex_);
  if (child_) take(child_->receive());
  return !received_.empty();
}

void CounterSampler::take(std::vector<CounterEvent> events) {
  for (CounterEvent& event : events) {
    if (event.kind == Kind::kLoss) {
      refused_ = refused_ || event.loss == trace::Loss::kCountersForbidden || event.loss == trace::Loss::kCountersHeld;
      losses_.push_back({event.loss, static_cast<std::int64_t>(event.count), std::move(event.text)});
    } else {
      received_.push_back(std::move(event));
    }
  }
}

void CounterSampler::write(host::HostLog& log) {
  const std::lock_guard lock(mutex_);
  std::vector<const CounterEvent*> samples;
  for (const CounterEvent& event : received_) {
    if (event.kind == Kind::kSample) samples.push_back(&event);
    if (event.kind != Kind::kSample || samples.size() == kSamplesAtOnce) write_samples(samples, log);
    if (event.kind == Kind::kDevice) write_device(event, log);
    if (event.kind == Kind::kMetric) metrics_[event.device].push_back(event.text);
    if (event.kind == Kind::kNote) write_note(event.text, log);
  }
  write_samples(samples, log);
  received_.clear();
}

void CounterSampler::write_samples(std::vector<const CounterEvent*>& samples, host::HostLog& log) {
  std::uint32_t measurement = measurement_;
  for (const CounterEvent* sample : samples) {
    wire::Record record = host::HostLog::make(wire::RecordKind::kCounterWindow);
    const auto device = static_cast<std::uint16_t>(kFirstDevice + sample->device);
    record.counter_window = {
        sample->begin_ns, sample->end_ns, 0, ++measurement, 0, 0, device, wire::CounterScope::kSample, 0, 1};
    log.add(record);
  }
  for (const CounterEvent* sample : samples) {
    ++measurement_;
    const std::vector<std::string>& metrics = metrics_[sample->device];
    for (std::size_t i = 0; i < std::min(metrics.size(), sample->values.size()); ++i) {
      wire::Record record = host::HostLog::make(wire::RecordKind::kCounter);
      record.counter = {sample->end_ns, sample->values[i], measurement_, log.name(metrics[i])};
      log.add(record);
    }
  }
  samples.clear();
}

void CounterSampler::stop() {
  const std::lock_guard lock(mutex_);
  if (!child_) return;
  const bool ended = child_->stop();
  take(child_->receive());
  child_.reset();
  if (!ended) losses_.push_back({trace::Loss::kCountersFailed, 1, "the driver did not answer at the end"});
}

bool CounterSampler::refused() {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void CounterSampler::finish(CaptureInfo& info) {
  stop();
  std::ranges::copy(losses_, std::back_inserter(info.losses));
  losses_.clear();
}

}  // namespace llmprof::record
