#include "importers/nsys_sqlite/memory.h"

#include <map>

namespace llmprof::importers::nsys {
namespace {

enum Column : int { kStart, kAddress, kBytes, kMemoryKind, kOperation, kGlobalPid, kDevice, kCorrelation, kPool };
constexpr std::int64_t kAllocates = 0, kFrees = 1;  // of ENUM_CUDA_DEV_MEM_EVENT_OPER
constexpr std::size_t kMostOpen = 1'000'000;

// Of ENUM_CUDA_MEM_KIND; "" for variables that a module brings, and for what no GPU has.
std::string_view kind_of(std::int64_t kind, bool pool) {
  if (pool) return "pool";
  return kind == 1 ? "pinned" : kind == 2 || kind == 3 ? "device" : kind == 4 ? "managed" : "";
}

class Allocations {
 public:
  Allocations(Sink& sink, Actors& actors, Devices& devices, Launches& launches)
      : sink_(sink), actors_(actors), devices_(devices), launches_(launches) {}

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

Result<void> read_allocations(Database& database, Actors& actors, Devices& devices, Launches& launches) {
  LLMPROF_LET(Rows rows, database.rows("CUDA_GPU_MEMORY_USAGE_EVENTS",
                                       {"start", "address", "bytes", "memKind", "memoryOperationType", "globalPid",
                                        "deviceId", "correlationId", "localMemoryPoolAddress"},
                                       5));
  Allocations allocations(database.sink(), actors, devices, launches);
  while (rows.next()) allocations.take(rows);
  allocations.finish();
  return rows.finish();
}

}  // namespace llmprof::importers::nsys
