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
inline constexpr std::uint16_t kGraphLaunches[] = {514, 515};  // cuGraphLaunch, _ptsz
inline constexpr std::uint16_t kGraphUploads[] = {580, 581};   // cuGraphUpload, _ptsz
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

struct MemoryCall {
  std::uint16_t id;
  CallClass what;
  wire::MemoryKind kind;
};
inline constexpr MemoryCall kMemoryCalls[] = {
    {243, CallClass::kAllocate, wire::MemoryKind::kDevice},       // cuMemAlloc_v2
    {244, CallClass::kAllocatePitch, wire::MemoryKind::kDevice},  // cuMemAllocPitch_v2
    {245, CallClass::kFree, wire::MemoryKind::kDevice},           // cuMemFree_v2
    {371, CallClass::kAllocate, wire::MemoryKind::kManaged},      // cuMemAllocManaged
    {598, CallClass::kAllocate, wire::MemoryKind::kPool},         // cuMemAllocAsync
    {599, CallClass::kAllocate, wire::MemoryKind::kPool},         // …_ptsz
    {611, CallClass::kAllocate, wire::MemoryKind::kPool},         // cuMemAllocFromPoolAsync
    {612, CallClass::kAllocate, wire::MemoryKind::kPool},         // …_ptsz
    {600, CallClass::kFree, wire::MemoryKind::kPool},             // cuMemFreeAsync
    {601, CallClass::kFree, wire::MemoryKind::kPool},             // …_ptsz
    {39, CallClass::kAllocate, wire::MemoryKind::kPinned},        // cuMemHostAlloc
    {271, CallClass::kAllocate, wire::MemoryKind::kPinned},       // …_v2
    {294, CallClass::kAllocate, wire::MemoryKind::kPinned},       // cuMemAllocHost_v2
    {38, CallClass::kFree, wire::MemoryKind::kPinned},            // cuMemFreeHost
    {301, CallClass::kAdopt, wire::MemoryKind::kPinned},          // cuMemHostRegister
    {379, CallClass::kAdopt, wire::MemoryKind::kPinned},          // …_v2
    {302, CallClass::kFree, wire::MemoryKind::kPinned},           // cuMemHostUnregister
    {551, CallClass::kAdopt, wire::MemoryKind::kMapped},          // cuMemMap
    {552, CallClass::kRelease, wire::MemoryKind::kMapped},        // cuMemUnmap
};

struct OtherCall {
  std::uint16_t id;
  CallClass what;
};
inline constexpr OtherCall kWaitCalls[] = {
    {17, CallClass::kWaitForAll},      // cuCtxSynchronize
    {800, CallClass::kWaitForAll},     // …_v2
    {126, CallClass::kWaitForStream},  // cuStreamSynchronize
    {440, CallClass::kWaitForStream},  // …_ptsz
    {121, CallClass::kWaitForEvent},   // cuEventSynchronize
};
inline constexpr OtherCall kProfilerCalls[] = {{308, CallClass::kProfilerStart}, {309, CallClass::kProfilerStop}};
// cuStreamBeginCapture, _v2, cuStreamBeginCaptureToGraph, cuStreamEndCapture, each with its _ptsz
inline constexpr OtherCall kCaptureCalls[] = {{495, CallClass::kCaptureBegin}, {496, CallClass::kCaptureBegin},
                                              {539, CallClass::kCaptureBegin}, {540, CallClass::kCaptureBegin},
                                              {720, CallClass::kCaptureBegin}, {721, CallClass::kCaptureBegin},
                                              {497, CallClass::kCaptureEnd},   {498, CallClass::kCaptureEnd}};

// cuGraphInstantiate, _v2, WithFlags, WithParams, _ptsz
inline constexpr std::uint16_t kInstantiations[] = {513, 578, 643, 656, 657};

struct NodeCall {
  std::uint16_t id;
  NodeParameters node;
  std::uint8_t parameters;
};
inline constexpr NodeCall kNodeCalls[] = {
    {502, NodeParameters::kFirstKernelNode, 4},  // cuGraphAddKernelNode
    {689, NodeParameters::kKernelNode, 4},       // …_v2
    {712, NodeParameters::kAnyNode, 4},          // cuGraphAddNode
    {723, NodeParameters::kAnyNode, 5},          // …_v2
};

inline constexpr NodeCall kSetKernelCalls[] = {
    {521, NodeParameters::kFirstKernelNode, 1},  // cuGraphKernelNodeSetParams
    {691, NodeParameters::kKernelNode, 1},       // …_v2
    {713, NodeParameters::kAnyNode, 1},          // cuGraphNodeSetParams
    {538, NodeParameters::kFirstKernelNode, 2},  // cuGraphExecKernelNodeSetParams
    {692, NodeParameters::kKernelNode, 2},       // …_v2
    {714, NodeParameters::kAnyNode, 2},          // cuGraphExecNodeSetParams
};
inline constexpr std::uint16_t kUpdates[] = {561, 696};  // cuGraphExecUpdate, _v2

inline constexpr std::uint32_t kDriverCallIds = 1024;

// By number.
class DriverCallTable {
 public:
  constexpr DriverCallTable() {
    add(kKernelLaunches, CallClass::kLaunch, wire::LaunchOp::kKernel);
    add(kGraphLaunches, CallClass::kGraphLaunch, wire::LaunchOp::kGraph);
    add(kGraphUploads, CallClass::kUpload, wire::LaunchOp::kOther);
    add(kInstantiations, CallClass::kInstantiate, wire::LaunchOp::kOther);
    add(kCopies, CallClass::kLaunch, wire::LaunchOp::kCopy);
    add(kMemsets, CallClass::kLaunch, wire::LaunchOp::kMemset);
    for (const MemoryCall& call : kMemoryCalls)
      calls_[call.id] = {call.id, call.what, wire::LaunchOp::kOther, call.kind};
    for (const OtherCall& call : kWaitCalls) calls_[call.id] = {.id = call.id, .what = call.what};
    for (const OtherCall& call : kProfilerCalls) calls_[call.id] = {.id = call.id, .what = call.what};
    for (const OtherCall& call : kCaptureCalls) calls_[call.id] = {.id = call.id, .what = call.what};
    add(kNodeCalls, CallClass::kAddNode);
    add(kSetKernelCalls, CallClass::kSetKernel);
    add(kUpdates, CallClass::kUpdate, wire::LaunchOp::kOther);
  }
  constexpr const DriverCall& operator[](std::uint32_t id) const { return calls_[id < kDriverCallIds ? id : 0]; }

 private:
  constexpr void add(std::span<const std::uint16_t> ids, CallClass what, wire::LaunchOp op) {
    for (const std::uint16_t id : ids) calls_[id] = {.id = id, .what = what, .op = op};
  }
  constexpr void add(std::span<const NodeCall> calls, CallClass what) {
    for (const NodeCall& call : calls)
      calls_[call.id] = {.id = call.id, .what = what, .node = call.node, .parameters = call.parameters};
  }
  DriverCall calls_[kDriverCallIds]{};
};
inline constexpr DriverCallTable kDriverCalls;

}  // namespace llmprof::collect::cupti
