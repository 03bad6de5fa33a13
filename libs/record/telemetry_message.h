#pragma once
// What goes through the pipe between the telemetry child and its parent: messages of one size, written whole.

#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "record/telemetry_child.h"

namespace llmprof::record {

struct TelemetryMessage {
  TelemetryEvent::Kind kind = TelemetryEvent::Kind::kReading;
  std::uint32_t device = 0, pid = 0;
  hw::MetricId metric = hw::MetricId::kPower;
  std::uint64_t ts_ns = 0;
  double value = 0;
  std::uint64_t uuid_high = 0, uuid_low = 0;
  char text[208] = {};  // ends with 0

  void set_text(std::string_view words) {
    words = words.substr(0, sizeof text - 1);
    std::memcpy(text, words.data(), words.size());
    text[words.size()] = 0;
  }
};
static_assert(sizeof(TelemetryMessage) == 256 && std::is_trivially_copyable_v<TelemetryMessage>);
inline constexpr std::size_t kMessagesAtOnce = PIPE_BUF / sizeof(TelemetryMessage);  // so many are written as one

// The child's side, until it is told to stop.
void run_telemetry_child(const TelemetryChild::Open& open, const TelemetryRates& rates, int events, int orders);

}  // namespace llmprof::record
