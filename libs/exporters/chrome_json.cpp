// Chrome JSON as PyTorch's profiler writes it: the same categories and names of arguments, so that what reads Kineto
// traces reads this. docs/format/export-chrome.md lists every field.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "base/version.h"
#include "exporters/exporter.h"
#include "exporters/json_text.h"
#include "exporters/output_file.h"
#include "exporters/selection.h"
#include "exporters/stacks.h"
#include "exporters/timeline.h"
#include "exporters/tracks.h"
#include "exporters/windows.h"

namespace llmprof::exporters {
namespace {

constexpr std::int64_t kNull = trace::Columns::kNull;
constexpr std::int64_t kWindowRows = 1 << 20;  // launches joined with calls at once
constexpr std::int64_t kBeyondSystemPids = 1 << 22;

class Writer {
 public:
  Writer(const Request& request, OutputFile& out, Tracks tracks, Stacks stacks)
      : request_(request), run_(request.run), out_(out), tracks_(std::move(tracks)), stacks_(std::move(stacks)) {
    number_processes();
  }
  Result<void> write();
  std::int64_t written() const { return events_; }

 private:
  using Row = std::function<void(const trace::ColumnChunk&, std::size_t)>;
  Result<void> each(std::string_view what, const std::string& sql, const Row& row);
  void number_processes();
  Result<void> write_head();
  void write_names();
  Result<void> write_ranges();
  Result<void> write_ops();
  Result<void> write_calls(const Window& window);
  Result<void> write_kernels();
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
  void begin_event(std::string_view phase, std::string_view category, std::string_view quoted_name, std::int64_t pid,
                   std::int64_t tid, std::int64_t at_ns);
  void duration(std::int64_t begin_ns, std::int64_t end_ns) {
    line_ += ", \"dur\": ";
    append_microseconds(line_, end_ns > begin_ns ? end_ns - begin_ns : 0);
    line_ += ", \"args\": {";
    first_ = true;
  }
  void key(std::string_view name) {
    line_ += first_ ? "\"" : ", \"";
    line_ += name;
    line_ += "\": ";
    first_ = false;
  }
  void integer(std::string_view name, std::int64_t value) {
    if (value == kNull) return;
    key(name);
    append_number(line_, value);
  }
  void text(std::string_view name, const trace::ColumnChunk& chunk, std::int64_t code) {
    if (code == 0) return;
    key(name);
    line_ += quoted(chunk, code);
  }
  // What a framework wrote as JSON stays JSON, anything else is text.
  void raw(std::string_view name, const trace::ColumnChunk& chunk, std::int64_t code) {
    if (code == 0) return;
    key(name);
    const std::string& value = chunk.names[static_cast<std::size_t>(code)];
    line_ += is_json(value) ? value : quoted(chunk, code);
  }
  void stack(std::int64_t stack_id) {
    if (stack_id == kNull) return;
    const std::string folded = stacks_.folded(stack_id);
    if (folded.empty()) return;
    key("Call stack");
    line_ += json_quoted(folded);
  }
  void end_event(std::string_view tail) {
    line_ += tail;
    out_.write(line_);
    ++events_;
  }
  void flow(std::string_view phase, std::int64_t id, std::int64_t pid, std::int64_t tid, std::int64_t at_ns);

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

  const Request& request_;
  const trace::Run& run_;
  OutputFile& out_;
  Tracks tracks_;
  Stacks stacks_;
  std::vector<std::int64_t> process_pids_, device_numbers_;
  std::int64_t next_device_ = 0;
  std::set<std::tuple<std::int64_t, std::int64_t, bool>> streams_;  // device, stream, whether it is one
  std::vector<std::string> quoted_;                                 // of the current result, by code
  std::string line_;
  bool first_ = true;
  std::int64_t events_ = 0, begin_ns_ = 0;
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
    go_on = request_.progress({what, static_cast<double>(events_), 0, "events"});
    return go_on && !out_.failed();
  }));
  if (!go_on) return Error{ErrorCode::kInterrupted, "interrupted", ""};
  return {};
}

void Writer::begin_event(std::string_view phase, std::string_view category, std::string_view quoted_name,
                         std::int64_t pid, std::int64_t tid, std::int64_t at_ns) {
  line_ = events_ == 0 ? "\n{\"ph\": \"" : ",\n{\"ph\": \"";
  line_ += phase;
  if (!category.empty()) {
    line_ += "\", \"cat\": \"";
    line_ += category;
  }
  line_ += "\", \"name\": ";
  line_ += quoted_name;
  line_ += ", \"pid\": ";
  append_number(line_, pid);
  line_ += ", \"tid\": ";
  append_number(line_, tid);
  line_ += ", \"ts\": ";
  append_microseconds(line_, at_ns);
}

void Writer::flow(std::string_view phase, std::int64_t id, std::int64_t pid, std::int64_t tid, std::int64_t at_ns) {
  begin_event(phase, "ac2g", "\"ac2g\"", pid, tid, at_ns);
  line_ += ", \"id\": ";
  append_number(line_, id);
  end_event(phase == "f" ? ", \"bp\": \"e\"}" : "}");
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
    begin_event("M", "", json_quoted(what), pid, tid, begin_ns_);
    end_event(fmt::format(", \"args\": {{\"{}\": {}}}}}", argument, value));
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
                begin_event("X", "user_annotation", quoted(chunk, value(3)), at.pid, at.tid, value(1));
                duration(value(1), value(2));
                text("kind", chunk, value(4));
                text("domain", chunk, value(5));
                text("category", chunk, value(6));
                integer("payload", value(7));
                end_event("}}");
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
        begin_event("X", "cpu_op", quoted(chunk, value(3)), at.pid, at.tid, value(1));
        duration(value(1), value(2));
        integer("External id", value(4));
        integer("Sequence number", value(5));
        raw("Input Dims", chunk, value(6));
        raw("Input type", chunk, value(7));
        stack(value(8));
        end_event("}}");
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
      "({}) WHERE {}) AS a ON a.thread_id = l.thread_id AND a.begin_ns = l.begin_ns AND a.end_ns = l.end_ns",
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
    begin_event("X", driver ? "cuda_driver" : "cuda_runtime", quoted(chunk, value(3)), at.pid, at.tid, value(1));
    duration(value(1), value(2));
    // Calls that launched nothing keep off the numbers of launches: those have a remainder of 1 to 3.
    integer("correlation", value(4) != kNull ? value(4) : value(5) != kNull ? value(5) * 4 : kNull);
    end_event("}}");
    if (value(4) != kNull) flow("s", value(4), at.pid, at.tid, value(1));
  });
}

Result<void> Writer::write_kernels() {
  const std::string sql = fmt::format(
      "SELECT k.device_id, k.stream, k.thread_id, k.begin_ns, k.end_ns, k.name, CASE WHEN k.launch_begin_ns IS NULL "
      "THEN "
      "NULL WHEN k.graph_launch_id IS NOT NULL THEN k.graph_launch_id * 4 + 3 ELSE k.id * 4 + 1 END, k.grid_x, "
      "k.grid_y, "
      "k.grid_z, k.block_x, k.block_y, k.block_z, k.registers, k.shared_bytes, k.graph_node_id, o.correlation, g.m, "
      "g.n, "
      "g.k, k.stage, k.module, k.op, k.stack_id, k.source = 'estimated', CAST(round(k.confidence * 100) AS BIGINT) "
      "FROM "
      "({}) AS k LEFT JOIN (SELECT id AS product, m, n, k FROM gemm) AS g ON g.product = k.gemm_id LEFT JOIN (SELECT "
      "id "
      "AS operator, correlation FROM op) AS o ON o.operator = k.op_id",
      selected_kernels(request_.selection));
  return each("kernels", sql, [&](const trace::ColumnChunk& chunk, std::size_t row) {
    const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
    const auto triple = [&](std::string_view name, std::size_t column) {
      if (value(column) == kNull) return;
      key(name);
      line_ += fmt::format("[{}, {}, {}]", value(column), std::max<std::int64_t>(value(column + 1), 1),
                           std::max<std::int64_t>(value(column + 2), 1));
    };
    const Place at = stream_place(value(0), value(1), value(2));
    begin_event("X", "kernel", quoted(chunk, value(5)), at.pid, at.tid, value(3));
    duration(value(3), value(4));
    integer("External id", value(16));
    integer("device", at.pid);
    integer("stream", value(1));
    integer("correlation", value(6));
    integer("registers per thread", value(13));
    integer("shared memory", value(14));
    triple("grid", 7);
    triple("block", 10);
    integer("graph node id", value(15));
    integer("m", value(17));
    integer("n", value(18));
    integer("k", value(19));
    text("stage", chunk, value(20));
    text("module", chunk, value(21));
    text("op", chunk, value(22));
    stack(value(23));
    if (value(24) == 1) {
      key("estimated");
      line_ += "true";
      integer("confidence %", value(25));
    }
    end_event("}}");
    if (value(6) != kNull) flow("f", value(6), at.pid, at.tid, value(3));
  });
}

Result<void> Writer::write_copies() {
  const std::string sql = fmt::format(
      "SELECT c.device_id, c.stream, c.thread_id, c.begin_ns, c.end_ns, c.name, CASE WHEN c.launch_begin_ns IS NULL "
      "THEN "
      "NULL WHEN c.graph_launch_id IS NOT NULL THEN c.graph_launch_id * 4 + 3 ELSE c.id * 4 + 2 END, c.bytes, "
      "c.graph_node_id, o.correlation, c.direction = 'fill', CASE WHEN c.end_ns > c.begin_ns THEN c.bytes / (c.end_ns "
      "- "
      "c.begin_ns)::DOUBLE END FROM (SELECT *, CASE direction WHEN 'fill' THEN 'Memset (Device)' WHEN 'host_to_device' "
      "THEN 'Memcpy HtoD (' || coalesce(upper(host_memory[1]) || host_memory[2:], 'Unknown') || ' -> Device)' WHEN "
      "'device_to_host' THEN 'Memcpy DtoH (Device -> ' || coalesce(upper(host_memory[1]) || host_memory[2:], "
      "'Unknown') "
      "|| ')' WHEN 'device_to_device' THEN 'Memcpy DtoD (Device -> Device)' WHEN 'peer' THEN 'Memcpy PtoP (Device -> "
      "Device)' WHEN 'host_to_host' THEN 'Memcpy HtoH (Host -> Host)' ELSE 'Memcpy' END AS name FROM ({})) AS c LEFT "
      "JOIN "
      "(SELECT id AS operator, correlation FROM op) AS o ON o.operator = c.op_id",
      selected_copies(request_.selection));
  return each("copies", sql, [&](const trace::ColumnChunk& chunk, std::size_t row) {
    const auto value = [&](std::size_t column) { return chunk.values[column][row]; };
    const Place at = stream_place(value(0), value(1), value(2));
    begin_event("X", value(10) == 1 ? "gpu_memset" : "gpu_memcpy", quoted(chunk, value(5)), at.pid, at.tid, value(3));
    duration(value(3), value(4));
    integer("External id", value(9));
    integer("device", at.pid);
    integer("stream", value(1));
    integer("correlation", value(6));
    integer("bytes", value(7));
    if (std::isfinite(chunk.reals[11][row])) {
      key("memory bandwidth (GB/s)");
      append_real(line_, chunk.reals[11][row]);
    }
    integer("graph node id", value(8));
    end_event("}}");
    if (value(6) != kNull) flow("f", value(6), at.pid, at.tid, value(3));
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
        begin_event("X", "graph_launch", "\"nodes of an unknown graph\"", at.pid, at.tid, value(3));
        duration(value(3), value(4));
        integer("device", at.pid);
        integer("stream", value(1));
        if (value(7) == 1) integer("correlation", value(5) * 4 + 3);
        integer("graph id", value(6));
        end_event("}}");
        if (value(7) == 1) flow("f", value(5) * 4 + 3, at.pid, at.tid, value(3));
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
                begin_event("C", "telemetry", quoted(chunk, value(2)), pid, 0, value(1));
                line_ += ", \"args\": {\"value\": ";
                append_real(line_, chunk.reals[3][row]);
                end_event("}}");
              });
}

Result<void> Writer::write() {
  LLMPROF_TRY(write_head());
  LLMPROF_LET(const std::vector<Window> calls, windows_of(run_, host_slices(request_.selection), kWindowRows));
  if (!calls.empty()) begin_ns_ = calls.front().begin_ns;
  LLMPROF_TRY(write_ranges());
  LLMPROF_TRY(write_ops());
  for (const Window& window : calls) LLMPROF_TRY(write_calls(window));
  LLMPROF_TRY(write_kernels());
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

extern const Exporter kChromeJson;
const Exporter kChromeJson{
    "chrome", "Chrome trace JSON as PyTorch's profiler writes it: ui.perfetto.dev, chrome://tracing", ".json", write};

}  // namespace llmprof::exporters
