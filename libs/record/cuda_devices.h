#pragma once
// The GPUs of a run: one row for each physical device, whatever number a process or the driver gives it. The recorder's
// list comes first; what processes say is joined to it by UUID, or by name where the list has no UUIDs.

#include <cstdint>
#include <string>
#include <vector>

#include "hw/device.h"
#include "hw/peaks.h"
#include "trace/rows.h"

namespace llmprof::trace {
class RunWriter;
}

namespace llmprof::record {

struct Uuid {
  std::uint64_t high = 0, low = 0;  // 0, 0: unknown
  bool known() const { return high != 0 || low != 0; }
  friend bool operator==(const Uuid&, const Uuid&) = default;
};
std::string to_text(const Uuid& uuid);  // "GPU-…", as the driver writes it; "" if unknown

class CudaDevices {
 public:
  // Of the recorder's list.
  void add(const hw::Device& device, std::vector<hw::Peak> peaks, trace::Id& next_id);
  // Of a process, or of telemetry: the id of the device that this is.
  trace::Id find(const Uuid& uuid, const hw::Device& device, trace::Id& next_id);
  bool has(const std::string& name) const;
  void write(trace::RunWriter& writer) const;

 private:
  static constexpr std::size_t kMost = 4096;  // a log may name any number
  struct Known {
    trace::Id id = 0;
    Uuid uuid;
    hw::Device device;
    std::vector<hw::Peak> peaks;
  };
  std::vector<Known> devices_;
};

// Rows of one device and its peaks, of a CPU too.
void write_device(trace::RunWriter& writer, trace::Id id, const hw::Device& device, const std::vector<hw::Peak>& peaks,
                  const std::string& uuid);

}  // namespace llmprof::record
