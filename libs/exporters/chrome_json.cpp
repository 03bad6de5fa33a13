// Chrome JSON as PyTorch's profiler writes it: the same categories and names of arguments, so that what reads Kineto
// traces reads this. docs/format/export-chrome.md lists every field.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/version.h"
#include "exporters/chrome_events.h"
#include "exporters/exporter.h"
#include "exporters/json_text.h"
#include "exporters/selection.h"
#include "exporters/stacks.h"
#include "exporters/timeline.h"
#include "exporters/tracks.h"
#include "exporters/windows.h"

namespace llmprof::exporters {
namespace chrome_json {
namespace {

constexpr std::int64_t kNull = trace::Columns::kNull;
constexpr std::int64_t kWindowRows = 1 << 20;  // launches joined with calls at once
constexpr std::int64_t kBeyondSystemPids = 1 << 22;

class Writer {
 public:
  Writer(const Request& request, OutputFile& out, Tracks tracks, Stacks stacks)
      : request_(request),
        run_(request.run),
        out_(out),
        tracks_(std::move(tracks)),
        stacks_(std::move(stacks)),
        events_(out) {
    number_processes();
  }
  Result<void> write();
  std::int64_t written() const { return events_.written(); }

 private:
  using Row = std::function<void(const trace::ColumnChunk&, std::size_t)>;
  Result<void> each(std::string_view what, const std::string& sql, const Row& row);
  void number_processes();
  Result<void> write_head();
  void write_names();
  Result<void> write_ranges();
  Result<void> write_ops();
  Result<void> write_calls(const Window& window);
  Result<void> load_graph_calls();
  void write_graph_call(std::int64_t graph_launch_id);
  Result<void> write_kernels(const std::string& kernels, std::string_view order);
  Result<void> write_copies();
  Result<void> write_graphs();
  Result<void> write_counters();

  // "name" of the current result, with its quotes.
  const std::string& quoted(const trace::ColumnChunk& chunk, std::int64_t code) {
    const auto at = static_cast<std::size_t>(code);
    if (at >= quoted_.size()) quoted_.resize(chunk.names.size());
    if (quoted_[at].empty()) quoted_[at] = json_quoted(at == 0 ? "(no name)" : chunk.names[at]);
    return quoted_[at];
  }
  void text(std::string_view name, const trace::ColumnChunk& chunk, std::int64_t code) {
    if (code != 0) events_.json(name, quoted(chunk, code));
  }
  // What a framework wrote as JSON stays JSON, anything else is text.
  void raw(std::string_view name, const trace::ColumnChunk& chunk, std::int64_t code) {
    if (code == 0) return;
    const std::string& value = chunk.names[static_cast<std::size_t>(code)];
    events_.json(name, is_json(value) ? value : quoted(chunk, code));
  }
  void stack(std::int64_t stack_id) {
    const std::string folded = stack_id == kNull ? "" : stacks_.folded(stack_id);
    if (!folded.empty()) events_.json("Call stack", json_quoted(folded));
  }

  std::int64_t pid_of(const HostThread& thread) const { return process_pids_[thread.process]; }
  struct Place {
    std::int64_t pid, tid;
  };
  Place place(std::int64_t thread_id) {
    const HostThread& thread = tracks_.threads[tracks_.thread(thread_id)];
    return {pid_of(thread), thread.tid};
  }
  std::int64_t device_number(std::int64_t device_id) {
    const std::size_t device = tracks_.device(device_id);
    while (device_numbers_.size() <= device) device_numbers_.push_back(next_device_++);
    return device_numbers_[device];
  }
  // A stream; on a CPU, the thread that computed.
  Place stream_place(std::int64_t device_id, std::int64_t stream, std::int64_t thread_id) {
    const Place place{device_number(device_id),
                      stream != kNull ? stream : tracks_.threads[tracks_.thread(thread_id)].tid};
    streams_.insert({place.pid, place.tid, stream != kNull});
    return place;
  }

  struct Call {
    std::int64_t thread_id, begin_ns, end_ns;
    std::string name;  // with its quotes
  };

  const Request& request_;
  const trace::Run& run_;
  OutputFile& out_;
  Tracks tracks_;
  Stacks stacks_;
  std::vector<std::int64_t> process_pids_, device_numbers_;
  std::int64_t next_device_ = 0;
  std::set<std::tuple<std::int64_t, std::int64_t, bool>> streams_;  // device, stream, whether it is one
  std::vector<std::string> quoted_;                                 // of the current result, by code
  ChromeEvents events_;
  std::unordered_map<std::int64_t, Call> graph_calls_;  // by graph_launch id, until they are written
  std::int64_t begin_ns_ = 0;
};

// GPUs are processes with their ordinal as number, as in Kineto's traces; CPUs come after them. A process of the same
// number moves out of the way.
void Writer::number_processes() {
  std::unordered_set<std::int64_t> used;
  for (const Device& device : tracks_.devices) {
    if (device.is_gpu) next_device_ = std::max(next_device_, device.ordinal + 1);
  }
  for (const Device& device : tracks_.devices) {
    device_numbers_.push_back(device.is_gpu ? device.ordinal : next_device_++);
    used.insert(device_numbers_.back());
  }
  for (const HostProcess& process : tracks_.processes)
    process_pids_.push_back(used.contains(process.pid) ? process.pid + kBeyondSystemPids : process.pid);
}

Result<void> Writer::each(std::string_view what, const std::string& sql, const Row& row) {
  quoted_.clear();
  bool go_on = true;
  LLMPROF_TRY(run_.column_chunks(sql, [&](const trace::ColumnChunk& chunk) {
    for (std::size_t i = 0; i < chunk.count; ++i) row(chunk, i);
    go_on = request_.progress({what, static_cast<double>(events_.written()), 0, "events"});
    return go_on && !out_.failed();
  }));
  if (!go_on) return Error{ErrorCode::kInterrupted, "interrupted", ""};
  return {};
}

Result<void> Writer::write_head() {
  LLMPROF_LET(const std::optional<std::int64_t> base_ns, wall_of_zero_ns(run_));
  std::string head = "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [";
  for (std::size_t i = 0; i < tracks_.devices.size(); ++i) {
    const Device& device = tracks_.devices[i];
    head += fmt::format("{}{{\"id\": {}, \"name\": {}, \"totalGlobalMem\": {}, \"numSms\": {}, \"kind\": \"{}\"}}",
                        i == 0 ? "" : ", ", device_numbers_[i], json_quoted(device.name), device.memory_bytes,
                        device.units, device.is_gpu ? "gpu" : "cpu");
  }
  head += "],\n";
  for (const HostProcess& process : tracks_.processes) {
    if (!process.rank) continue;
    head += fmt::format("\"distributedInfo\": {{\"rank\": {}}},\n", *process.rank);
    break;
  }
  head += "\"displayTimeUnit\": \"ms\",\n";
  if (base_ns) head += fmt::format("\"baseTimeNanoseconds\": {},\n", *base_ns);
  head += fmt::format("\"llmprof\": {{\"version\": {}, \"source\": {}}},\n\"traceEvents\": [",
                      json_quoted(base::version()), json_quoted(run_.info().source));
  out_.write(head);
  return {};
}

// Names of processes and threads. Last: what was used is known then.
void Writer::write_names() {
  const auto meta = [&](std::string_view what, std::int64_t pid, std::int64_t tid, std::string_view argument,
                        const std::string& value) {
    events_.point("M", "", json_quoted(what), pid, tid, begin_ns_, argument, value);
  };
  for (std::size_t i = 0; i < tracks_.processes.size(); ++i) {
    meta("process_name", process_pids_[i], 0, "name", json_quoted(tracks_.processes[i].name));
    meta("process_labels", process_pids_[i], 0, "labels", "\"CPU\"");
    meta("process_sort_index", process_pids_[i], 0, "sort_index", std::to_string(process_pids_[i]));
  }
  for (const HostThread& thread : tracks_.threads) {
    const std::string name = thread.name.empty() ? fmt::format("thread {}", thread.tid) : thread.name;
    meta("thread_name", pid_of(thread), thread.tid, "name", json_quoted(name));
  }
  for (std::size_t i = 0; i < tracks_.devices.size(); ++i) {
    const Device& device = tracks_.devices[i];
    const std::int64_t number = device_number(device.id);
    meta("process_name", number, 0, "name", json_quoted(device.title));
    meta("process_labels", number, 0, "labels",
         json_quoted(fmt::format("{} {}", device.is_gpu ? "GPU" : "CPU", number)));
    meta("process_sort_index", number, 0, "sort_index", std::to_string(5'000'000 + number));
  }
  for (const auto& [device, stream, is_stream] : streams_) {
    meta("thread_name", device, stream, "name",
         json_quoted(fmt::format("{} {}", is_stream ? "stream" : "thread", stream)));
    meta("thread_sort_index", device, stream, "sort_index", std::to_string(stream));
  }
}

Result<void> Writer::write_ranges() {
  return each("ranges",
              fmt::format("SELECT thread_id, begin_ns, end_ns, name, kind, domain, category, payload FROM ({})",
                          request_.selection.stage.empty() ? selected_rows("range", request_.selection)
                                                           : selected_ranges(request_.selection)),
              [&](const trace::ColumnChunk& chunk, std::size_t row) {
                const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
                const Place at = place(value(0));
                events_.begin("X", "user_annotation", quoted(chunk, value(3)), at.pid, at.tid, value(1));
                events_.duration(value(1), value(2));
                text("kind", chunk, value(4));
                text("domain", chunk, value(5));
                text("category", chunk, value(6));
                events_.integer("payload", value(7));
                events_.end();
              });
}

Result<void> Writer::write_ops() {
  return each(
      "operators",
      fmt::format("SELECT thread_id, begin_ns, end_ns, name, correlation, sequence, shapes, types, stack_id FROM "
                  "({})",
                  selected_ops(request_.selection)),
      [&](const trace::ColumnChunk& chunk, std::size_t row) {
        const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
        const Place at = place(value(0));
        events_.begin("X", "cpu_op", quoted(chunk, value(3)), at.pid, at.tid, value(1));
        events_.duration(value(1), value(2));
        events_.integer("External id", value(4));
        events_.integer("Sequence number", value(5));
        raw("Input Dims", chunk, value(6));
        raw("Input type", chunk, value(7));
        stack(value(8));
        events_.end();
      });
}

// Calls of the device's interface; a launch is a call too, with the name it was recorded under if it was.
Result<void> Writer::write_calls(const Window& window) {
  const auto in_window = [&](const char* column) {
    return fmt::format("{} >= {} AND {} < {}", column, window.begin_ns, column, window.end_ns);
  };
  const auto launches = [&](const std::string& source, const char* name, const char* flow, bool may_be_in_graph) {
    return fmt::format(
        "SELECT thread_id, launch_begin_ns AS begin_ns, coalesce(launch_end_ns, launch_begin_ns) AS end_ns, {} AS "
        "name, "
        "{} AS flow FROM ({}) WHERE {}{}",
        name, flow, source, in_window("launch_begin_ns"), may_be_in_graph ? " AND graph_launch_id IS NULL" : "");
  };
  const std::string sql = fmt::format(
      "SELECT coalesce(l.thread_id, a.thread_id), coalesce(l.begin_ns, a.begin_ns), coalesce(l.end_ns, a.end_ns), "
      "coalesce(a.name, l.name), l.flow, a.correlation FROM ({} UNION ALL {} UNION ALL {}) AS l FULL JOIN (SELECT * "
      "FROM "
      "({}) WHERE {}) AS a ON a.thread_id = l.thread_id AND a.begin_ns = l.begin_ns AND a.end_ns = l.end_ns WHERE "
      "l.flow IS NULL OR l.flow % 4 <> 3",
      launches(selected_rows("kernel", request_.selection), "'cudaLaunchKernel'", kFlowOfKernel, true),
      launches(selected_copies(request_.selection),
               "CASE WHEN direction = 'fill' THEN 'cudaMemsetAsync' ELSE 'cudaMemcpyAsync' END", kFlowOfCopy, true),
      launches(selected_graph_launches(request_.selection), "'cudaGraphLaunch'", kFlowOfGraph, false),
      selected_apis(request_.selection), in_window("begin_ns"));
  return each("calls", sql, [&](const trace::ColumnChunk& chunk, std::size_t row) {
    const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
    const Place at = place(value(0));
    const bool driver = value(3) != 0 && chunk.names[static_cast<std::size_t>(value(3))].starts_with("cu") &&
                        !chunk.names[static_cast<std::size_t>(value(3))].starts_with("cuda");
    events_.begin("X", driver ? "cuda_driver" : "cuda_runtime", quoted(chunk, value(3)), at.pid, at.tid, value(1));
    events_.duration(value(1), value(2));
    // Calls that launched nothing keep off the numbers of launches: those have a remainder of 1 to 3.
    events_.integer("correlation", value(4) != kNull ? value(4) : value(5) != kNull ? value(5) * 4 : kNull);
    events_.end();
    if (value(4) != kNull) events_.flow("s", value(4), at.pid, at.tid, value(1));
  });
}

// Calls that launch graphs are written right before the first kernel of the graph, as Kineto does: readers of long
// files keep few launches open.
Result<void> Writer::load_graph_calls() {
  return each("graph launches",
              fmt::format("SELECT l.id, l.thread_id, l.launch_begin_ns, coalesce(l.launch_end_ns, l.launch_begin_ns), "
                          "coalesce(a.name, 'cudaGraphLaunch') FROM ({}) AS l LEFT JOIN api AS a ON a.thread_id = "
                          "l.thread_id AND a.begin_ns = l.launch_begin_ns AND a.end_ns = l.launch_end_ns WHERE "
                          "l.launch_begin_ns IS NOT NULL",
                          selected_graph_launches(request_.selection)),
              [&](const trace::ColumnChunk& chunk, std::size_t row) {
                const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
                graph_calls_.insert_or_assign(value(0), Call{value(1), value(2), value(3), quoted(chunk, value(4))});
              });
}

void Writer::write_graph_call(std::int64_t graph_launch_id) {
  const auto found = graph_calls_.find(graph_launch_id);
  if (found == graph_calls_.end()) return;
  const Call& call = found->second;
  const Place at = place(call.thread_id);
  events_.begin("X", "cuda_runtime", call.name, at.pid, at.tid, call.begin_ns);
  events_.duration(call.begin_ns, call.end_ns);
  events_.integer("correlation", graph_launch_id * 4 + 3);
  events_.end();
  events_.flow("s", graph_launch_id * 4 + 3, at.pid, at.tid, call.begin_ns);
  graph_calls_.erase(found);
}

Result<void> Writer::write_kernels(const std::string& kernels, std::string_view order) {
  const std::string sql = fmt::format(R"(
SELECT k.device_id, k.stream, k.thread_id, k.begin_ns, k.end_ns, k.name,
  CASE WHEN k.launch_begin_ns IS NULL THEN NULL WHEN k.graph_launch_id IS NOT NULL THEN k.graph_launch_id * 4 + 3
       ELSE k.id * 4 + 1 END,
  k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, k.registers, k.shared_bytes, k.graph_node_id,
  o.correlation, g.m, g.n, g.k, k.stage, k.module, k.op, k.stack_id, k.source = 'estimated',
  CAST(round(k.confidence * 100) AS BIGINT), k.graph_launch_id
FROM ({}) AS k
LEFT JOIN (SELECT id AS product, m, n, k FROM gemm) AS g ON g.product = k.gemm_id
LEFT JOIN (SELECT id AS operator, correlation FROM op) AS o ON o.operator = k.op_id {})",
                                      kernels, order);
  return each("kernels", sql, [&](const trace::ColumnChunk& chunk, std::size_t row) {
    const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
    const auto triple = [&](std::string_view name, std::size_t column) {
      if (value(column) == kNull) return;
      events_.json(name, fmt::format("[{}, {}, {}]", value(column), std::max<std::int64_t>(value(column + 1), 1),
                                     std::max<std::int64_t>(value(column + 2), 1)));
    };
    if (value(26) != kNull) write_graph_call(value(26));
    const Place at = stream_place(value(0), value(1), value(2));
    events_.begin("X", "kernel", quoted(chunk, value(5)), at.pid, at.tid, value(3));
    events_.duration(value(3), value(4));
    events_.integer("External id", value(16));
    events_.integer("device", at.pid);
    events_.integer("stream", value(1));
    events_.integer("correlation", value(6));
    events_.integer("registers per thread", value(13));
    events_.integer("shared memory", value(14));
    triple("grid", 7);
    triple("block", 10);
    events_.integer("graph node id", value(15));
    events_.integer("m", value(17));
    events_.integer("n", value(18));
    events_.integer("k", value(19));
    text("stage", chunk, value(20));
    text("module", chunk, value(21));
    text("op", chunk, value(22));
    stack(value(23));
    if (value(24) == 1) {
      events_.json("estimated", "true");
      events_.integer("confidence %", value(25));
    }
    events_.end();
    if (value(6) != kNull) events_.flow("f", value(6), at.pid, at.tid, value(3));
  });
}

Result<void> Writer::write_copies() {
  const std::string sql = fmt::format(R"(
SELECT c.device_id, c.stream, c.thread_id, c.begin_ns, c.end_ns, c.name,
  CASE WHEN c.launch_begin_ns IS NULL THEN NULL WHEN c.graph_launch_id IS NOT NULL THEN c.graph_launch_id * 4 + 3
       ELSE c.id * 4 + 2 END,
  c.bytes, c.graph_node_id, o.correlation, c.direction = 'fill',
  CASE WHEN c.end_ns > c.begin_ns THEN c.bytes / (c.end_ns - c.begin_ns)::DOUBLE END
FROM (
  SELECT *, coalesce(upper(host_memory[1]) || host_memory[2:], 'Unknown') AS host, CASE direction
    WHEN 'fill' THEN 'Memset (Device)'
    WHEN 'host_to_device' THEN 'Memcpy HtoD (' || host || ' -> Device)'
    WHEN 'device_to_host' THEN 'Memcpy DtoH (Device -> ' || host || ')'
    WHEN 'device_to_device' THEN 'Memcpy DtoD (Device -> Device)'
    WHEN 'peer' THEN 'Memcpy PtoP (Device -> Device)'
    WHEN 'host_to_host' THEN 'Memcpy HtoH (Host -> Host)'
    ELSE 'Memcpy' END AS name
  FROM ({})) AS c
LEFT JOIN (SELECT id AS operator, correlation FROM op) AS o ON o.operator = c.op_id)",
                                      selected_copies(request_.selection));
  return each("copies", sql, [&](const trace::ColumnChunk& chunk, std::size_t row) {
    const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
    const Place at = stream_place(value(0), value(1), value(2));
    events_.begin("X", value(10) == 1 ? "gpu_memset" : "gpu_memcpy", quoted(chunk, value(5)), at.pid, at.tid, value(3));
    events_.duration(value(3), value(4));
    events_.integer("External id", value(9));
    events_.integer("device", at.pid);
    events_.integer("stream", value(1));
    events_.integer("correlation", value(6));
    events_.integer("bytes", value(7));
    if (std::isfinite(chunk.reals[11][row])) events_.real("memory bandwidth (GB/s)", chunk.reals[11][row]);
    events_.integer("graph node id", value(8));
    events_.end();
    if (value(6) != kNull) events_.flow("f", value(6), at.pid, at.tid, value(3));
  });
}

// Launches of which no node is known: their time would be missing else.
Result<void> Writer::write_graphs() {
  return each(
      "graph launches",
      fmt::format("SELECT device_id, stream, thread_id, begin_ns, end_ns, id, graph, launch_begin_ns IS NOT NULL "
                  "FROM ({}) AS l WHERE NOT coalesce(nodes_recorded, false) AND graph NOT IN (SELECT n.graph FROM "
                  "graph_node AS n JOIN node_share AS s ON s.graph_node_id = n.id)",
                  selected_graph_launches(request_.selection)),
      [&](const trace::ColumnChunk& chunk, std::size_t row) {
        const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
        const Place at = stream_place(value(0), value(1), value(2));
        events_.begin("X", "graph_launch", "\"nodes of an unknown graph\"", at.pid, at.tid, value(3));
        events_.duration(value(3), value(4));
        events_.integer("device", at.pid);
        events_.integer("stream", value(1));
        if (value(7) == 1) events_.integer("correlation", value(5) * 4 + 3);
        events_.integer("graph id", value(6));
        events_.end();
        if (value(7) == 1) events_.flow("f", value(5) * 4 + 3, at.pid, at.tid, value(3));
      });
}

Result<void> Writer::write_counters() {
  return each("counters",
              fmt::format("SELECT device_id, ts_ns, metric || coalesce(' (' || nullif(unit, '') || ')', ''), value, "
                          "process_id FROM ({}) ORDER BY ts_ns",
                          selected_telemetry(request_.selection)),
              [&](const trace::ColumnChunk& chunk, std::size_t row) {
                if (!std::isfinite(chunk.reals[3][row])) return;
                const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
                const auto process = tracks_.process_of_id.find(value(4));
                const std::int64_t pid =
                    process != tracks_.process_of_id.end() ? process_pids_[process->second] : device_number(value(0));
                std::string reading;
                append_real(reading, chunk.reals[3][row]);
                events_.point("C", "telemetry", quoted(chunk, value(2)), pid, 0, value(1), "value", reading);
              });
}

Result<void> Writer::write() {
  LLMPROF_TRY(write_head());
  LLMPROF_LET(const std::vector<Window> calls, windows_of(run_, host_slices(request_.selection), kWindowRows));
  if (!calls.empty()) begin_ns_ = calls.front().begin_ns;
  LLMPROF_TRY(write_ranges());
  LLMPROF_TRY(write_ops());
  for (const Window& window : calls) LLMPROF_TRY(write_calls(window));
  const std::string kernels = selected_kernels(request_.selection);
  LLMPROF_TRY(write_kernels(fmt::format("SELECT * FROM ({}) WHERE graph_launch_id IS NULL", kernels), ""));
  LLMPROF_TRY(load_graph_calls());
  const std::string in_graphs = fmt::format("SELECT * FROM ({}) WHERE graph_launch_id IS NOT NULL", kernels);
  LLMPROF_LET(const std::vector<Window> graphs,
              windows_of(run_,
                         fmt::format("SELECT begin_ns FROM ({}) WHERE graph_launch_id IS NOT NULL",
                                     kernels_of(request_.selection, Detail::kPlain)),
                         kWindowRows));
  for (const Window& window : graphs) {
    LLMPROF_TRY(write_kernels(fmt::format("SELECT * FROM ({}) WHERE begin_ns >= {} AND begin_ns < {}", in_graphs,
                                          window.begin_ns, window.end_ns),
                              "ORDER BY k.graph_launch_id, k.begin_ns"));
  }
  while (!graph_calls_.empty()) write_graph_call(graph_calls_.begin()->first);
  LLMPROF_TRY(write_copies());
  LLMPROF_TRY(write_graphs());
  LLMPROF_TRY(write_counters());
  write_names();
  out_.write("\n]}\n");
  return {};
}

Result<Written> write(const Request& request) {
  LLMPROF_LET(Tracks tracks, load_tracks(request.run));
  LLMPROF_LET(Stacks stacks, load_stacks(request.run));
  LLMPROF_LET(OutputFile out, OutputFile::create(request.output));
  Writer writer(request, out, std::move(tracks), std::move(stacks));
  LLMPROF_TRY(writer.write());
  LLMPROF_TRY(out.finish());
  Written written{{request.output}, writer.written(), {}};
  LLMPROF_LET(const trace::ResultTable samples, request.run.query("SELECT count(*) FROM sample"));
  if (samples.rows[0][0].as_int() > 0)
    written.notes.emplace_back("without stack samples; speedscope, pprof and folded have them");
  return written;
}

}  // namespace
}  // namespace chrome_json

extern const Exporter kChromeJson;
const Exporter kChromeJson{"chrome",
                           "Chrome trace JSON as PyTorch's profiler writes it: ui.perfetto.dev, chrome://tracing",
                           ".json", chrome_json::write};

}  // namespace llmprof::exporters
