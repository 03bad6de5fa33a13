#include "importers/nsys_sqlite/host_calls.h"

#include <algorithm>
#include <array>
#include <map>

#include "importers/cuda_calls.h"

namespace llmprof::importers::nsys {
namespace {

constexpr std::size_t kNear = 32, kMostLong = 100'000;

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

constexpr std::int64_t kRuntimeClass = 0;  // of ENUM_NSYS_EVENT_CLASS; 1 is the driver

class Calls {
 public:
  Calls(Export& from, Launches& launches, std::vector<trace::Id>& stack_ids)
      : sink_(from.sink), strings_(from.strings), actors_(from.actors), launches_(launches), stack_ids_(stack_ids) {}

  void take(Rows& rows, const Stacks::ById& stacks) {
    const auto start = rows.integer(kStart), end = rows.integer(kEnd), global = rows.integer(kGlobalTid),
               name = rows.integer(kNameId), correlation = rows.integer(kCorrelation),
               event_class = rows.integer(kEventClass), callchain = rows.integer(kCallchain);
    if (!rows.is_interval(name ? start : std::nullopt, end)) return;
    trace::ApiRow row;
    row.begin_ns = *start;
    row.end_ns = *end;
    const bool is_runtime = event_class.value_or(kRuntimeClass) == kRuntimeClass;
    row.name = is_runtime ? strings_.runtime_function(*name) : strings_.name(*name);
    const CudaCall& function = functions_.of(row.name);
    if (function.looks_up) return void(++looked_up_);
    row.waits = function.waits;
    row.correlation = correlation;
    const Actors::Index thread = global ? actors_.thread(*global, *start, *end) : Actors::Index{0};
    row.thread_id = actors_.thread_id(thread);
    row.id = sink_.new_id();
    sink_.add(row);
    if (!correlation || !function.may_launch || *correlation < 0 || *correlation > UINT32_MAX) return;
    const Launches::Call call{*start, *end, thread, stack_index(stacks, callchain)};
    const Actors::Index process = global ? actors_.process_of(thread) : actors_.process(std::nullopt);
    if (!launches_.add(process, static_cast<std::uint32_t>(*correlation), call))
      sink_.lose(trace::Loss::kInputLimit, 1, "calls beyond 12 million, which no kernel is paired with");
  }

  void finish() {
    sink_.lose(trace::Loss::kInputIgnored, looked_up_, "calls like cuGetProcAddress and cuKernelGetName");
  }

 private:
  enum Column : int { kStart, kEnd, kGlobalTid, kNameId, kCorrelation, kEventClass, kCallchain };
  std::uint32_t stack_index(const Stacks::ById& stacks, std::optional<std::int64_t> callchain) {
    if (!callchain) return 0;
    const auto found = stacks.find(*callchain);
    if (found == stacks.end()) return 0;
    const auto [index, is_new] = stack_index_.try_emplace(found->second.stack_id, 0);
    if (is_new) {
      index->second = static_cast<std::uint32_t>(stack_ids_.size());
      stack_ids_.push_back(found->second.stack_id);
    }
    return index->second;
  }

  Sink& sink_;
  Strings& strings_;
  Actors& actors_;
  Launches& launches_;
  std::vector<trace::Id>& stack_ids_;
  std::unordered_map<trace::Id, std::uint32_t> stack_index_;
  CudaCalls functions_{sink_};
  std::int64_t looked_up_ = 0;
};

constexpr std::int64_t kAllocates = 0, kFrees = 1;  // of ENUM_CUDA_DEV_MEM_EVENT_OPER
constexpr std::size_t kMostOpen = 1'000'000;

// Of ENUM_CUDA_MEM_KIND; "" for variables that a module brings, and for what no GPU has.
std::string_view kind_of(std::int64_t kind, bool pool) {
  if (pool) return "pool";
  return kind == 1 ? "pinned" : kind == 2 || kind == 3 ? "device" : kind == 4 ? "managed" : "";
}

class Allocations {
 public:
  Allocations(Export& from, Launches& launches)
      : sink_(from.sink), actors_(from.actors), devices_(from.devices), launches_(launches) {}

  void take(Rows& rows) {
    const auto start = rows.integer(kStart), address = rows.integer(kAddress), bytes = rows.integer(kBytes),
               operation = rows.integer(kOperation);
    if (rows.odd() || !start || !address || !bytes || !operation || *bytes < 0)
      return rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
    if (!is_time(*start)) return rows.lose(trace::Loss::kBadTime, "times");
    const Actors::Index process = actors_.process(rows.integer(kGlobalPid));
    if (*operation == kFrees) return free({process, *address}, *start);
    const std::string_view kind = kind_of(rows.integer_or(kMemoryKind, -1), rows.integer_or(kPool, 0) != 0);
    if (*operation != kAllocates || kind.empty())
      return rows.lose(trace::Loss::kInputIgnored, "variables of modules and other fixed memory");
    actors_.saw(process, *start, *start);
    free({process, *address}, *start);  // an address that is handed out again was freed in between
    keep({process, *address}, row_of(rows, process, kind, *start, *bytes));
  }

  void finish() {
    for (const auto& [key, row] : open_) sink_.add(row);
  }

 private:
  enum Column : int { kStart, kAddress, kBytes, kMemoryKind, kOperation, kGlobalPid, kDevice, kCorrelation, kPool };
  using Key = std::pair<Actors::Index, std::int64_t>;

  trace::AllocationRow row_of(Rows& rows, Actors::Index process, std::string_view kind, std::int64_t ns,
                              std::int64_t bytes) {
    trace::AllocationRow row;
    row.id = sink_.new_id();
    row.begin_ns = ns;
    row.bytes = bytes;
    row.address = rows.integer(kAddress);
    if (kind != "pinned") row.device_id = devices_.of_cuda(actors_.pid(process), rows.integer_or(kDevice, 0));
    row.kind = sink_.name(kind);
    row.process_id = actors_.process_id(process);
    const std::int64_t correlation = rows.integer_or(kCorrelation, 0);
    if (correlation <= 0 || correlation > UINT32_MAX) return row;
    const auto call = launches_.find(process, static_cast<std::uint32_t>(correlation));
    if (call && call->thread != 0) row.thread_id = actors_.thread_id(call->thread);
    return row;
  }
  void keep(const Key& key, const trace::AllocationRow& row) {
    if (open_.size() < kMostOpen)
      open_[key] = row;
    else
      sink_.add(row);
  }
  void free(const Key& key, std::int64_t ns) {
    const auto found = open_.find(key);
    if (found == open_.end()) return;
    if (ns >= found->second.begin_ns) found->second.end_ns = ns;
    sink_.add(found->second);
    open_.erase(found);
  }

  Sink& sink_;
  Actors& actors_;
  Devices& devices_;
  Launches& launches_;
  std::map<Key, trace::AllocationRow> open_;
};

}  // namespace

void Launches::expect(std::int64_t count) {
  entries_.reserve(std::min(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), kMost));
}

bool Launches::add(Actors::Index process, std::uint32_t correlation, const Call& call) {
  if (entries_.size() >= kMost) return false;
  const std::int64_t duration_ns = call.end_ns - call.begin_ns;
  const auto kept = static_cast<std::uint32_t>(std::min<std::int64_t>(duration_ns, UINT32_MAX));
  const Entry entry{call.begin_ns, correlation, kept, call.stack, process, call.thread};
  if (kept == UINT32_MAX && long_.size() < kMostLong) long_.try_emplace(key(entry), call.end_ns);
  sorted_ = sorted_ && (entries_.empty() || key(entries_.back()) <= key(entry));
  entries_.push_back(entry);
  return true;
}

void Launches::sort() {
  if (sorted_) return;
  std::ranges::sort(entries_, {}, [](const Entry& entry) { return std::pair(key(entry), entry.begin_ns); });
  sorted_ = true;
}

std::optional<Launches::Call> Launches::find(Actors::Index process, std::uint32_t correlation) {
  const std::uint64_t wanted = std::uint64_t{process} << 32 | correlation;
  std::size_t at = hint_;
  const std::size_t near = std::min(hint_ + kNear, entries_.size());
  while (at < near && key(entries_[at]) < wanted) ++at;
  const bool passed = at == near || (at == hint_ && at > 0 && key(entries_[at - 1]) >= wanted);
  if (passed) {
    const auto found = std::ranges::lower_bound(entries_, wanted, {}, key);
    at = static_cast<std::size_t>(found - entries_.begin());
  }
  if (at >= entries_.size() || key(entries_[at]) != wanted) return std::nullopt;
  hint_ = at;
  const Entry& entry = entries_[at];
  std::int64_t end_ns = entry.begin_ns + entry.duration_ns;
  if (entry.duration_ns == UINT32_MAX) {
    if (const auto known = long_.find(wanted); known != long_.end()) end_ns = known->second;
  }
  return Call{entry.begin_ns, end_ns, entry.thread, entry.stack};
}

Result<Stacks::ById> Stacks::read(std::string_view table) {
  ById found;
  std::optional<std::int64_t> current;
  LLMPROF_TRY(database_.each(table, {"id", "symbol", "module", "kernelMode"}, 0, [&](Rows& rows) {
    const auto id = rows.integer(0);
    if (!id) return;
    if (current && *current != *id) keep(*current, found);
    current = id;
    add_frame(rows);
  }));
  if (current) keep(*current, found);
  return found;
}

// Nsight puts a frame "[Broken backtraces]" where unwinding failed, and one of module "[Unknown]" before it.
void Stacks::add_frame(Rows& rows) {
  const auto symbol = rows.integer(1);
  if (!symbol) return;
  const Frame frame{*symbol, rows.integer_or(2, -1), rows.integer_or(3, 0) != 0};
  const bool broken = strings_.is(frame.symbol, "[Broken backtraces]") || strings_.is(frame.module, "[Unknown]");
  cut_ = cut_ || broken || frames_.size() >= kMostFrames;
  if (!cut_) frames_.push_back(frame_id(frame));
}

trace::Id Stacks::frame_id(const Frame& frame) {
  const std::uint64_t hash = mix(mix(frame.in_kernel ? 2 : 1, static_cast<std::uint64_t>(frame.symbol)),
                                 static_cast<std::uint64_t>(frame.module));
  const auto [known, is_new] = known_frames_.try_emplace(hash, 0);
  if (!is_new) return known->second;
  Sink& sink = database_.sink();
  known->second = sink.new_id();
  trace::FrameRow row;
  row.id = known->second;
  row.kind = sink.name(frame.in_kernel ? "kernel" : "native");
  row.function = strings_.name(frame.symbol);
  if (frame.module >= 0) row.file = strings_.name(frame.module);
  sink.add(row);
  return row.id;
}

void Stacks::keep(std::int64_t id, ById& found) {
  Sink& sink = database_.sink();
  if (found.size() >= kMostStacks) sink.lose(trace::Loss::kInputLimit, 1, "call stacks beyond a million");
  if (!frames_.empty() && found.size() < kMostStacks) {
    std::uint64_t hash = frames_.size();
    for (const trace::Id frame : frames_) hash = mix(hash, static_cast<std::uint64_t>(frame));
    const auto [known, is_new] = known_stacks_.try_emplace(hash, 0);
    if (is_new) {
      known->second = sink.new_id();
      std::int32_t depth = 0;
      for (const trace::Id frame : frames_) sink.add(trace::StackRow{known->second, depth++, frame});
    }
    found[id] = {known->second, cut_};
  }
  frames_.clear();
  cut_ = false;
}

Result<void> read_calls(Export& from, Launches& launches, std::vector<trace::Id>& stack_ids) {
  stack_ids.assign(1, 0);
  Stacks stacks(from);
  LLMPROF_LET(const Stacks::ById by_id, stacks.read("CUDA_CALLCHAINS"));
  launches.expect(from.database.size_of("CUPTI_ACTIVITY_KIND_RUNTIME"));
  Calls calls(from, launches, stack_ids);
  LLMPROF_TRY(from.database.each("CUPTI_ACTIVITY_KIND_RUNTIME",
                                 {"start", "end", "globalTid", "nameId", "correlationId", "eventClass", "callchainId"},
                                 4, [&](Rows& rows) { calls.take(rows, by_id); }));
  calls.finish();
  launches.sort();
  return {};
}

Result<void> read_waits(Export& from) {
  constexpr std::array<const char*, 5> kNames{"unknown", "event synchronize", "stream wait", "stream synchronize",
                                              "context synchronize"};
  const auto take = [&](Rows& rows) {
    const auto start = rows.integer(0), end = rows.integer(1), type = rows.integer(2), stream = rows.integer(3),
               correlation = rows.integer(4), global = rows.integer(5);
    if (!rows.is_interval(type ? start : std::nullopt, end)) return;
    from.actors.saw(from.actors.process(global), *start, *end);
    const bool named = *type > 0 && *type < static_cast<std::int64_t>(kNames.size());
    from.sink.add(trace::ApiRow{from.sink.new_id(), *start, *end,
                                from.sink.name(kNames[named ? static_cast<std::size_t>(*type) : 0]), 0, correlation,
                                stream, *type != 2});
  };
  return from.database.each("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                            {"start", "end", "syncType", "streamId", "correlationId", "globalPid"}, 3, take);
}

Result<void> read_allocations(Export& from, Launches& launches) {
  Allocations allocations(from, launches);
  LLMPROF_TRY(from.database.each("CUDA_GPU_MEMORY_USAGE_EVENTS",
                                 {"start", "address", "bytes", "memKind", "memoryOperationType", "globalPid",
                                  "deviceId", "correlationId", "localMemoryPoolAddress"},
                                 5, [&](Rows& rows) { allocations.take(rows); }));
  allocations.finish();
  return {};
}

}  // namespace llmprof::importers::nsys
