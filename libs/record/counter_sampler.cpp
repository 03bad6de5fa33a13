#include "record/counter_sampler.h"

#include <algorithm>
#include <iterator>

#include "hw/telemetry.h"

namespace llmprof::record {
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
