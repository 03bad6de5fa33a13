#include "record/telemetry_child.h"

#include <cstring>

#include "record/telemetry_message.h"

namespace llmprof::record {
namespace {

TelemetryEvent event_of(const TelemetryMessage& message) {
  TelemetryEvent event;
  event.kind = message.kind;
  event.reading = {message.metric, message.device, message.pid, message.ts_ns, message.value};
  event.text = message.text;
  if (message.kind == TelemetryEvent::Kind::kDevice) {
    event.reading = {};
    event.device = {message.device, message.pid == 1 ? "gpu" : "cpu", message.text, message.uuid_high,
                    message.uuid_low};
  }
  return event;
}

}  // namespace

Result<std::unique_ptr<TelemetryChild>> TelemetryChild::start(const Open& open, const TelemetryRates& rates) {
  LLMPROF_LET(auto child,
              WatchChild::start([&](int events, int orders) { run_telemetry_child(open, rates, events, orders); }));
  return std::unique_ptr<TelemetryChild>(new TelemetryChild(std::move(child)));
}

std::vector<TelemetryEvent> TelemetryChild::receive() {
  child_->receive();
  std::string& bytes = child_->bytes();
  std::vector<TelemetryEvent> events;
  std::size_t at = 0;
  for (; at + sizeof(TelemetryMessage) <= bytes.size(); at += sizeof(TelemetryMessage)) {
    TelemetryMessage message;
    std::memcpy(static_cast<void*>(&message), bytes.data() + at, sizeof message);
    events.push_back(event_of(message));
  }
  bytes.erase(0, at);
  return events;
}

}  // namespace llmprof::record
