#pragma once
// From the records of a batch to the time of each of its calls. Pure functions; cupti.h brings the records.
// Every call of a batch is enqueued behind a kernel of ours, and by one thread: in the order of their correlation ids,
// which the driver counts up with every call of its own, records between two kernels of ours belong to one call.
// However many kernels, copies and memsets that launched, and on whatever stream.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace llmprof::bench::cuda {

// Kernels that belong to the measurement, not to what is measured, are named so.
inline constexpr std::string_view kServicePrefix = "llmprof_timing_";
inline constexpr std::string_view kMarkerKernel = "llmprof_timing_marker";

struct Activity {
  std::uint64_t begin_ns = 0, end_ns = 0;  // the device's; both 0: lost
  std::uint32_t correlation = 0;
  std::string name;  // of a kernel, as the linker knows it; "[memset]", "[memcpy]"
};

struct TimedCall {
  double seconds = 0;  // in which at least one of its kernels ran: the sum of their times, overlaps counted once
  std::vector<std::string> kernels;  // readable names, in the order of launching
};

// The calls behind the markers, in order. An error when there are not `calls` of them, or one has no record with times.
Result<std::vector<TimedCall>> calls_of(std::vector<Activity> activities, std::size_t calls);

}  // namespace llmprof::bench::cuda
