#pragma once
// The functions of the CUDA driver that we watch, by their number in CUPTI (cupti_driver_cbid.h). Numbers are never
// reused; a library that does not know one refuses it, and nothing else happens.

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/format.h"

namespace llmprof::collect::cupti {

enum class CallClass : std::uint8_t {
  kNone = 0,
  kLaunch,         // gives the device work
  kGraphLaunch,    // arguments: the executable graph, the stream
  kAllocate,       // arguments: where to put the address, bytes
  kAllocatePitch,  // where to put the address, where to put the pitch, width, height
  kAdopt,          // address, bytes
  kFree,           // address
  kRelease,        // address, bytes
  kWaitForAll,     // the host waits for the device
  kWaitForStream,  // the stream
  kWaitForEvent,
  kProfilerStart,
  kProfilerStop,
  kCaptureBegin,
  kCaptureEnd,
  kAddNode,      // a program adds a node to a graph by hand
  kInstantiate,  // makes an executable of a graph
  kSetKernel,    // sets the parameters of a node; arguments: the executable if it is one's, the node, what describes it
  kUpdate,       // arguments: the executable, a graph
  kUpload,       // arguments: the executable graph, the stream
};

// How a call that adds a node of a graph describes it.
enum class NodeParameters : std::uint8_t { kFirstKernelNode, kKernelNode, kAnyNode };

struct DriverCall {
  std::uint16_t id = 0;
  CallClass what = CallClass::kNone;
  wire::LaunchOp op = wire::LaunchOp::kOther;
  wire::MemoryKind memory = wire::MemoryKind::kDevice;
  NodeParameters node = NodeParameters::kAnyNode;
  std::uint8_t parameters = 0;  // which argument describes the node
};

inline constexpr std::uint16_t kLaunchKernel = 307;

// cuLaunch, cuLaunchGrid, …Async; cuLaunchKernel, cuLaunchKernelEx, cuLaunchCooperativeKernel, _ptsz; …MultiDevice
inline constexpr std::uint16_t kKernelLaunches[] = {115, 116, 117, kLaunchKernel, 442, 652, 653, 477, 478, 480};
inline constexpr std::uint16_t kGraphLaunchOwnDefault = 515, kGraphUploadOwnDefault = 581;
// cuMemcpyHtoD … cuMemcpy3D and the same asynchronous, for 64 bits; cuMemcpy2D for 64 bits; all of them _v2; cuMemcpy,
// cuMemcpyPeer; all again _ptds and _ptsz; cuMemcpyBatchAsync, cuMemcpy3DBatchAsync, _v2, _ptsz
inline constexpr std::uint16_t kCopies[] = {
    43,  44,  45,  46,  47,  48,  49,  50,  51,  52,  53,  54,  55,  56,  57,  58,  59,  60,  61,  62,  63,  64,
    65,  66,  67,  68,  69,  70,  232, 233, 234, 248, 276, 277, 278, 279, 280, 281, 282, 283, 284, 285, 286, 287,
    288, 289, 290, 291, 292, 293, 305, 306, 318, 319, 320, 321, 397, 398, 399, 400, 401, 402, 403, 404, 405, 406,
    407, 408, 409, 410, 418, 419, 420, 421, 422, 423, 424, 425, 426, 427, 776, 777, 778, 779, 796, 797, 798, 799};
// cuMemsetD8 … cuMemsetD2D32, the same asynchronous, for 64 bits, _v2, _ptds, _ptsz
inline constexpr std::uint16_t kMemsets[] = {71,  72,  73,  74,  75,  76,  77,  78,  79,  80,  81,  82,  216, 217,
                                             218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 249, 250, 251, 252,
                                             253, 254, 411, 412, 413, 414, 415, 416, 428, 429, 430, 431, 432, 433};

constexpr DriverCall memory_call(std::uint16_t id, CallClass what, wire::MemoryKind kind) {
  return {.id = id, .what = what, .memory = kind};
}
constexpr DriverCall node_call(std::uint16_t id, CallClass what, NodeParameters node, std::uint8_t parameters) {
  return {.id = id, .what = what, .node = node, .parameters = parameters};
}

// All others, one by one.
inline constexpr DriverCall kOtherCalls[] = {
    memory_call(243, CallClass::kAllocate, wire::MemoryKind::kDevice),           // cuMemAlloc_v2
    memory_call(244, CallClass::kAllocatePitch, wire::MemoryKind::kDevice),      // cuMemAllocPitch_v2
    memory_call(245, CallClass::kFree, wire::MemoryKind::kDevice),               // cuMemFree_v2
    memory_call(371, CallClass::kAllocate, wire::MemoryKind::kManaged),          // cuMemAllocManaged
    memory_call(598, CallClass::kAllocate, wire::MemoryKind::kPool),             // cuMemAllocAsync
    memory_call(599, CallClass::kAllocate, wire::MemoryKind::kPool),             // …_ptsz
    memory_call(611, CallClass::kAllocate, wire::MemoryKind::kPool),             // cuMemAllocFromPoolAsync
    memory_call(612, CallClass::kAllocate, wire::MemoryKind::kPool),             // …_ptsz
    memory_call(600, CallClass::kFree, wire::MemoryKind::kPool),                 // cuMemFreeAsync
    memory_call(601, CallClass::kFree, wire::MemoryKind::kPool),                 // …_ptsz
    memory_call(39, CallClass::kAllocate, wire::MemoryKind::kPinned),            // cuMemHostAlloc
    memory_call(271, CallClass::kAllocate, wire::MemoryKind::kPinned),           // …_v2
    memory_call(294, CallClass::kAllocate, wire::MemoryKind::kPinned),           // cuMemAllocHost_v2
    memory_call(38, CallClass::kFree, wire::MemoryKind::kPinned),                // cuMemFreeHost
    memory_call(301, CallClass::kAdopt, wire::MemoryKind::kPinned),              // cuMemHostRegister
    memory_call(379, CallClass::kAdopt, wire::MemoryKind::kPinned),              // …_v2
    memory_call(302, CallClass::kFree, wire::MemoryKind::kPinned),               // cuMemHostUnregister
    memory_call(551, CallClass::kAdopt, wire::MemoryKind::kMapped),              // cuMemMap
    memory_call(552, CallClass::kRelease, wire::MemoryKind::kMapped),            // cuMemUnmap
    {17, CallClass::kWaitForAll},                                                // cuCtxSynchronize
    {800, CallClass::kWaitForAll},                                               // …_v2
    {126, CallClass::kWaitForStream},                                            // cuStreamSynchronize
    {440, CallClass::kWaitForStream},                                            // …_ptsz
    {121, CallClass::kWaitForEvent},                                             // cuEventSynchronize
    node_call(502, CallClass::kAddNode, NodeParameters::kFirstKernelNode, 4),    // cuGraphAddKernelNode
    node_call(689, CallClass::kAddNode, NodeParameters::kKernelNode, 4),         // …_v2
    node_call(712, CallClass::kAddNode, NodeParameters::kAnyNode, 4),            // cuGraphAddNode
    node_call(723, CallClass::kAddNode, NodeParameters::kAnyNode, 5),            // …_v2
    node_call(521, CallClass::kSetKernel, NodeParameters::kFirstKernelNode, 1),  // cuGraphKernelNodeSetParams
    node_call(691, CallClass::kSetKernel, NodeParameters::kKernelNode, 1),       // …_v2
    node_call(713, CallClass::kSetKernel, NodeParameters::kAnyNode, 1),          // cuGraphNodeSetParams
    node_call(538, CallClass::kSetKernel, NodeParameters::kFirstKernelNode, 2),  // cuGraphExecKernelNodeSetParams
    node_call(692, CallClass::kSetKernel, NodeParameters::kKernelNode, 2),       // …_v2
    node_call(714, CallClass::kSetKernel, NodeParameters::kAnyNode, 2),          // cuGraphExecNodeSetParams
    {514, CallClass::kGraphLaunch, wire::LaunchOp::kGraph},                      // cuGraphLaunch
    {kGraphLaunchOwnDefault, CallClass::kGraphLaunch, wire::LaunchOp::kGraph},   // …_ptsz
    {580, CallClass::kUpload},                                                   // cuGraphUpload
    {kGraphUploadOwnDefault, CallClass::kUpload},                                // …_ptsz
    {513, CallClass::kInstantiate},                                              // cuGraphInstantiate
    {578, CallClass::kInstantiate},                                              // …_v2
    {643, CallClass::kInstantiate},                                              // …WithFlags
    {656, CallClass::kInstantiate},                                              // …WithParams
    {657, CallClass::kInstantiate},                                              // …WithParams_ptsz
    {561, CallClass::kUpdate},                                                   // cuGraphExecUpdate
    {696, CallClass::kUpdate},                                                   // …_v2
    {308, CallClass::kProfilerStart},                                            // cuProfilerStart
    {309, CallClass::kProfilerStop},                                             // cuProfilerStop
    {495, CallClass::kCaptureBegin},                                             // cuStreamBeginCapture
    {496, CallClass::kCaptureBegin},                                             // …_ptsz
    {539, CallClass::kCaptureBegin},                                             // …_v2
    {540, CallClass::kCaptureBegin},                                             // …_v2_ptsz
    {720, CallClass::kCaptureBegin},                                             // cuStreamBeginCaptureToGraph
    {721, CallClass::kCaptureBegin},                                             // …_ptsz
    {497, CallClass::kCaptureEnd},                                               // cuStreamEndCapture
    {498, CallClass::kCaptureEnd},                                               // …_ptsz
};

inline constexpr std::uint32_t kDriverCallIds = 1024;

// By number.
class DriverCallTable {
 public:
  constexpr DriverCallTable() {
    add(kKernelLaunches, wire::LaunchOp::kKernel);
    add(kCopies, wire::LaunchOp::kCopy);
    add(kMemsets, wire::LaunchOp::kMemset);
    for (const DriverCall& call : kOtherCalls) calls_[call.id] = call;
  }

  constexpr const DriverCall& operator[](std::uint32_t id) const { return calls_[id < kDriverCallIds ? id : 0]; }

 private:
  constexpr void add(std::span<const std::uint16_t> ids, wire::LaunchOp op) {
    for (const std::uint16_t id : ids) calls_[id] = {id, CallClass::kLaunch, op};
  }

  DriverCall calls_[kDriverCallIds]{};
};
inline constexpr DriverCallTable kDriverCalls;

}  // namespace llmprof::collect::cupti
