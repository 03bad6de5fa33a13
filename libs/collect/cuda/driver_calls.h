#pragma once
// The functions of the CUDA driver that we watch, by their number in CUPTI (cupti_driver_cbid.h). Numbers are never
// reused; a library that does not know one refuses it, and nothing else happens.

#include <cstdint>

#include "wire/format.h"

namespace llmprof::collect::cupti {

enum class CallClass : std::uint8_t {
  kNone = 0,
  kLaunch,         // gives the device work
  kGraphLaunch,    // its first argument is the executable graph
  kAllocate,       // arguments: where to put the address, bytes
  kAllocatePitch,  // where to put the address, where to put the pitch, width, height
  kAdopt,          // arguments: address, bytes
  kFree,           // argument: address
  kRelease,        // arguments: address, bytes
  kWait,           // the host waits for the device
  kProfilerStart,
  kProfilerStop,
};

struct DriverCall {
  std::uint16_t id;
  CallClass what;
  wire::LaunchOp op;
  wire::MemoryKind memory;
};

namespace rows {

constexpr DriverCall launch(std::uint16_t id, wire::LaunchOp op = wire::LaunchOp::kKernel) {
  return {id, CallClass::kLaunch, op, wire::MemoryKind::kDevice};
}
constexpr DriverCall copy(std::uint16_t id) { return launch(id, wire::LaunchOp::kCopy); }
constexpr DriverCall fill(std::uint16_t id) { return launch(id, wire::LaunchOp::kMemset); }
constexpr DriverCall graph(std::uint16_t id) {
  return {id, CallClass::kGraphLaunch, wire::LaunchOp::kGraph, wire::MemoryKind::kDevice};
}
constexpr DriverCall other(std::uint16_t id, CallClass what, wire::MemoryKind memory = wire::MemoryKind::kDevice) {
  return {id, what, wire::LaunchOp::kOther, memory};
}

}  // namespace rows

inline constexpr DriverCall kLaunchCalls[] = {
    // cuLaunch, cuLaunchGrid, cuLaunchGridAsync; cuLaunchKernel, …Ex, …CooperativeKernel, …MultiDevice; _ptsz of these
    rows::launch(115),
    rows::launch(116),
    rows::launch(117),
    rows::launch(307),
    rows::launch(442),
    rows::launch(652),
    rows::launch(653),
    rows::launch(477),
    rows::launch(478),
    rows::launch(480),
    rows::graph(514),
    rows::graph(515),  // cuGraphLaunch, _ptsz
    // cuMemcpyHtoD … cuMemcpy3D, the same asynchronous, their versions for 64 bits, _v2, _ptds and _ptsz
    rows::copy(43),
    rows::copy(44),
    rows::copy(45),
    rows::copy(46),
    rows::copy(47),
    rows::copy(48),
    rows::copy(49),
    rows::copy(50),
    rows::copy(51),
    rows::copy(52),
    rows::copy(53),
    rows::copy(54),
    rows::copy(55),
    rows::copy(56),
    rows::copy(57),
    rows::copy(58),
    rows::copy(59),
    rows::copy(60),
    rows::copy(61),
    rows::copy(62),
    rows::copy(63),
    rows::copy(64),
    rows::copy(65),
    rows::copy(66),
    rows::copy(67),
    rows::copy(68),
    rows::copy(69),
    rows::copy(70),
    rows::copy(232),
    rows::copy(233),
    rows::copy(234),
    rows::copy(248),
    rows::copy(276),
    rows::copy(277),
    rows::copy(278),
    rows::copy(279),
    rows::copy(280),
    rows::copy(281),
    rows::copy(282),
    rows::copy(283),
    rows::copy(284),
    rows::copy(285),
    rows::copy(286),
    rows::copy(287),
    rows::copy(288),
    rows::copy(289),
    rows::copy(290),
    rows::copy(291),
    rows::copy(292),
    rows::copy(293),
    rows::copy(305),
    rows::copy(306),
    rows::copy(318),
    rows::copy(319),
    rows::copy(320),
    rows::copy(321),
    rows::copy(397),
    rows::copy(398),
    rows::copy(399),
    rows::copy(400),
    rows::copy(401),
    rows::copy(402),
    rows::copy(403),
    rows::copy(404),
    rows::copy(405),
    rows::copy(406),
    rows::copy(407),
    rows::copy(408),
    rows::copy(409),
    rows::copy(410),
    rows::copy(418),
    rows::copy(419),
    rows::copy(420),
    rows::copy(421),
    rows::copy(422),
    rows::copy(423),
    rows::copy(424),
    rows::copy(425),
    rows::copy(426),
    rows::copy(427),
    // cuMemcpyBatchAsync, cuMemcpy3DBatchAsync, _v2, _ptsz
    rows::copy(776),
    rows::copy(777),
    rows::copy(778),
    rows::copy(779),
    rows::copy(796),
    rows::copy(797),
    rows::copy(798),
    rows::copy(799),
    // cuMemsetD8 … cuMemsetD2D32, the same asynchronous, for 64 bits, _v2, _ptds, _ptsz
    rows::fill(71),
    rows::fill(72),
    rows::fill(73),
    rows::fill(74),
    rows::fill(75),
    rows::fill(76),
    rows::fill(77),
    rows::fill(78),
    rows::fill(79),
    rows::fill(80),
    rows::fill(81),
    rows::fill(82),
    rows::fill(216),
    rows::fill(217),
    rows::fill(218),
    rows::fill(219),
    rows::fill(220),
    rows::fill(221),
    rows::fill(222),
    rows::fill(223),
    rows::fill(224),
    rows::fill(225),
    rows::fill(226),
    rows::fill(227),
    rows::fill(249),
    rows::fill(250),
    rows::fill(251),
    rows::fill(252),
    rows::fill(253),
    rows::fill(254),
    rows::fill(411),
    rows::fill(412),
    rows::fill(413),
    rows::fill(414),
    rows::fill(415),
    rows::fill(416),
    rows::fill(428),
    rows::fill(429),
    rows::fill(430),
    rows::fill(431),
    rows::fill(432),
    rows::fill(433),
};

inline constexpr DriverCall kMemoryCalls[] = {
    rows::other(243, CallClass::kAllocate),                              // cuMemAlloc_v2
    rows::other(244, CallClass::kAllocatePitch),                         // cuMemAllocPitch_v2
    rows::other(245, CallClass::kFree),                                  // cuMemFree_v2
    rows::other(371, CallClass::kAllocate, wire::MemoryKind::kManaged),  // cuMemAllocManaged
    rows::other(598, CallClass::kAllocate, wire::MemoryKind::kPool),     // cuMemAllocAsync
    rows::other(599, CallClass::kAllocate, wire::MemoryKind::kPool),     // …_ptsz
    rows::other(611, CallClass::kAllocate, wire::MemoryKind::kPool),     // cuMemAllocFromPoolAsync
    rows::other(612, CallClass::kAllocate, wire::MemoryKind::kPool),     // …_ptsz
    rows::other(600, CallClass::kFree, wire::MemoryKind::kPool),         // cuMemFreeAsync
    rows::other(601, CallClass::kFree, wire::MemoryKind::kPool),         // …_ptsz
    rows::other(39, CallClass::kAllocate, wire::MemoryKind::kPinned),    // cuMemHostAlloc
    rows::other(271, CallClass::kAllocate, wire::MemoryKind::kPinned),   // cuMemHostAlloc_v2
    rows::other(294, CallClass::kAllocate, wire::MemoryKind::kPinned),   // cuMemAllocHost_v2
    rows::other(38, CallClass::kFree, wire::MemoryKind::kPinned),        // cuMemFreeHost
    rows::other(301, CallClass::kAdopt, wire::MemoryKind::kPinned),      // cuMemHostRegister
    rows::other(379, CallClass::kAdopt, wire::MemoryKind::kPinned),      // cuMemHostRegister_v2
    rows::other(302, CallClass::kFree, wire::MemoryKind::kPinned),       // cuMemHostUnregister
    rows::other(551, CallClass::kAdopt, wire::MemoryKind::kMapped),      // cuMemMap
    rows::other(552, CallClass::kRelease, wire::MemoryKind::kMapped),    // cuMemUnmap
};

inline constexpr DriverCall kWaitCalls[] = {
    rows::other(17, CallClass::kWait),   // cuCtxSynchronize
    rows::other(800, CallClass::kWait),  // cuCtxSynchronize_v2
    rows::other(121, CallClass::kWait),  // cuEventSynchronize
    rows::other(126, CallClass::kWait),  // cuStreamSynchronize
    rows::other(440, CallClass::kWait),  // …_ptsz
};

inline constexpr DriverCall kProfilerCalls[] = {
    rows::other(308, CallClass::kProfilerStart),
    rows::other(309, CallClass::kProfilerStop),
};

inline constexpr std::uint32_t kDriverCallIds = 1024;

// By number.
struct DriverCallTable {
  constexpr DriverCallTable() {
    for (const DriverCall& call : kLaunchCalls) calls[call.id] = call;
    for (const DriverCall& call : kMemoryCalls) calls[call.id] = call;
    for (const DriverCall& call : kWaitCalls) calls[call.id] = call;
    for (const DriverCall& call : kProfilerCalls) calls[call.id] = call;
  }
  DriverCall calls[kDriverCallIds]{};
};
inline constexpr DriverCallTable kDriverCalls;

}  // namespace llmprof::collect::cupti
