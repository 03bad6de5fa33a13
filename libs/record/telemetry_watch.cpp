#include "record/telemetry_watch.h"

#include <algorithm>
#include <iterator>

namespace llmprof::record {
namespace {

using Kind = TelemetryEvent::Kind;

// A driver may take so long to wake up, and a busy machine to look for one: a short program has missed nothing.
constexpr std::uint64_t kStartNs = 2'000'000'000;

void write_device(const hw::TelemetryDevice& device, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kTelemetryDevice);
  record.telemetry_device = {device.uuid_high, device.uuid_low, log.name(device.name), device.device};
  log.add(record);
}

void write_note(const std::string& text, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kNote);
  record.note = {hw::raw_now_ns(), log.name("telemetry"), log.name(text)};
  log.add(record);
}

}  // namespace

void TelemetryWatch::start() {
  if (!options_.on) return;
  begin_ns_ = hw::raw_now_ns();
  auto child = TelemetryChild::start(
      open_, {.power_hz = options_.hz, .state_hz = std::min(options_.hz, 1.0), .rests = options_.rests});
  if (child) {
    child_ = std::move(*child);
  } else {
    losses_.push_back({trace::Loss::kTelemetryStopped, 1, child.error().message});
  }
}

bool TelemetryWatch::receive() {
  const std::lock_guard lock(mutex_);
  if (child_) take(child_->receive());
  return !received_.empty();
}

void TelemetryWatch::take(std::vector<TelemetryEvent> events) {
  for (TelemetryEvent& event : events) {
    found_ = found_ || event.kind == Kind::kDevice;
    received_.push_back(std::move(event));
  }
}

void TelemetryWatch::write(host::HostLog& log) {
  const std::lock_guard lock(mutex_);
  for (const TelemetryEvent& event : received_) {
    switch (event.kind) {
      case Kind::kDevice:
        write_device(event.device, log);
        break;
      case Kind::kReading:
        write_reading(event.reading, log);
        break;
      case Kind::kNote:
        losses_.push_back({trace::Loss::kTelemetryStopped, 1, event.text});
        write_note(event.text, log);
        break;
      case Kind::kSlowed:
        losses_.push_back({trace::Loss::kTelemetrySlowed, 1, event.text});
        break;
      case Kind::kReady:
      case Kind::kCost:
      case Kind::kNone:
        break;
    }
  }
  received_.clear();
}

void TelemetryWatch::write_reading(const hw::Reading& reading, host::HostLog& log) {
  wire::Record record = host::HostLog::make(wire::RecordKind::kTelemetry);
  record.telemetry = {reading.ts_ns, reading.value, log.name(info_of(reading.metric).name), reading.device,
                      reading.pid};
  log.add(record);
}

void TelemetryWatch::read_activity_often() {
  const std::lock_guard lock(mutex_);
  if (child_) child_->read_activity_often();
}

void TelemetryWatch::stop() {
  const std::lock_guard lock(mutex_);
  if (!child_) return;
  const bool ended = child_->stop();
  take(child_->receive());
  child_.reset();
  if (ended || (!found_ && hw::raw_now_ns() - begin_ns_ < kStartNs)) return;
  losses_.push_back({trace::Loss::kTelemetryStopped, 1, "the driver did not answer at the end"});
}

void TelemetryWatch::finish(CaptureInfo& info) {
  stop();
  std::ranges::copy(losses_, std::back_inserter(info.losses));
  losses_.clear();
}

}  // namespace llmprof::record
