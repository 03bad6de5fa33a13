#pragma once
// What CUPTI's buffers hold, into the log. On the writer's thread: parsing takes about 100 ns a record, and a flush
// that waits inside CUPTI waits on another thread.

#include "collect/output.h"

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
