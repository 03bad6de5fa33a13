#pragma once
// Launches of a process by CUPTI's correlation id, until what they launched is seen. The ids count up, so the table is
// a ring over the newest of them: it grows while launches that nothing has used yet would be overwritten, up to a
// limit; then the oldest give way.

#include <cstdint>
#include <vector>

#include "trace/join.h"
#include "wire/format.h"

namespace llmprof::record {

struct CudaLaunch : trace::Launch {  // thread_id 0: there is no launch
  std::uint32_t correlation = 0;
  std::uint16_t number = 0;  // LaunchRecord::number
  bool used = false;
  bool estimated = false;  // what it ran was not recorded in time
};

class CudaLaunches {
 public:
  void add(const CudaLaunch& launch) {
    if (slots_.empty()) slots_.resize(kFirst);
    while (in_the_way(launch) && slots_.size() < kMost) grow();
    slot(launch.correlation) = launch;
  }

  const CudaLaunch* use(std::uint32_t correlation) {
    if (slots_.empty()) return nullptr;
    CudaLaunch& found = slot(correlation);
    if (found.thread_id == 0 || found.correlation != correlation) return nullptr;
    found.used = true;
    return &found;
  }

  // What it ran was not recorded, or does not count any more.
  void estimate(std::uint32_t correlation) {
    CudaLaunch& found = slot(correlation);
    if (found.correlation == correlation) found.used = found.estimated = true;
  }

 private:
  static constexpr std::size_t kFirst = 1u << 12, kMost = 1u << 19;

  CudaLaunch& slot(std::uint32_t correlation) { return slots_[correlation & (slots_.size() - 1)]; }
  bool in_the_way(const CudaLaunch& launch) {
    const CudaLaunch& old = slot(launch.correlation);
    return old.thread_id != 0 && !old.used && old.correlation != launch.correlation;
  }
  void grow() {
    std::vector<CudaLaunch> before(2 * slots_.size());
    before.swap(slots_);
    for (const CudaLaunch& launch : before) {
      if (launch.thread_id != 0) slot(launch.correlation) = launch;
    }
  }

  std::vector<CudaLaunch> slots_;
};

}  // namespace llmprof::record
