#include "importers/chrome_json/memory.h"

#include <algorithm>

namespace llmprof::importers::chrome_json {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::size_t kMaxDevices = 4096;

}  // namespace

trace::AllocationRow Memory::row_of(const Key& key, std::int64_t bytes, std::int64_t begin_ns,
                                    const Lanes::Thread& thread) {
  trace::AllocationRow row;
  row.id = sink_.new_id();
  row.begin_ns = begin_ns;
  row.bytes = bytes;
  if (key.device >= 0) {
    row.device_id = lanes_.device(key.device);
    row.kind = names_("pool");
  }
  row.process_id = thread.process_id;
  return row;
}

void Memory::emit(const trace::AllocationRow& row) {
  if (wait_for_stacks_ && row.thread_id && held_.size() < kMaxHeld) return held_.push_back(row);
  if (wait_for_stacks_) sink_.lose(trace::Loss::kInputLimit, 1, "allocations whose stacks were not worked out");
  sink_.add(row);
}

void Memory::allocate(const Event& event, const Key& key, const Lanes::Thread& thread) {
  const auto found = open_.find(key);
  if (found != open_.end()) {  // its end was not recorded
    found->second.end_ns = std::max(found->second.begin_ns, event.ts_ns);
    emit(found->second);
    open_.erase(found);
  }
  trace::AllocationRow row = row_of(key, event.args.bytes, event.ts_ns, thread);
  row.address = event.args.address;
  row.thread_id = thread.id;
  if (open_.size() < kMaxOpen) {
    open_.emplace(key, row);
    return;
  }
  sink_.lose(trace::Loss::kInputLimit, 1, "allocations open at once: their end is not known");
  emit(row);
}

void Memory::free(const Event& event, const Key& key, Device& device, const Lanes::Thread& thread) {
  const auto found = open_.find(key);
  if (found != open_.end()) {
    found->second.end_ns = std::max(found->second.begin_ns, event.ts_ns);
    emit(found->second);
    open_.erase(found);
    return;
  }
  trace::AllocationRow row = row_of(key, -event.args.bytes, device.first_ns, thread);
  row.address = event.args.address;
  row.end_ns = std::max(device.first_ns, event.ts_ns);
  device.before_bytes = std::max<std::int64_t>(0, device.before_bytes + event.args.bytes);
  sink_.add(row);
}

void Memory::read_totals(const Event& event, std::int64_t ordinal, Device& device) {
  const auto reading = [&](std::string_view metric, std::int64_t bytes) {
    trace::TelemetryRow row;
    row.ts_ns = event.ts_ns;
    row.device_id = lanes_.device(ordinal);
    row.metric = names_(metric);
    row.value = static_cast<double>(bytes);
    row.unit = names_("B");
    sink_.add(row);
  };
  if (event.args.total_allocated != kUnknown) reading("allocator_allocated_bytes", event.args.total_allocated);
  if (event.args.total_reserved == kUnknown || event.args.total_reserved == device.reserved_bytes) return;
  device.reserved_bytes = event.args.total_reserved;
  reading("allocator_reserved_bytes", device.reserved_bytes);
}

void Memory::take(const Event& event, const Lanes::Thread& thread) {
  const Arguments& args = event.args;
  if (args.bytes == kUnknown || args.address == kUnknown || args.bytes == 0 || args.bytes > kMaxBytes ||
      args.bytes < -kMaxBytes || (args.device >= static_cast<std::int64_t>(kMaxDevices))) {
    sink_.lose(trace::Loss::kInputDamaged, 1, "memory events without size or address");
    return;
  }
  const bool on_device = args.device_type != 0 && args.device_type != kUnknown && args.device >= 0;
  const Key key{on_device ? args.device : -1, args.address};
  Device& device = devices_[key.device];
  if (!device.seen) {
    device.seen = true;
    device.first_ns = event.ts_ns;
    device.thread = thread;
    if (on_device && args.total_allocated != kUnknown && args.total_allocated <= kMaxBytes) {
      device.before_bytes = std::max<std::int64_t>(0, args.total_allocated - args.bytes);
    }
  }
  device.first_ns = std::min(device.first_ns, event.ts_ns);
  if (on_device) read_totals(event, key.device, device);
  if (args.bytes > 0) {
    allocate(event, key, thread);
  } else {
    free(event, key, device, thread);
  }
}

void Memory::finish() {
  for (auto& [key, row] : open_) emit(row);
  open_.clear();
  for (const auto& [ordinal, device] : devices_) {
    if (ordinal >= 0 && device.before_bytes > 0) {
      sink_.add(row_of({ordinal, 0}, device.before_bytes, device.first_ns, device.thread));
    }
  }
  devices_.clear();
  for (trace::AllocationRow& row : held_) {
    row.stack_id = stacks_.at(*row.thread_id, row.begin_ns);
    sink_.add(row);
  }
  held_.clear();
}

}  // namespace llmprof::importers::chrome_json
