#include "importers/memory_snapshot/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace llmprof::importers {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Key::kCount)> kTexts{
    "action",         "addr",          "address",  "active_size", "allocated_size", "blocks", "device",
    "device_free",    "is_expandable", "filename", "frames",      "line",           "name",   "segment_pool_id",
    "requested_size", "segment_type",  "size",     "stage",       "state",          "stream", "time_us",
    "total_size"};

}  // namespace

// Texts are numbered by the heap; what a number means is found once.
Key SnapshotFields::key_of(const PickleHeap& heap, PickleValue text) {
  constexpr std::size_t kMostKnown = 1 << 16;  // keys come early
  const std::size_t number = text.number();
  if (number < known_.size() && known_[number] != Key::kCount) return known_[number];
  Key key = Key::kOther;
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (heap.text(text) == kTexts[i]) key = static_cast<Key>(i);
  }
  if (number < kMostKnown) {
    if (known_.size() <= number) known_.resize(number + 1, Key::kCount);
    known_[number] = key;
  }
  return key;
}

void SnapshotFields::read(const PickleHeap& heap, PickleHeap::Id dict) {
  values_.fill(std::nullopt);
  const std::vector<PickleValue>& pairs = heap.members(dict);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i].kind() != PickleValue::Kind::kText) continue;
    const Key key = key_of(heap, pairs[i]);
    if (key != Key::kOther) values_[at(key)] = pairs[i + 1];
  }
}

using trace::Loss;

// Something begins at an address; what was open there has ended without being told.
template <class Map>
void AllocationTrace::begin(Map& open, std::string_view kind, const AllocatorEvent& event) {
  if (open.size() >= kMaxOpen)
    return sink_.lose(Loss::kInputLimit, 1,
                      kind == "tensor" ? "allocations at the same time" : "segments at the same time");
  const Open begun{event.ts_ns, event.bytes, event.stack_id};
  const auto [place, added] = open.try_emplace(event.address, begun);
  if (added) return;
  sink_.lose(Loss::kInputDamaged, 1,
             kind == "tensor" ? "allocations whose end is missing" : "segments whose end is missing");
  write(kind, event.address, place->second, event.ts_ns);
  place->second = begun;
}

void AllocationTrace::take(const AllocatorEvent& event) {
  ++events_;
  if (!first_ns_) first_ns_ = event.ts_ns;
  const std::string_view action = event.action;
  if (action == "alloc") return begin(open_, "tensor", event);
  if (action == "free_completed" || action == "free") return freed(event);
  if (action == "free_requested") return;  // its memory waits for a stream
  if (action == "segment_alloc" || action == "segment_map") return begin(segments_, "segment", event);
  if (action == "segment_free" || action == "segment_unmap") return unmapped(event);
  if (action == "oom") return out_of_memory(event);
  if (action == "snapshot") {
    snapshot_ns_ = event.ts_ns;
  } else {
    sink_.lose(Loss::kInputIgnored, 1, "events of an unknown kind");
  }
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
  sink_.note("out of memory", text, event.ts_ns);
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

namespace {

using trace::Loss;

constexpr std::size_t kMaxTraces = 1024;                    // devices
constexpr std::int64_t kMaxTimeUs = std::int64_t{1} << 52;  // the year 2112
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 56;
constexpr std::size_t kMaxAnnotations = 1'000'000;

trace::OptionalId id_of(std::uint32_t number) { return number == 0 ? trace::OptionalId() : trace::OptionalId(number); }

bool is_python(std::string_view file) { return file.ends_with(".py") || file.starts_with("<"); }

// Addresses and sizes are added up.
bool fits(std::optional<std::int64_t> value) { return value && *value >= 0 && *value < kMaxBytes; }

}  // namespace

Snapshot::Snapshot(Sink& sink) : sink_(sink) {}

std::size_t Snapshot::held_bytes() const {
  std::size_t bytes = frames_.size() * 56 + stacks_.size() * 56 + blocks_.size() * sizeof(Block) +
                      segments_.size() * sizeof(Segment) + annotations_.size() * sizeof(Annotation);
  for (const auto& [list, trace] : traces_) bytes += trace->held_bytes();
  return bytes;
}

void Snapshot::dict_done(PickleHeap& heap, PickleHeap::Id dict) {
  fields_.read(heap, dict);
  if (fields_.has(Key::kFilename) && fields_.has(Key::kLine)) return frame_done(heap, dict);
  if (fields_.has(Key::kAction) && fields_.has(Key::kSize)) return event_done(heap, dict);
  if (fields_.has(Key::kBlocks) && fields_.has(Key::kTotalSize)) return segment_done(heap, dict);
  if (fields_.has(Key::kState) && fields_.has(Key::kSize)) return block_done(heap, dict);
  if (fields_.has(Key::kStage) && fields_.has(Key::kTime)) return annotation_done(heap, dict);
}

bool Snapshot::take(PickleHeap& heap, std::span<const PickleValue> stack, const PickleHeap::Object& record) {
  if (record.record_type == kAnnotation) return true;
  if (record.record_type != kEvent) return false;
  if (record.payload == 0) return true;  // was not usable, and is counted
  if (record.payload != event_number_) {
    sink_.lose(Loss::kInputDamaged, 1, "events that stand in several places");
    return true;
  }
  if (AllocationTrace* trace = trace_of(heap, stack)) trace->take(event_);
  return true;
}

// device_traces is a list of lists, one per device: the place of this one among them is the number of the device.
static std::int64_t ordinal_of(const PickleHeap& heap, std::span<const PickleValue> stack) {
  std::size_t outer = stack.size() - 1;
  const auto is_list = [&](std::size_t at) {
    return stack[at].is_object() && heap.object(stack[at].number()).type == PickleHeap::Type::kList;
  };
  while (outer > 0 && is_list(outer - 1)) --outer;
  if (outer == 0 || outer == stack.size() - 1 || heap.text(stack[outer - 1]) != "device_traces") return -1;
  return static_cast<std::int64_t>(heap.members(stack[outer].number()).size() + stack.size() - outer - 2);
}

AllocationTrace* Snapshot::trace_of(const PickleHeap& heap, std::span<const PickleValue> stack) {
  const PickleHeap::Id list = stack.back().number();
  const auto found = traces_.find(list);
  if (found != traces_.end()) return found->second.get();
  if (traces_.size() >= kMaxTraces) {
    sink_.lose(Loss::kInputLimit, 1, "lists of events");
    return nullptr;
  }
  const std::int64_t ordinal = ordinal_of(heap, stack);
  auto made = std::make_unique<AllocationTrace>(sink_, device_id(ordinal));
  if (ordinal >= 0) traces_by_device_.emplace(ordinal, made.get());
  return traces_.emplace(list, std::move(made)).first->second.get();
}

void Snapshot::frame_done(PickleHeap& heap, PickleHeap::Id dict) {
  const auto name = fields_.value(Key::kName).value_or(PickleValue());
  const auto file = *fields_.value(Key::kFilename);
  const FrameKey key{name.number(), file.number(), fields_.integer(Key::kLine).value_or(0)};
  const auto [place, added] = frames_.try_emplace(key, 0);
  if (added) {
    const std::string_view path = heap.text(file);
    const bool known = !path.empty() && path != "??";
    place->second = static_cast<std::uint32_t>(sink_.new_id());
    trace::FrameRow row{.id = place->second,
                        .kind = sink_.name(is_python(path) ? "python" : "native"),
                        .function = sink_.name(heap.text(name)),
                        .file = known ? sink_.name(path) : trace::Name(),
                        .line = {}};
    if (key.line > 0 && key.line < INT32_MAX) row.line = static_cast<std::int32_t>(key.line);
    sink_.add(row);
  }
  heap.make_record(dict, kFrame, place->second);
}

// The list of frames becomes a stack when it is first asked for.
std::uint32_t Snapshot::stack_of(PickleHeap& heap) {
  const auto value = fields_.value(Key::kFrames);
  if (!value || !value->is_object()) return 0;
  const PickleHeap::Id list = value->number();
  if (const auto* record = heap.record(*value, kStack)) return record->payload;
  if (heap.object(list).type != PickleHeap::Type::kList) return 0;
  StackHash hash{0x243f6a8885a308d3u, 0x13198a2e03707344u};
  std::vector<std::uint32_t> frames;
  for (const PickleValue member : heap.members(list)) {
    const PickleHeap::Object* frame = heap.record(member, kFrame);
    if (frame == nullptr) continue;
    frames.push_back(frame->payload);
    hash.a = (hash.a ^ frame->payload) * 0x9e3779b97f4a7c15u;
    hash.a ^= hash.a >> 29;
    hash.b = (hash.b + frame->payload) * 0xc2b2ae3d27d4eb4fu;
    hash.b ^= hash.b >> 31;
  }
  std::uint32_t stack = 0;
  if (!frames.empty()) {
    const auto [place, added] = stacks_.try_emplace(hash, 0);
    if (added) {
      place->second = static_cast<std::uint32_t>(sink_.new_id());
      std::int32_t depth = 0;
      for (const std::uint32_t frame : frames) sink_.add(trace::StackRow{place->second, depth++, frame});
    }
    stack = place->second;
  }
  heap.make_record(list, kStack, stack);
  return stack;
}

void Snapshot::event_done(PickleHeap& heap, PickleHeap::Id dict) {
  const auto address = fields_.has(Key::kAddr) ? fields_.count(Key::kAddr) : std::optional<std::int64_t>(0);
  const auto bytes = fields_.count(Key::kSize), time_us = fields_.count(Key::kTime);
  if (!fits(address) || !fits(bytes) || !time_us || *time_us > kMaxTimeUs) {
    sink_.lose(Loss::kInputDamaged, 1, time_us ? "events without a usable address or size" : "events without a time");
    stack_of(heap);
    return heap.make_record(dict, kEvent, 0);
  }
  event_ = {.action = fields_.text(heap, Key::kAction),
            .address = *address,
            .bytes = *bytes,
            .ts_ns = *time_us * 1000,
            .stack_id = id_of(stack_of(heap)),
            .device_free_bytes = fields_.count(Key::kDeviceFree)};
  heap.make_record(dict, kEvent, ++event_number_);
}

void Snapshot::block_done(PickleHeap& heap, PickleHeap::Id dict) {
  const auto address = fields_.has(Key::kAddress) ? fields_.count(Key::kAddress) : std::optional<std::int64_t>(0);
  const auto bytes = fields_.count(Key::kSize);
  if (!fits(address) || !fits(bytes))
    return sink_.lose(Loss::kInputDamaged, 1, "blocks without a usable address or size");
  const std::string_view state = fields_.text(heap, Key::kState);
  Block block{.address = *address, .bytes = *bytes, .state = sink_.name(state).id};
  // Of a block that is not in use, the allocator shows what its last user had asked for.
  if (state.starts_with("active")) block.requested_bytes = fields_.count(Key::kRequestedSize).value_or(-1);
  block.stack = stack_of(heap);
  blocks_.push_back(block);
  heap.make_record(dict, kBlock, static_cast<std::uint32_t>(blocks_.size() - 1));
}

std::string Snapshot::kind_of_segment(const PickleHeap& heap) const {
  std::string kind(fields_.text(heap, Key::kSegmentType));
  const auto pool = fields_.value(Key::kPoolId);
  if (!pool || !pool->is_object() || heap.object(pool->number()).type == PickleHeap::Type::kRecord) return kind;
  const std::vector<PickleValue>& parts = heap.members(pool->number());
  if (parts.size() != 2) return kind;
  const std::int64_t a = parts[0].as_int().value_or(0), b = parts[1].as_int().value_or(0);
  return a == 0 && b == 0 ? kind : fmt::format("{}, private pool {}:{}", kind, a, b);
}

void Snapshot::segment_done(PickleHeap& heap, PickleHeap::Id dict) {
  device_id(fields_.count(Key::kDevice).value_or(0));  // its row stands before all that refer to it
  const auto address = fields_.count(Key::kAddress), bytes = fields_.count(Key::kTotalSize);
  if (!fits(address) || !fits(bytes)) {
    return sink_.lose(Loss::kInputDamaged, 1, "segments without a usable address or size");
  }
  Segment segment{.device = fields_.count(Key::kDevice).value_or(0),
                  .address = *address,
                  .bytes = *bytes,
                  .allocated_bytes = fields_.count(Key::kAllocatedSize).value_or(0),
                  .active_bytes = fields_.count(Key::kActiveSize).value_or(0),
                  .requested_bytes = fields_.count(Key::kRequestedSize),
                  .stream = fields_.integer(Key::kStream),
                  .expandable = {},
                  .kind = sink_.name(kind_of_segment(heap)),
                  .blocks = {}};
  if (const auto expandable = fields_.value(Key::kExpandable)) segment.expandable = expandable->as_bool();
  const PickleValue blocks = *fields_.value(Key::kBlocks);
  segment.stack = stack_of(heap);
  if (blocks.is_object() && heap.object(blocks.number()).type == PickleHeap::Type::kList) {
    for (const PickleValue member : heap.members(blocks.number())) {
      if (const auto* block = heap.record(member, kBlock)) segment.blocks.push_back(block->payload);
    }
  }
  segments_.push_back(std::move(segment));
  heap.make_record(dict, kSegment, static_cast<std::uint32_t>(segments_.size() - 1));
}

void Snapshot::annotation_done(PickleHeap& heap, PickleHeap::Id dict) {
  const auto time_us = fields_.count(Key::kTime);
  if (!time_us || *time_us > kMaxTimeUs) {
    sink_.lose(Loss::kInputDamaged, 1, "annotations without a time");
  } else if (annotations_.size() >= kMaxAnnotations) {
    sink_.lose(Loss::kInputLimit, 1, "annotations");
  } else {
    annotations_.push_back({.ts_ns = *time_us * 1000,
                            .device = fields_.count(Key::kDevice).value_or(0),
                            .name = sink_.name(fields_.text(heap, Key::kName)),
                            .begins = fields_.text(heap, Key::kStage) == "START"});
  }
  heap.make_record(dict, kAnnotation, 0);
}

}  // namespace llmprof::importers
