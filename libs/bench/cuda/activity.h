#pragma once
// From the records of a batch to the time of each of its calls. Pure functions; cupti.h brings the records.
// Every call of a batch is enqueued behind a kernel of ours, and by one thread: in the order of their correlation ids,
// which the driver counts up with every call of its own, records between two kernels of ours belong to one call.
// However many kernels, copies and memsets that launched, and on whatever stream.

#include <cstddef>
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

// The memory CUPTI writes its records to. CUPTI asks for buffers and hands them back from threads of its choice; they
// are parsed later, by ours. Kept for the life of the process: CUPTI may call until the very end.

struct FilledBuffer {
  std::uint8_t* data = nullptr;
  std::size_t valid_bytes = 0;
};

inline constexpr std::size_t kCuptiBufferBytes = std::size_t{1} << 18;  // a thousand records: more than a batch has
inline constexpr std::size_t kMostCuptiBuffers = 64;

std::uint8_t* request_cupti_buffer();  // zeroed; nullptr when all are in use: CUPTI then drops records, and counts them
void complete_cupti_buffer(std::uint8_t* data, std::size_t valid_bytes);
std::vector<FilledBuffer> take_cupti_buffers();  // completed ones, in order
void recycle_cupti_buffer(const FilledBuffer& buffer);

}  // namespace llmprof::bench::cuda
