// PyTorch memory snapshot (torch.cuda.memory._dump_snapshot): a pickle of plain values.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/strings.h"
#include "importers/importer.h"
#include "importers/memory_snapshot/pickle.h"
#include "importers/memory_snapshot/snapshot.h"

namespace llmprof::importers {
namespace memory_snapshot {
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

std::optional<PickleValue> list_at(const PickleHeap& heap, PickleValue root, std::string_view key) {
  if (!root.is_object()) return std::nullopt;
  const auto value = heap.find(root.number(), key);
  return value && heap.is(*value, PickleHeap::Type::kList) ? value : std::nullopt;
}

std::string setting_text(const PickleHeap& heap, PickleValue value) {
  using Kind = PickleValue::Kind;
  if (value.kind() == Kind::kBool) return value.as_bool() ? "True" : "False";
  if (value.kind() == Kind::kInt) return std::to_string(*value.as_int());
  if (value.kind() == Kind::kFloat) return fmt::format("{:.6g}", value.as_real());
  return value.kind() == Kind::kText ? shown(heap.text(value)) : "";
}

// device_traces is a list of lists, one per device: the place of this one among them is the number of the device.
std::int64_t ordinal_of(const PickleHeap& heap, std::span<const PickleValue> stack) {
  std::size_t outer = stack.size() - 1;
  while (outer > 0 && heap.is(stack[outer - 1], PickleHeap::Type::kList)) --outer;
  if (outer == 0 || outer == stack.size() - 1 || heap.text(stack[outer - 1]) != "device_traces") return -1;
  return static_cast<std::int64_t>(heap.members(stack[outer].number()).size() + stack.size() - outer - 2);
}

// What the dictionaries of a PyTorch memory snapshot mean: frames, events, blocks, segments, annotations. Taken while
// the pickle is read, so that events, which are nearly all of a file, are not kept.
class Snapshot : public PickleShapes {
 public:
  explicit Snapshot(Sink& sink) : sink_(sink) {}

  void dict_done(PickleHeap& heap, PickleHeap::Id dict) override {
    fields_.read(heap, dict);
    if (fields_.has(Key::kFilename) && fields_.has(Key::kLine)) return frame_done(heap, dict);
    if (fields_.has(Key::kAction) && fields_.has(Key::kSize)) return event_done(heap, dict);
    if (fields_.has(Key::kBlocks) && fields_.has(Key::kTotalSize)) return segment_done(heap, dict);
    if (fields_.has(Key::kState) && fields_.has(Key::kSize)) return block_done(heap, dict);
    if (fields_.has(Key::kStage) && fields_.has(Key::kTime)) return annotation_done(heap, dict);
  }

  bool take(PickleHeap& heap, std::span<const PickleValue> stack, const PickleHeap::Object& record) override {
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

  std::size_t held_bytes() const override {
    std::size_t bytes = frames_.size() * 56 + stacks_.size() * 56 + blocks_.size() * sizeof(Block) +
                        segments_.size() * sizeof(Segment) + annotations_.size() * sizeof(Annotation);
    for (const auto& [list, trace] : traces_) bytes += trace->held_bytes();
    return bytes;
  }

  // The pickle is read: writes all that could not be written on the way.
  Result<void> finish(PickleHeap& heap, PickleValue root) {
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

 private:
  enum Record : std::uint8_t { kFrame, kStack, kEvent, kBlock, kSegment, kAnnotation };
  struct Block {
    std::int64_t address = 0, bytes = 0, requested_bytes = -1;
    std::uint32_t stack = 0, state = 0;  // ids of a stack and of a name; 0 none
  };
  struct Segment {
    std::int64_t device = 0, address = 0, bytes = 0, allocated_bytes = 0, active_bytes = 0;
    trace::OptionalInt requested_bytes, stream;
    std::optional<bool> expandable;
    std::uint32_t stack = 0;
    trace::Name kind;
    std::vector<std::uint32_t> blocks;
  };
  struct Annotation {
    std::int64_t ts_ns = 0, device = 0;
    trace::Name name;
    bool begins = false;
  };
  // Two hashes of its frames: what is the same stack is told by them alone.
  struct StackHash {
    std::uint64_t a = 0, b = 0;
    friend bool operator==(const StackHash&, const StackHash&) = default;
  };
  struct FrameKey {
    std::uint32_t name = 0, file = 0;  // texts of the heap
    std::int64_t line = 0;
    friend bool operator==(const FrameKey&, const FrameKey&) = default;
  };
  struct Hash {
    std::size_t operator()(const StackHash& hash) const { return hash.a; }
    std::size_t operator()(const FrameKey& key) const {
      return (std::size_t{key.name} << 32 | key.file) * 0x9e3779b97f4a7c15u ^ static_cast<std::size_t>(key.line);
    }
  };

  void frame_done(PickleHeap& heap, PickleHeap::Id dict) {
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
                          .file = known ? sink_.name(path) : trace::Name()};
      if (key.line > 0 && key.line < INT32_MAX) row.line = static_cast<std::int32_t>(key.line);
      sink_.add(row);
    }
    heap.make_record(dict, kFrame, place->second);
  }

  void event_done(PickleHeap& heap, PickleHeap::Id dict) {
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

  void block_done(PickleHeap& heap, PickleHeap::Id dict) {
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

  void segment_done(PickleHeap& heap, PickleHeap::Id dict) {
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
                    .kind = sink_.name(kind_of_segment(heap))};
    if (const auto expandable = fields_.value(Key::kExpandable)) segment.expandable = expandable->as_bool();
    const PickleValue blocks = *fields_.value(Key::kBlocks);
    segment.stack = stack_of(heap);
    if (heap.is(blocks, PickleHeap::Type::kList)) {
      for (const PickleValue member : heap.members(blocks.number())) {
        if (const auto* block = heap.record(member, kBlock)) segment.blocks.push_back(block->payload);
      }
    }
    segments_.push_back(std::move(segment));
    heap.make_record(dict, kSegment, static_cast<std::uint32_t>(segments_.size() - 1));
  }

  void annotation_done(PickleHeap& heap, PickleHeap::Id dict) {
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

  std::string kind_of_segment(const PickleHeap& heap) const {
    std::string kind(fields_.text(heap, Key::kSegmentType));
    const auto pool = fields_.value(Key::kPoolId);
    if (!pool || !pool->is_object() || heap.object(pool->number()).type == PickleHeap::Type::kRecord) return kind;
    const std::vector<PickleValue>& parts = heap.members(pool->number());
    if (parts.size() != 2) return kind;
    const std::int64_t a = parts[0].as_int().value_or(0), b = parts[1].as_int().value_or(0);
    return a == 0 && b == 0 ? kind : fmt::format("{}, private pool {}:{}", kind, a, b);
  }

  // The list of frames in fields_ becomes a stack when it is first asked for.
  std::uint32_t stack_of(PickleHeap& heap) {
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

  AllocationTrace* trace_of(const PickleHeap& heap, std::span<const PickleValue> stack) {
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

  Result<std::vector<std::uint32_t>> find_segments(PickleHeap& heap, PickleValue root) const {
    auto list = list_at(heap, root, "segments");
    const bool whole = list.has_value() || list_at(heap, root, "device_traces").has_value();
    if (!list && heap.is(root, PickleHeap::Type::kList)) list = root;
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
  trace::Id device_id(std::int64_t ordinal) {
    const auto [place, added] = devices_.try_emplace(ordinal, 0);
    if (added) {
      place->second = sink_.new_id();
      trace::DeviceRow row{.id = place->second, .kind = sink_.name("gpu")};
      if (ordinal >= 0) row.ordinal = ordinal;
      sink_.add(row);
    }
    return place->second;
  }

  void write_segments(const std::vector<std::uint32_t>& segments) {
    for (const std::uint32_t number : segments) {
      const Segment& segment = segments_[number];
      const auto found = traces_by_device_.find(segment.device);
      AllocationTrace* trace = found == traces_by_device_.end() ? nullptr : found->second;
      trace::MemorySegmentRow row{.id = sink_.new_id(),
                                  .device_id = device_id(segment.device),
                                  .address = segment.address,
                                  .bytes = segment.bytes,
                                  .allocated_bytes = segment.allocated_bytes,
                                  .active_bytes = segment.active_bytes,
                                  .requested_bytes = segment.requested_bytes,
                                  .stream = segment.stream,
                                  .kind = segment.kind,
                                  .expandable = segment.expandable};
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
  void write_blocks(const Segment& segment, trace::Id segment_id, AllocationTrace* trace) {
    std::int64_t next = segment.address;
    for (const std::uint32_t number : segment.blocks) {
      const Block& block = blocks_[number];
      trace::MemoryBlockRow row{.memory_segment_id = segment_id,
                                .address = block.address != 0 ? block.address : next,
                                .bytes = block.bytes,
                                .state = {block.state}};
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
  void write_ranges() {
    if (annotations_.empty()) return;
    std::ranges::stable_sort(annotations_, {}, &Annotation::ts_ns);
    const trace::Id thread_id = sink_.new_id();
    sink_.add(trace::ThreadRow{.id = thread_id,
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

  void write_notes(PickleHeap& heap, PickleValue root) {
    if (!root.is_object()) return;
    const auto settings = heap.find(root.number(), "allocator_settings");
    if (!settings || !heap.is(*settings, PickleHeap::Type::kDict)) return;
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

  Sink& sink_;
  SnapshotFields fields_;
  std::unordered_map<FrameKey, std::uint32_t, Hash> frames_;
  std::unordered_map<StackHash, std::uint32_t, Hash> stacks_;
  std::vector<Block> blocks_;
  std::vector<Segment> segments_;
  std::vector<Annotation> annotations_;
  std::unordered_map<PickleHeap::Id, std::unique_ptr<AllocationTrace>> traces_;  // by list
  std::map<std::int64_t, AllocationTrace*> traces_by_device_;
  std::map<std::int64_t, trace::Id> devices_;
  AllocatorEvent event_;  // the last, until its list takes it
  std::uint32_t event_number_ = 0;
};

constexpr std::string_view kZip = "PK\x03\x04";

bool is_torch_save(std::string_view head) { return head.starts_with(kZip) && base::contains(head, "data.pkl"); }

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
  const bool keys = base::contains(head, "segments") || base::contains(head, "total_size");
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
  sink.set_facts({.tool = "PyTorch memory snapshot"});
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

}  // namespace llmprof::importers
