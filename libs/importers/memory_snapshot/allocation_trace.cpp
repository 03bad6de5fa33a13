#include "importers/memory_snapshot/allocation_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace llmprof::importers {

using trace::Loss;

void AllocationTrace::take(const AllocatorEvent& event) {
  ++events_;
  if (!first_ns_) first_ns_ = event.ts_ns;
  const std::string_view action = event.action;
  if (action == "alloc") return allocated(event);
  if (action == "free_completed" || action == "free") return freed(event);
  if (action == "free_requested") return;  // its memory waits for a stream
  if (action == "segment_alloc" || action == "segment_map") return mapped(event);
  if (action == "segment_free" || action == "segment_unmap") return unmapped(event);
  if (action == "oom") return out_of_memory(event);
  if (action == "snapshot") {
    snapshot_ns_ = event.ts_ns;
  } else {
    sink_.lose(Loss::kInputIgnored, 1, "events of an unknown kind");
  }
}

void AllocationTrace::allocated(const AllocatorEvent& event) {
  if (open_.size() >= kMaxOpen) return sink_.lose(Loss::kInputLimit, 1, "allocations at the same time");
  const Open open{event.ts_ns, event.bytes, event.stack_id};
  const auto [place, added] = open_.try_emplace(event.address, open);
  if (added) return;
  sink_.lose(Loss::kInputDamaged, 1, "allocations whose end is missing");
  write("tensor", event.address, place->second, event.ts_ns);
  place->second = open;
}

void AllocationTrace::freed(const AllocatorEvent& event) {
  const auto found = open_.find(event.address);
  if (found == open_.end()) {
    ++older_;
    return write("tensor", event.address, {*first_ns_, event.bytes, {}}, event.ts_ns);
  }
  write("tensor", event.address, found->second, event.ts_ns);
  open_.erase(found);
}

void AllocationTrace::mapped(const AllocatorEvent& event) {
  if (segments_.size() >= kMaxOpen) return sink_.lose(Loss::kInputLimit, 1, "segments at the same time");
  const Open open{event.ts_ns, event.bytes, event.stack_id};
  const auto [place, added] = segments_.try_emplace(event.address, open);
  if (added) return;
  sink_.lose(Loss::kInputDamaged, 1, "segments whose end is missing");
  write("segment", event.address, place->second, event.ts_ns);
  place->second = open;
}

// What is given back may be a part of what was taken, or several parts of it.
void AllocationTrace::unmapped(const AllocatorEvent& event) {
  const std::int64_t begin = event.address, end = event.address + event.bytes;
  std::int64_t known = 0;
  auto at = segments_.upper_bound(begin);
  if (at != segments_.begin()) --at;
  while (at != segments_.end() && at->first < end) {
    const std::int64_t from = at->first, to = at->first + at->second.bytes;
    const Open whole = at->second;
    if (to <= begin) {
      ++at;
      continue;
    }
    at = segments_.erase(at);
    const std::int64_t cut_from = std::max(from, begin), cut_to = std::min(to, end);
    if (from < cut_from) segments_[from] = {whole.begin_ns, cut_from - from, whole.stack_id};
    if (to > cut_to) at = segments_.insert_or_assign(cut_to, Open{whole.begin_ns, to - cut_to, whole.stack_id}).first;
    write("segment", cut_from, {whole.begin_ns, cut_to - cut_from, whole.stack_id}, event.ts_ns);
    known += cut_to - cut_from;
    if (to > cut_to) break;
  }
  if (known < event.bytes) write("segment", begin, {*first_ns_, event.bytes - known, {}}, event.ts_ns);
}

void AllocationTrace::out_of_memory(const AllocatorEvent& event) {
  std::string text =
      fmt::format("PyTorch could not get {} of device memory", base::human_bytes(static_cast<double>(event.bytes)));
  if (event.device_free_bytes) {
    text +=
        fmt::format("; {} were free on the device", base::human_bytes(static_cast<double>(*event.device_free_bytes)));
  }
  sink_.add(trace::NoteRow{
      .ts_ns = event.ts_ns, .process_id = {}, .subject = sink_.name("out of memory"), .text = sink_.name(text)});
}

void AllocationTrace::there_at_end(std::int64_t address, std::int64_t bytes, trace::OptionalId stack_id) {
  if (!first_ns_ || open_.contains(address)) return;
  ++older_;
  write("tensor", address, {*first_ns_, bytes, stack_id}, {});
}

void AllocationTrace::segment_at_end(std::int64_t address, std::int64_t bytes, trace::OptionalId stack_id) {
  if (!first_ns_) return;
  std::int64_t known = 0;
  auto at = segments_.upper_bound(address);
  if (at != segments_.begin()) --at;
  for (; at != segments_.end() && at->first < address + bytes; ++at) {
    known += std::max<std::int64_t>(
        0, std::min(address + bytes, at->first + at->second.bytes) - std::max(address, at->first));
  }
  if (known < bytes) write("segment", address, {*first_ns_, bytes - known, stack_id}, {});
}

void AllocationTrace::finish() {
  for (const auto& [address, open] : open_) write("tensor", address, open, {});
  for (const auto& [address, open] : segments_) write("segment", address, open, {});
}

void AllocationTrace::write(std::string_view kind, std::int64_t address, const Open& open, trace::OptionalInt end_ns) {
  if (end_ns && *end_ns < open.begin_ns) return sink_.lose(Loss::kBadTime, 1, "allocations that end before they begin");
  sink_.add(trace::AllocationRow{.id = sink_.new_id(),
                                 .begin_ns = open.begin_ns,
                                 .end_ns = end_ns,
                                 .bytes = open.bytes,
                                 .address = address,
                                 .device_id = device_id_,
                                 .stack_id = open.stack_id,
                                 .kind = sink_.name(kind),
                                 .process_id = 0,  // the snapshot does not say
                                 .thread_id = {}});
}

}  // namespace llmprof::importers
