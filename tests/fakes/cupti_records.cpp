// What the fake driver tells the fake CUPTI, as records and callbacks: only of kinds that are on, only to subscribers.
#include "cupti_profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace fake {
namespace {

bool every(std::uint64_t n, std::uint64_t number) { return n != 0 && number % n == 0; }

void dispatch(Domain domain, std::uint32_t id, const void* data) {
  CuptiState& state = cupti();
  if (id >= kCallbackIds || !state.enabled[domain][id].load(std::memory_order_relaxed)) return;
  std::unique_lock<std::recursive_mutex> hold;
  if (script().lock != 0) hold = std::unique_lock(state.lock);
  if (state.callback == nullptr) return;
  note(k_callbacks);
  state.callback(state.user_data, domain, id, data);
}

void on_api(const Api& call, int site, int* result) {
  CallbackData data{};
  data.site = site;
  data.function_name = call.name;
  data.parameters = call.parameters;
  data.return_value = result;
  data.symbol_name = call.symbol;
  data.context = call.context;
  data.context_uid = call.context != nullptr ? call.context->id : 0;
  data.correlation_data = call.correlation_data;
  data.correlation_id = call.correlation;
  if (site == 1 && cupti().kinds[kDriver].load()) {
    ApiActivity record{};
    record.kind = kDriver;
    record.id = call.id;
    record.start = call.begin_ns;
    record.end = timestamp_ns();
    record.process = static_cast<std::uint32_t>(getpid());
    record.thread = static_cast<std::uint32_t>(syscall(SYS_gettid));
    record.correlation = call.correlation;
    append(&record, sizeof(record), record.end);
    note(k_other_records);
  }
  dispatch(kDriverApi, call.id, &data);
}

void on_resource(std::uint32_t id, Context* context, Stream* stream, void* descriptor) {
  if (script().hide_nodes != 0 && id >= kGraphCreated && id <= kNodeUpdated) return;
  // CUPTI 13.0 says of every node that it is a kernel.
  const bool of_graph = descriptor != nullptr && id >= kGraphCreated && id <= kNodeUpdated;
  if (of_graph && script().version >= 130000) static_cast<GraphData*>(descriptor)->node_type = 0;
  const ResourceData data{context, stream, descriptor};
  dispatch(kResource, id, &data);
}

struct Times {
  std::uint64_t start, end;
};

// The times a record gets, after what the script does to them. Each number counts works since the start. The real one
// gives none of a kernel that it executes again (H200, CUDA 13.0).
Times times_of(const Work& work, std::uint64_t number, bool replayed) {
  const Script& told = script();
  if (replayed || every(told.zero, number)) return note(k_zero_records), Times{0, 0};
  Times times{work.begin_ns, work.end_ns};
  if (every(told.reversed, number)) times = {work.end_ns, work.begin_ns};
  if (every(told.shifted, number)) times = {work.begin_ns + 100000000000000u, work.end_ns + 100000000000000u};
  if (every(told.early, number)) times = {work.begin_ns - 3600000000000u, work.end_ns - 3600000000000u};
  if (times.start != work.begin_ns) note(k_bad_time_records);
  return times;
}

void kernel(const Work& work, Times times) {
  alignas(8) std::uint8_t memory[4096] = {};
  auto& record = *reinterpret_cast<KernelActivity*>(memory);
  record.kind = kConcurrentKernel;
  record.registers = 32;
  record.start = times.start;
  record.end = times.end;
  record.device = static_cast<std::uint32_t>(work.device);
  record.context = work.context;
  record.stream = work.stream;
  for (int i = 0; i < 3; ++i) record.grid[i] = static_cast<std::int32_t>(work.grid[i]);
  for (int i = 0; i < 3; ++i) record.block[i] = static_cast<std::int32_t>(work.block[i]);
  record.dynamic_shared = static_cast<std::int32_t>(work.shared_bytes);
  record.correlation = work.correlation;
  record.name = work.name;
  record.graph_node = work.node;
  record.graph = work.graph;
  append(memory, record_bytes(kConcurrentKernel), work.end_ns);
  note(k_kernel_records);
}

void copy(const Work& work, Times times) {
  MemcpyActivity record{};
  record.kind = kMemcpy;
  record.copy_kind = work.copy_kind;
  record.from_kind = work.from_kind;
  record.to_kind = work.to_kind;
  record.bytes = work.bytes;
  record.start = times.start;
  record.end = times.end;
  record.device = static_cast<std::uint32_t>(work.device);
  record.context = work.context;
  record.stream = work.stream;
  record.correlation = work.correlation;
  record.graph_node = work.node;
  record.graph = work.graph;
  record.copy_count = 1;
  append(&record, record_bytes(kMemcpy), work.end_ns);
  note(k_copy_records);
}

void memset_of(const Work& work, Times times) {
  MemsetActivity record{};
  record.kind = kMemset;
  record.bytes = work.bytes;
  record.start = times.start;
  record.end = times.end;
  record.device = static_cast<std::uint32_t>(work.device);
  record.context = work.context;
  record.stream = work.stream;
  record.correlation = work.correlation;
  record.memory_kind = 3;
  record.graph_node = work.node;
  record.graph = work.graph;
  append(&record, record_bytes(kMemset), work.end_ns);
  note(k_copy_records);
}

void graph(const Work& work, Times times) {
  GraphTraceActivity record{};
  record.kind = kGraphTrace;
  record.correlation = work.correlation;
  record.start = times.start;
  record.end = times.end;
  record.device = record.end_device = static_cast<std::uint32_t>(work.device);
  record.graph = work.graph;
  record.context = record.end_context = work.context;
  record.stream = work.stream;
  append(&record, record_bytes(kGraphTrace), work.end_ns);
  note(k_graph_records);
}

void on_work(const Work& work) {
  const bool launched = work.kind == kConcurrentKernel && work.graph == 0;
  if (launched && script().launch_ms != 0) usleep(static_cast<useconds_t>(script().launch_ms * 1000));
  const bool replayed = ranges_see(work);
  pc_sampling_sees(work);
  if (!cupti().kinds[work.kind].load()) return note(k_unrecorded);
  static std::atomic<std::uint64_t> works{0};
  const std::uint64_t number = ++works;
  if (every(script().drop, number)) {
    const std::lock_guard hold(cupti().lock);
    ++cupti().dropped;
    return note(k_dropped_records);
  }
  const Times times = times_of(work, number, replayed);
  if (work.kind == kConcurrentKernel) kernel(work, times);
  if (work.kind == kMemcpy) copy(work, times);
  if (work.kind == kMemset) memset_of(work, times);
  if (work.kind == kGraphTrace) graph(work, times);
  if (every(script().unheard, number)) {
    UnheardOfActivity record{};
    record.kind = kUnheardOf;
    append(&record, sizeof(record), 0);
    note(k_unknown_records);
  }
}

void on_memory(const Memory& memory) {
  if (!cupti().kinds[kMemory2].load()) return;
  MemoryActivity record{};
  record.kind = kMemory2;
  record.operation = memory.release ? 2 : 1;
  record.memory_kind = 3;
  record.correlation = memory.correlation;
  record.address = memory.address;
  record.bytes = memory.bytes;
  record.timestamp = timestamp_ns();
  record.process = static_cast<std::uint32_t>(getpid());
  record.context = memory.context;
  append(&record, record_bytes(kMemory2), record.timestamp);
  note(k_memory_records);
}

void on_waited(std::uint32_t correlation, Stream* stream, Context* context, std::uint64_t begin_ns) {
  if (!cupti().kinds[kSynchronization].load()) return;
  SynchronizationActivity record{};
  record.kind = kSynchronization;
  record.type = 3;  // a stream
  record.start = begin_ns;
  record.end = timestamp_ns();
  record.correlation = correlation;
  record.context = context->id;
  record.stream = stream->id;
  append(&record, sizeof(record), record.end);
  note(k_other_records);
}

bool graphs_as_a_whole() { return cupti().kinds[kGraphTrace].load(); }
bool graphs_were_traced() { return cupti().graph_trace_before.load(); }

}  // namespace

// Sizes as each version's structures have them: 200, 208, 216 bytes for kernels of CUDA 11.8, 12 and 13.
std::size_t record_bytes(std::uint32_t kind) {
  const std::uint32_t version = script().version;
  switch (kind) {
    case kConcurrentKernel:
      return (version <= 18 ? 200 : version < 1000 ? 208 : sizeof(KernelActivity)) + script().grown;
    case kMemcpy:
      return version < 1000 ? 88 : sizeof(MemcpyActivity);
    case kMemset:
      return sizeof(MemsetActivity);
    case kGraphTrace:
      return version < 22 ? 48 : sizeof(GraphTraceActivity);
    case kMemory2:
      return version < 1000 ? 120 : sizeof(MemoryActivity);
    case kDriver:
      return sizeof(ApiActivity);
    case kSynchronization:
      return sizeof(SynchronizationActivity);
    case kUnheardOf:
      return sizeof(UnheardOfActivity);
    default:
      return 0;
  }
}

const Tool kTool{timestamp_ns, on_api,    on_resource,       on_work,
                 on_memory,    on_waited, graphs_as_a_whole, graphs_were_traced};

}  // namespace fake
