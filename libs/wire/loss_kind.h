#pragma once
// What the collector may lose: the collector's part of losses.def.

#include <cstddef>
#include <cstdint>

namespace llmprof::wire {

enum class LossKind : std::uint16_t {
  kNone = 0,
#define COLLECTOR_LOSS(kind, ...) kind,
#define LOSS(...)
#include "wire/losses.def"
  kCount,
};

// What LossRecord::detail holds.
enum class LossDetail : std::uint8_t {
  kNone,
  kErrno,
  kText,      // a string id: which one, why, or who; 0 if that is not known
  kCupti,     // the result of a call of CUPTI | the call << 32
  kProfiler,  // the same of CUPTI's profilers
};

constexpr LossDetail detail_of(LossKind kind) {
  constexpr LossDetail kDetails[] = {
      LossDetail::kNone,
#define COLLECTOR_LOSS(kind, detail, ...) LossDetail::detail,
#define LOSS(...)
#include "wire/losses.def"
  };
  return kind < LossKind::kCount ? kDetails[static_cast<std::size_t>(kind)] : LossDetail::kNone;
}

}  // namespace llmprof::wire
