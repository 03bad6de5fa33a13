#pragma once
// Profiled launches as rows: processes, devices, kernels one behind the other, and their counters.

#include <map>
#include <string>
#include <string_view>

#include "importers/sink.h"

namespace llmprof::importers::ncu {

// What stands in a device's attributes, where the file has them. 0 and "": it does not.
struct DeviceFacts {
  std::string name;
  double units = 0, memory_bytes = 0, cache_bytes = 0, clock_khz = 0;
};

// One launch, while its values are read.
struct Launch {
  trace::Id id = 0;
  std::int64_t pid = 0, device = 0;
  std::string process, compute_capability;
  trace::KernelRow row;
  double duration_ns = -1;  // -1: not among the metrics
  double static_shared = -1, dynamic_shared = -1;
  std::int32_t passes = 0;
  DeviceFacts facts;
};

class Kernels {
 public:
  explicit Kernels(Sink& sink) : sink_(sink) {}

  void begin(Launch& launch) { launch.id = sink_.new_id(); }
  void add_counter(const Launch& launch, trace::Name metric, trace::Name unit, double value);
  void finish(Launch& launch);  // the kernel's row, behind the last
  void notes();                 // at the end: what times and values mean
  std::int64_t count() const { return count_; }

 private:
  struct Process {
    trace::Id id = 0, thread = 0;
  };
  Process& process_of(const Launch& launch);
  trace::Id device_of(const Launch& launch);

  Sink& sink_;
  std::map<std::int64_t, Process> processes_;
  std::map<std::int64_t, trace::Id> devices_;
  std::int64_t now_ns_ = 0, count_ = 0, untimed_ = 0;
  trace::Name scope_, method_;
};

}  // namespace llmprof::importers::ncu
