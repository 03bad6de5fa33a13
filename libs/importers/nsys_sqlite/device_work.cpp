#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/strings.h"
#include "importers/nsys_sqlite/host_calls.h"
#include "importers/nsys_sqlite/identities.h"
#include "trace/join.h"

namespace llmprof::importers::nsys {

namespace {

constexpr std::size_t kMostNodes = 1'000'000;
constexpr std::array<const char*, 4> kKinds{"unknown", "kernel", "memcpy", "memset"};

// What all of these tables have in their first columns.
struct Common {
  std::int64_t begin_ns = 0, end_ns = 0;
  Actors::Index process = 0;
  trace::Id device_id = 0;
  std::int64_t stream = 0;
  std::uint32_t correlation = 0;
  std::optional<std::int64_t> node;
  std::optional<trace::Launch> launch;
};

// CUDA graphs. With --cuda-graph-trace=node kernels and copies name the node they execute, and the work of one launch
// shares the correlation id of its cudaGraphLaunch; with =graph a launch has one row of its own and no work inside.
// The number of a node holds that of its graph in the upper 32 bits.
class Graphs {
 public:
  explicit Graphs(Export& from) : database_(from.database), actors_(from.actors) {}

  // CUDA_GRAPH_NODE_EVENTS: when and by whom nodes were made, and which ones are clones of others.
  Result<void> read_nodes() {
    const auto take = [&](Rows& rows) {
      const auto start = rows.integer(0), global = rows.integer(1), number = rows.integer(2);
      if (!start || !global || !number || !is_time(*start))
        return rows.lose(trace::Loss::kInputDamaged, "values that cannot be");
      const Actors::Index thread = actors_.thread(*global, *start, *start);
      Node* made = node({actors_.process(*global), *number});
      if (made == nullptr) return;
      made->created_ns = std::min(made->created_ns.value_or(INT64_MAX), *start);
      made->thread = thread;
      if (const auto original = rows.integer(3)) made->original = *original;
    };
    return database_.each("CUDA_GRAPH_NODE_EVENTS", {"start", "globalTid", "graphNodeId", "originalGraphNodeId"}, 3,
                          take);
  }

  enum class Kind : std::uint8_t { kUnknown, kKernel, kMemcpy, kMemset };
  struct Ids {
    trace::OptionalId launch, node;
  };
  // Work of a node: which launch and node it belongs to.
  Ids take(const Common& work, Kind kind, trace::Name name) {
    Ids ids;
    if (!work.node) return ids;
    if (Node* executed = node({work.process, *work.node})) {
      executed->kind = kind;
      if (executed->name.id == 0) executed->name = name;
      ids.node = executed->id;
    }
    const std::uint64_t number = std::uint64_t{work.process} << 32 | work.correlation;
    trace::GraphLaunch* launch = launches_.find(number);
    if (launch == nullptr) {
      if (launches_.full()) {
        database_.sink().lose(trace::Loss::kInputLimit, 1, "work of graph launches beyond a million");
        return ids;
      }
      const trace::Id id = database_.sink().new_id();
      launch = &launches_.add(
          number, {id, graph_id(work.process, *work.node >> 32), work, work.launch ? &*work.launch : nullptr});
    }
    launch->add_node(work.begin_ns, work.end_ns);
    ids.launch = launch->row.id;
    return ids;
  }
  // The number of an executable graph in this file.
  std::int64_t graph_id(Actors::Index process, std::int64_t graph) {
    const auto known = graphs_.find({process, graph});
    if (known != graphs_.end()) return known->second;
    if (graphs_.size() >= kMostNodes) {
      database_.sink().lose(trace::Loss::kInputLimit, 1, "graphs beyond a million");
      return 0;
    }
    return graphs_[{process, graph}] = database_.sink().new_id();
  }

  void write() {
    launches_.write_all(database_.sink());
    for (const auto& [key, node] : nodes_) write_node(key, node);
  }

 private:
  struct Node {
    trace::Id id = 0;
    std::int64_t original = -1;
    trace::OptionalInt created_ns;
    Actors::Index thread = 0;
    Kind kind = Kind::kUnknown;
    trace::Name name;
  };
  struct Hash {
    std::size_t operator()(const std::pair<Actors::Index, std::int64_t>& key) const {
      return (static_cast<std::size_t>(key.second) ^ std::size_t{key.first} << 48) * 0x9E3779B97F4A7C15u;
    }
  };
  using NodeKey = std::pair<Actors::Index, std::int64_t>;

  Node* node(const NodeKey& key) {
    const auto found = nodes_.find(key);
    if (found != nodes_.end()) return &found->second;
    if (nodes_.size() >= kMostNodes) {
      database_.sink().lose(trace::Loss::kInputLimit, 1, "work of graph nodes beyond a million nodes");
      return nullptr;
    }
    Node& made = nodes_[key];
    made.id = database_.sink().new_id();
    return &made;
  }

  void write_node(const NodeKey& key, const Node& node) {
    Sink& sink = database_.sink();
    const auto captured = nodes_.find({key.first, node.original});
    const Node& made = captured == nodes_.end() ? node : captured->second;
    trace::GraphNodeRow row;
    row.id = node.id;
    row.graph = graph_id(key.first, key.second >> 32);
    row.node = key.second;
    if (node.original >= 0) row.captured_node = node.original;
    row.name = node.name;
    row.kind = sink.name(kKinds[static_cast<std::size_t>(node.kind)]);
    row.captured_ns = made.created_ns;
    if (made.thread != 0) row.thread_id = actors_.thread_id(made.thread);
    sink.add(row);
  }

  Database& database_;
  Actors& actors_;
  std::unordered_map<NodeKey, Node, Hash> nodes_;
  trace::GraphLaunches launches_{1'000'000};  // by process and correlation id
  std::map<NodeKey, std::int64_t> graphs_;
};

constexpr std::size_t kNeeded = 2;  // start and end

trace::OptionalInt32 small(std::optional<std::int64_t> value) {
  if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(*value);
}

// Of ENUM_CUDA_MEMCPY_OPER. Arrays are device memory; the last three are migrations of managed memory.
std::string_view direction_of(std::int64_t kind) {
  constexpr std::string_view kIn = "host_to_device", kOut = "device_to_host", kWithin = "device_to_device";
  constexpr std::array<std::string_view, 14> kDirections{
      "", kIn, kOut, kIn, kOut, kWithin, kWithin, kWithin, kWithin, "host_to_host", "peer", kIn, kOut, kWithin};
  return kind >= 0 && kind < 14 ? kDirections[static_cast<std::size_t>(kind)] : "";
}

// Of ENUM_CUDA_MEM_KIND.
std::string_view host_memory_of(std::int64_t kind) {
  return kind == 0 ? "pageable" : kind == 1 ? "pinned" : kind == 4 || kind == 6 ? "managed" : "";
}

// Kernels, copies, fills and launches of whole graphs, each paired with the call that launched it.
class Work {
 public:
  Work(Export& from, Graphs& graphs, Launches& launches, const std::vector<trace::Id>& stack_ids)
      : from_(from), sink_(from.sink), graphs_(graphs), launches_(launches), stack_ids_(stack_ids) {}

  Result<void> read_kernels() {
    return from_.database.each("CUPTI_ACTIVITY_KIND_KERNEL",
                               {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId",
                                "mangledName", "demangledName", "shortName", "registersPerThread", "gridX", "gridY",
                                "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"},
                               kNeeded, [&](Rows& rows) { take_kernel(rows); });
  }

  Result<void> read_copies() {
    return from_.database.each("CUPTI_ACTIVITY_KIND_MEMCPY",
                               {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId",
                                "bytes", "copyKind", "srcKind", "dstKind"},
                               kNeeded, [&](Rows& rows) { take_copy(rows); });
  }

  Result<void> read_fills() {
    return from_.database.each(
        "CUPTI_ACTIVITY_KIND_MEMSET",
        {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId", "bytes"}, kNeeded,
        [&](Rows& rows) {
          const std::int64_t bytes = rows.integer_or(kBytes, 0);
          if (const auto work = common(rows)) add_copy(*work, "fill", std::max<std::int64_t>(bytes, 0), "");
        });
  }

  Result<void> read_graph_launches() {
    enum Own : int { kGraph = kFirstOwn, kExecutable };
    return from_.database.each(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "graphNodeId", "graphId", "graphExecId"},
        kNeeded, [&](Rows& rows) {
          const auto graph = rows.integer(kGraph), executable = rows.integer(kExecutable);
          const auto work = common(rows);
          if (!work) return;
          trace::GraphLaunchRow row;
          fill(row, *work);
          row.graph = graphs_.graph_id(work->process, executable ? *executable : graph.value_or(0));
          sink_.add(row);
        });
  }
  bool found_any() const { return found_any_; }

 private:
  // Columns of all tables of device work first, those that every export has at the beginning.
  enum Column : int { kStart, kEnd, kDevice, kStream, kCorrelation, kGlobalPid, kGraphNode, kFirstOwn };
  enum KernelColumn : int {
    kMangled = kFirstOwn,
    kDemangled,
    kShort,
    kRegisters,
    kSides,
    kStatic = kSides + 6,
    kDynamic
  };  // sides: of grid and block
  enum CopyColumn : int { kBytes = kFirstOwn, kCopyKind, kSourceKind, kTargetKind };
  // nullopt: the row cannot be used, and was counted.
  std::optional<Common> common(Rows& rows, bool launched = true) {
    const auto start = rows.integer(kStart), end = rows.integer(kEnd), device = rows.integer(kDevice),
               stream = rows.integer(kStream), correlation = rows.integer(kCorrelation),
               global = rows.integer(kGlobalPid), node = rows.integer(kGraphNode);
    if (!rows.is_interval(start, end)) return std::nullopt;
    if (*start == 0 && *end == 0) {
      rows.lose(trace::Loss::kZeroTimes, "executions");
      return std::nullopt;
    }
    Common work;
    work.begin_ns = *start;
    work.end_ns = *end;
    work.process = from_.actors.process(global);
    from_.actors.saw(work.process, *start, *end);
    work.device_id = from_.devices.of_cuda(from_.actors.pid(work.process), device.value_or(0));
    work.stream = stream.value_or(0);
    work.node = node;
    find_call(work, correlation, launched);
    found_any_ = true;
    return work;
  }

  void find_call(Common& work, std::optional<std::int64_t> correlation, bool launched) {
    const bool usable = correlation && *correlation >= 0 && *correlation <= UINT32_MAX;
    if (usable) {
      work.correlation = static_cast<std::uint32_t>(*correlation);
      if (const auto call = launches_.find(work.process, work.correlation))
        work.launch =
            trace::Launch{from_.actors.thread_id(call->thread), call->begin_ns, call->end_ns, stack_ids_[call->stack]};
    }
    if (!work.launch && launched) sink_.lose(trace::Loss::kLaunchLost, 1);
  }

  template <class Row>
  void add_to_graph(Row& row, const Common& work, Graphs::Kind kind, trace::Name name) {
    const Graphs::Ids ids = graphs_.take(work, kind, name);
    row.graph_launch_id = ids.launch;
    row.graph_node_id = ids.node;
    sink_.add(row);
  }

  template <class Row>
  void fill(Row& row, const Common& work) {
    row.id = sink_.new_id();
    row.begin_ns = work.begin_ns;
    row.end_ns = work.end_ns;
    row.device_id = work.device_id;
    row.stream = work.stream;
    trace::set_launch(row, work.launch ? &*work.launch : nullptr);
  }

  void take_kernel(Rows& rows) {
    trace::KernelRow row;
    row.name.id = 0;
    const auto mangled = rows.integer(kMangled);
    const auto demangled = mangled ? std::nullopt : rows.integer(kDemangled);
    const auto short_name = mangled || demangled ? std::nullopt : rows.integer(kShort);
    row.registers = small(rows.integer(kRegisters));
    int side = kSides;
    for (trace::OptionalInt32* to : {&row.grid_x, &row.grid_y, &row.grid_z, &row.block_x, &row.block_y, &row.block_z})
      *to = small(rows.integer(side++));
    const auto fixed = small(rows.integer(kStatic)), dynamic = small(rows.integer(kDynamic));
    if (fixed || dynamic) row.shared_bytes = small(std::int64_t{fixed.value_or(0)} + dynamic.value_or(0));
    const auto work = common(rows);
    if (!work) return;
    row.name = from_.strings.kernel(mangled, demangled, short_name);
    fill(row, *work);
    add_to_graph(row, *work, Graphs::Kind::kKernel, row.name);
  }

  void take_copy(Rows& rows) {
    const auto bytes = rows.integer(kBytes), kind = rows.integer(kCopyKind), source = rows.integer(kSourceKind),
               target = rows.integer(kTargetKind);
    const std::string_view direction = direction_of(kind.value_or(0));
    const bool migration = kind.value_or(0) >= 11;  // by the driver, not by a call
    if (!rows.odd() && (!bytes || *bytes < 0 || direction.empty()))
      return rows.lose(trace::Loss::kInputDamaged, "copies of an unknown kind or size");
    const auto work = common(rows, !migration);
    if (!work) return;
    const std::int64_t host_side = (direction == "device_to_host" ? target : source).value_or(-1);
    const bool with_host = base::contains(direction, "host");
    add_copy(*work, direction, *bytes, migration ? "managed" : with_host ? host_memory_of(host_side) : "");
  }

  void add_copy(const Common& work, std::string_view direction, std::int64_t bytes, std::string_view host_memory) {
    trace::CopyRow row;
    fill(row, work);
    row.direction = sink_.name(direction);
    row.bytes = bytes;
    if (!host_memory.empty()) row.host_memory = sink_.name(host_memory);
    const auto kind = direction == "fill" ? Graphs::Kind::kMemset : Graphs::Kind::kMemcpy;
    add_to_graph(row, work, kind, {});
  }

  Export& from_;
  Sink& sink_;
  Graphs& graphs_;
  Launches& launches_;
  const std::vector<trace::Id>& stack_ids_;
  bool found_any_ = false;
};

}  // namespace

// The calls are let go of before the ranges come: both may be many.
Result<bool> read_device_work(Export& from) {
  Launches launches;
  Graphs graphs(from);
  std::vector<trace::Id> stack_ids;
  LLMPROF_TRY(read_calls(from, launches, stack_ids));
  LLMPROF_TRY(graphs.read_nodes());
  Work work(from, graphs, launches, stack_ids);
  LLMPROF_TRY(work.read_kernels());
  LLMPROF_TRY(work.read_copies());
  LLMPROF_TRY(work.read_fills());
  LLMPROF_TRY(work.read_graph_launches());
  graphs.write();
  LLMPROF_TRY(read_allocations(from, launches));
  return work.found_any();
}

}  // namespace llmprof::importers::nsys
