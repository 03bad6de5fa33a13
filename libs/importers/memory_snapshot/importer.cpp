// PyTorch memory snapshot (torch.cuda.memory._dump_snapshot): a pickle of plain values.

#include <fmt/format.h>

#include <algorithm>

#include "importers/importer.h"
#include "importers/memory_snapshot/pickle.h"
#include "importers/memory_snapshot/snapshot.h"

namespace llmprof::importers {
namespace memory_snapshot {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";

bool is_torch_save(std::string_view head) {
  return head.starts_with(kZip) && head.find("data.pkl") != std::string_view::npos;
}

// "cos\nsystem\n": a pickle of protocol 0 whose first object is code.
bool begins_with_global(std::string_view head) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  if (!head.starts_with('c')) return false;
  const std::size_t module = head.find_first_not_of(kName, 1);
  if (module == std::string_view::npos || module == 1 || head[module] != '\n') return false;
  const std::size_t name = head.find_first_not_of(kName, module + 1);
  return name != std::string_view::npos && name > module + 1 && head[name] == '\n' &&
         head.substr(name + 1, 1).find_first_of("(pqR)") == 0;
}

int sniff(std::string_view head) {
  if (is_torch_save(head)) return 60;  // refused, with what it is
  const bool binary = head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] < 16;
  const bool text = head.starts_with("(dp") || head.starts_with("(lp") || head.starts_with("}q") ||
                    head.starts_with("]q") || head.starts_with("(S'") || begins_with_global(head);
  if (!binary && !text) return 0;
  const bool keys =
      head.find("segments") != std::string_view::npos || head.find("total_size") != std::string_view::npos;
  return keys ? 95 : 40;
}

Result<void> parse(Input& input, Sink& sink) {
  LLMPROF_LET(const std::string_view head, input.head());
  if (head.starts_with(kZip)) {
    return Error{ErrorCode::kUnsupported,
                 is_torch_save(head) ? "byte 0: a zip file as torch.save writes it, not a memory snapshot"
                                     : "byte 0: a zip file, not a memory snapshot",
                 "torch.cuda.memory._dump_snapshot(\"FILE\") writes a snapshot; unpack a zip file first"};
  }
  sink.set_clock({.wall_of_zero_ns = 0, .name = "PyTorch's allocator: microseconds since 1970"});
  sink.set_facts({.tool = "PyTorch memory snapshot", .command = "", .host = "", .model_config = "", .rank = ""});
  Snapshot snapshot(sink);
  PickleReader reader(input, sink, snapshot);
  LLMPROF_LET(const PickleValue root, reader.read());
  return snapshot.finish(reader.heap(), root);
}

}  // namespace
}  // namespace memory_snapshot

extern const Importer kMemorySnapshot;
const Importer kMemorySnapshot{"memory-snapshot", "PyTorch memory snapshot, pickle", Role::kReadings,
                               memory_snapshot::sniff, memory_snapshot::parse};

// What of a snapshot can be written only when all of it was read: devices, segments, blocks, annotations, notes.

namespace {

using trace::Loss;

std::optional<PickleValue> list_at(const PickleHeap& heap, PickleValue root, std::string_view key) {
  if (!root.is_object()) return std::nullopt;
  const auto value = heap.find(root.number(), key);
  if (!value || !value->is_object()) return std::nullopt;
  return heap.object(value->number()).type == PickleHeap::Type::kList ? value : std::nullopt;
}

std::string setting_text(const PickleHeap& heap, PickleValue value) {
  using Kind = PickleValue::Kind;
  switch (value.kind()) {
    case Kind::kBool:
      return value.as_bool() ? "True" : "False";
    case Kind::kInt:
      return std::to_string(*value.as_int());
    case Kind::kFloat:
      return fmt::format("{:.6g}", value.as_real());
    case Kind::kText:
      return shown(heap.text(value));
    default:
      return "";
  }
}

}  // namespace

Result<void> Snapshot::finish(PickleHeap& heap, PickleValue root) {
  LLMPROF_LET(const std::vector<std::uint32_t> segments, find_segments(heap, root));
  write_segments(segments);
  std::int64_t older = 0;
  std::optional<std::int64_t> first_ns;
  for (const auto& [list, trace] : traces_) {
    older += trace->older();
    if (!first_ns || trace->first_ns() < first_ns) first_ns = trace->first_ns();
    trace->finish();
  }
  write_ranges();
  write_notes(heap, root);
  if (older > 0) {
    sink_.note("allocator",
               fmt::format("{} allocations are older than the recorded history: they are shown "
                           "from its first event on",
                           older),
               first_ns.value_or(0));
  }
  if (segments.empty() && traces_.empty()) sink_.lose(Loss::kNoDeviceWork, 1, "no segments and no events");
  return {};
}

Result<std::vector<std::uint32_t>> Snapshot::find_segments(PickleHeap& heap, PickleValue root) const {
  auto list = list_at(heap, root, "segments");
  const bool whole = list.has_value() || list_at(heap, root, "device_traces").has_value();
  if (!list && root.is_object() && heap.object(root.number()).type == PickleHeap::Type::kList) list = root;
  std::vector<std::uint32_t> found;
  if (list) {
    for (const PickleValue member : heap.members(list->number())) {
      if (const auto* segment = heap.record(member, kSegment)) found.push_back(segment->payload);
    }
  }
  if (!found.empty() || whole) return found;
  return Error{ErrorCode::kUnsupported,
               fmt::format("byte 0: a pickle, but no memory snapshot: it is {}", heap.describe(root)),
               "torch.cuda.memory._dump_snapshot(\"FILE\") writes one"};
}

// -1: it is not known which; all such are one.
trace::Id Snapshot::device_id(std::int64_t ordinal) {
  const auto [place, added] = devices_.try_emplace(ordinal, 0);
  if (added) {
    place->second = sink_.new_id();
    trace::DeviceRow row{.id = place->second, .kind = sink_.name("gpu")};
    if (ordinal >= 0) row.ordinal = ordinal;
    sink_.add(row);
  }
  return place->second;
}

void Snapshot::write_segments(const std::vector<std::uint32_t>& segments) {
  for (const std::uint32_t number : segments) {
    const Segment& segment = segments_[number];
    const auto found = traces_by_device_.find(segment.device);
    AllocationTrace* trace = found == traces_by_device_.end() ? nullptr : found->second;
    trace::MemorySegmentRow row{.id = sink_.new_id(),
                                .ts_ns = {},
                                .device_id = device_id(segment.device),
                                .address = segment.address,
                                .bytes = segment.bytes,
                                .allocated_bytes = segment.allocated_bytes,
                                .active_bytes = segment.active_bytes,
                                .requested_bytes = segment.requested_bytes,
                                .stream = segment.stream,
                                .kind = segment.kind,
                                .expandable = segment.expandable,
                                .stack_id = {}};
    if (segment.stack != 0) row.stack_id = segment.stack;
    if (trace != nullptr) {
      row.ts_ns = trace->snapshot_ns();
      trace->segment_at_end(segment.address, segment.bytes, row.stack_id);
    }
    sink_.add(row);
    write_blocks(segment, row.id, trace);
  }
}

// Older snapshots do not tell addresses of blocks: they lie one behind the other.
void Snapshot::write_blocks(const Segment& segment, trace::Id segment_id, AllocationTrace* trace) {
  std::int64_t next = segment.address;
  for (const std::uint32_t number : segment.blocks) {
    const Block& block = blocks_[number];
    trace::MemoryBlockRow row{.memory_segment_id = segment_id,
                              .address = block.address != 0 ? block.address : next,
                              .bytes = block.bytes,
                              .requested_bytes = {},
                              .state = {block.state},
                              .stack_id = {}};
    if (block.requested_bytes >= 0) row.requested_bytes = block.requested_bytes;
    if (block.stack != 0) row.stack_id = block.stack;
    sink_.add(row);
    const bool active = sink_.names().text(row.state).starts_with("active");
    if (trace != nullptr && active)
      trace->there_at_end(row.address, row.requested_bytes.value_or(row.bytes), row.stack_id);
    next = row.address + row.bytes;
  }
}

// Ranges of torch.profiler.record_function, as the allocator noted them. An end closes the last of its name.
void Snapshot::write_ranges() {
  if (annotations_.empty()) return;
  std::ranges::stable_sort(annotations_, {}, &Annotation::ts_ns);
  const trace::Id thread_id = sink_.new_id();
  sink_.add(trace::ThreadRow{.id = thread_id,
                             .process_id = 0,
                             .tid = 0,
                             .name = sink_.name("annotations of the memory snapshot"),
                             .begin_ns = annotations_.front().ts_ns,
                             .end_ns = annotations_.back().ts_ns});
  std::vector<Annotation> open;
  const auto write = [&](const Annotation& range, std::int64_t end_ns, bool closed) {
    sink_.add(trace::RangeRow{.id = sink_.new_id(),
                              .begin_ns = range.ts_ns,
                              .end_ns = end_ns,
                              .name = range.name,
                              .kind = sink_.name("start_end"),
                              .process_id = 0,
                              .thread_id = thread_id,
                              .closed = closed,
                              .source = sink_.name("memory-snapshot")});
  };
  for (const Annotation& annotation : annotations_) {
    if (annotation.begins) {
      if (open.size() < 10'000) open.push_back(annotation);
      continue;
    }
    const auto begin = std::ranges::find_if(open.rbegin(), open.rend(), [&](const Annotation& range) {
      return range.name == annotation.name && range.device == annotation.device;
    });
    if (begin == open.rend()) continue;  // began before the history
    write(*begin, annotation.ts_ns, true);
    open.erase(std::next(begin).base());
  }
  for (const Annotation& range : open) write(range, annotations_.back().ts_ns, false);
  sink_.lose(Loss::kOpenRange, static_cast<std::int64_t>(open.size()));
}

void Snapshot::write_notes(PickleHeap& heap, PickleValue root) {
  if (!root.is_object()) return;
  const auto settings = heap.find(root.number(), "allocator_settings");
  if (!settings || !settings->is_object() || heap.object(settings->number()).type != PickleHeap::Type::kDict) return;
  const std::vector<PickleValue>& pairs = heap.members(settings->number());
  std::string text;
  for (std::size_t i = 0; i + 1 < pairs.size() && i < 64; i += 2) {
    const std::string value = setting_text(heap, pairs[i + 1]);
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", shown(heap.text(pairs[i])), value);
  }
  if (text.empty()) return;
  const auto first = traces_.empty() ? std::nullopt : traces_.begin()->second->first_ns();
  sink_.note("allocator", "settings: " + text, first.value_or(0));
}

}  // namespace llmprof::importers
