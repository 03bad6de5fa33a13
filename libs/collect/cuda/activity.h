#pragma once
// CUPTI's activity: its records converted to ours, its buffers drained into the log.

#include "collect/cuda/cupti_abi.h"
#include "collect/state.h"
#include "collect/writer/output.h"

namespace llmprof::collect::cupti {

// CUPTI's activity records as records of the log. Pure conversion, on the writer's thread: no clock, no lock, no CUPTI.

// Kernels repeat: the definition of a name and launch configuration, found again without hashing the name. CUPTI hands
// out the same address for the same name; the text is compared, since addresses come back after a module is unloaded.
class ShapeCache {  // all zero bytes is an empty one
 public:
  wire::DefinitionId shape_of(const KernelActivity& kernel);

 private:
  static constexpr std::uint32_t kSlots = 4096;
  struct Slot {
    const char* address;
    wire::Record record;  // id 0 in it
    wire::DefinitionId id;
  };

  Slot slots_[kSlots];
};

enum class Converted : std::uint8_t {
  kRecord,
  kZeroTimes,  // CUPTI had lost them
  kUnknown,    // a kind that we do not know
};

// Fills `record`. Times are as CUPTI has them.
Converted convert(const Activity* activity, ShapeCache* shapes, wire::Record* record);

// What CUPTI's buffers hold, into the log. On the writer's thread: parsing takes about 100 ns a record, and a flush
// that waits inside CUPTI waits on another thread.

}  // namespace llmprof::collect::cupti

namespace llmprof::collect {

class GpuDrain {
 public:
  explicit GpuDrain(Output* output) : output_(output) {}

  // Every buffer that was returned so far.
  void run();

 private:
  void read(std::uint8_t* buffer, std::size_t valid);
  void add(const wire::Record& record);
  void flush();

  Output* output_;
  std::uint64_t clock_offset_ns_ = 0;  // wall time less ours, where CUPTI has wall time
};

}  // namespace llmprof::collect
