#pragma once
// What calls of a device's host API do, told from their names. For every trace that names calls.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "importers/sink.h"

namespace llmprof::importers {

enum class NodeKind : std::uint8_t { kKernel, kCopy, kFill };

struct CudaCall {
  enum class Does : std::uint8_t { kUnseen, kNothing, kLaunches, kLaunchesGraph, kBeginsCapture, kEndsCapture };
  Does does = Does::kUnseen;
  NodeKind work = NodeKind::kKernel;  // what a node of a graph is that captured this call
  bool waits = false;                 // the host waits for the device
  bool may_launch = false;            // false: it is known never to; such calls come by the thousand
  bool looks_up = false;              // of these there can be more than launches: they would be most of a run
};

inline CudaCall cuda_call(std::string_view function) {
  const auto has = [&](std::string_view part) { return function.find(part) != std::string_view::npos; };
  const auto has_any = [&](const auto& parts) {
    for (const std::string_view part : parts) {
      if (has(part)) return true;
    }
    return false;
  };
  using Does = CudaCall::Does;
  constexpr std::array<std::string_view, 8> kNeverLaunch{"Get",         "Query", "Attribute", "Occupancy",
                                                         "Synchronize", "Event", "Capturing", "StreamCreate"};
  constexpr std::array<std::string_view, 6> kLookUps{"GetProcAddress", "KernelGet",    "FuncGet",
                                                     "LibraryGet",     "GetLastError", "PeekAtLastError"};
  const bool copies = has("Memcpy"), moves = copies || has("Memset");
  CudaCall call;
  call.does = has("GraphLaunch")                                            ? Does::kLaunchesGraph
              : has("BeginCapture")                                         ? Does::kBeginsCapture
              : has("EndCapture")                                           ? Does::kEndsCapture
              : moves || has("Launch") || has("Prefetch") || has("Enqueue") ? Does::kLaunches
                                                                            : Does::kNothing;
  if (moves) call.work = has("Memset") ? NodeKind::kFill : NodeKind::kCopy;
  call.waits = has("Synchronize") || (copies && !has("Async"));
  call.may_launch = !has_any(kNeverLaunch);
  call.looks_up = has_any(kLookUps);
  return call;
}

// The same by name of the run, each looked at once.
class CudaCalls {
 public:
  explicit CudaCalls(Sink& sink) : sink_(sink) {}
  const CudaCall& of(trace::Name name) {
    if (name.id >= calls_.size()) calls_.resize(name.id + 1024);
    CudaCall& call = calls_[name.id];
    if (call.does == CudaCall::Does::kUnseen) call = cuda_call(sink_.names().text(name));
    return call;
  }

 private:
  Sink& sink_;
  std::vector<CudaCall> calls_;  // by the number of the name
};

}  // namespace llmprof::importers
