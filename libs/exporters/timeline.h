#pragma once
// What happened in the selected part of a run, as SQL: rows of one shape for host threads and one for devices. Viewers
// of time lines read through these.

#include <cstdint>
#include <string>

#include "exporters/exporter.h"

namespace llmprof::exporters {

enum class HostKind : std::uint8_t { kRange, kMark, kOp, kApi, kLaunch };
// thread_id, begin_ns, end_ns, name, kind (HostKind), flow (of kLaunch: what it launches).
std::string host_slices(const Selection& selection);

enum class DeviceKind : std::uint8_t { kGraph, kKernel, kCopy };
enum class Detail : std::uint8_t { kPlain, kFull };
// device_id, stream, thread_id, begin_ns, end_ns, name, kind (DeviceKind), flow (NULL if its launch is not known),
// estimated. With kFull also stage, module, op, grid, block ("1,2,3"), registers, shared_bytes, m, n, k, batch,
// confidence_percent, bytes, graph.
std::string device_slices(const Selection& selection, Detail detail);

// Numbers that a launch and what it launched share: unique over kernels, copies and graph launches.
inline constexpr const char* kFlowOfKernel = "id * 4 + 1";
inline constexpr const char* kFlowOfCopy = "id * 4 + 2";
inline constexpr const char* kFlowOfGraph = "id * 4 + 3";

// Kernels, measured and estimated, without joins unless they are needed.
std::string kernels_of(const Selection& selection, Detail detail);

}  // namespace llmprof::exporters
