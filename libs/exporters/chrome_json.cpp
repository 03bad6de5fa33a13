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
#include "exporters/tracks.h"
#include "trace/chunk_row.h"

namespace llmprof::exporters {
namespace chrome_json {
namespace {

constexpr std::int64_t kNull = trace::Columns::kNull;
using Row = trace::ChunkRow;
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
    // GPUs are processes with their ordinal as number, as in Kineto's traces; CPUs come after them. A process of the
    // same number moves out of the way.
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
  Result<void> write() {
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

  std::int64_t written() const { return events_.written(); }

 private:
  using TakeRow = std::function<void(const Row&)>;
  Result<void> each(std::string_view what, const std::string& sql, const TakeRow& take) {
    quoted_.clear();
    bool go_on = true;
    LLMPROF_TRY(run_.column_chunks(sql, [&](const trace::ColumnChunk& chunk) {
      for (std::size_t i = 0; i < chunk.count; ++i) take({chunk, i});
      go_on = request_.progress({what, static_cast<double>(events_.written()), 0, "events"});
      return go_on && !out_.failed();
    }));
    if (!go_on) return Error{ErrorCode::kInterrupted, "interrupted", ""};
    return {};
  }

  Result<void> write_head() {
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
  void write_names() {
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
      meta("thread_name", pid_of(thread), thread.tid, "name", json_quoted(thread.title()));
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

  Result<void> write_ranges() {
    return each("ranges",
                fmt::format("SELECT thread_id, begin_ns, end_ns, name, kind, domain, category, payload FROM ({})",
                            request_.selection.stage.empty() ? selected_rows("range", request_.selection)
                                                             : selected_ranges(request_.selection)),
                [&](const Row& row) {
                  const Place at = place(row[0]);
                  events_.slice("user_annotation", quoted(row, 3), at.pid, at.tid, row[1], row[2]);
                  arguments(row, 4, {{"kind", As::kText}, {"domain", As::kText}, {"category", As::kText}, {"payload"}});
                  events_.end();
                });
  }

  Result<void> write_ops() {
    return each(
        "operators",
        fmt::format(
            "SELECT thread_id, begin_ns, end_ns, name, correlation, sequence, shapes, types, stack_id FROM ({})",
            selected_rows("op", request_.selection)),
        [&](const Row& row) {
          const Place at = place(row[0]);
          events_.slice("cpu_op", quoted(row, 3), at.pid, at.tid, row[1], row[2]);
          arguments(row, 4,
                    {{"External id"}, {"Sequence number"}, {"Input Dims", As::kJson}, {"Input type", As::kJson}});
          stack(row[8]);
          events_.end();
        });
  }

  // Calls of the device's interface; a launch is a call too, with the name it was recorded under if it was.
  Result<void> write_calls(const Window& window) {
    const auto in_window = [&](const char* column) {
      return fmt::format("{} >= {} AND {} < {}", column, window.begin_ns, column, window.end_ns);
    };
    const auto launches = [&](const std::string& source, const char* name, const char* flow, bool may_be_in_graph) {
      return fmt::format(
          "SELECT thread_id, launch_begin_ns AS begin_ns, coalesce(launch_end_ns, launch_begin_ns) AS end_ns, {} AS "
          "name, {} AS flow FROM ({}) WHERE {}{}",
          name, flow, source, in_window("launch_begin_ns"), may_be_in_graph ? " AND graph_launch_id IS NULL" : "");
    };
    const std::string sql = fmt::format(
        "SELECT coalesce(l.thread_id, a.thread_id), coalesce(l.begin_ns, a.begin_ns), coalesce(l.end_ns, a.end_ns), "
        "coalesce(a.name, l.name), l.flow, a.correlation FROM ({} UNION ALL {} UNION ALL {}) AS l FULL JOIN (SELECT * "
        "FROM ({}) WHERE {}) AS a ON a.thread_id = l.thread_id AND a.begin_ns = l.begin_ns AND a.end_ns = l.end_ns "
        "WHERE "
        "l.flow IS NULL OR l.flow % 4 <> 3",
        launches(selected_rows("kernel", request_.selection), "'cudaLaunchKernel'", kFlowOfKernel, true),
        launches(selected_rows("copy", request_.selection),
                 "CASE WHEN direction = 'fill' THEN 'cudaMemsetAsync' ELSE 'cudaMemcpyAsync' END", kFlowOfCopy, true),
        launches(selected_graph_launches(request_.selection), "'cudaGraphLaunch'", kFlowOfGraph, false),
        selected_rows("api", request_.selection), in_window("begin_ns"));
    return each("calls", sql, [&](const Row& row) {
      const Place at = place(row[0]);
      const bool driver = row.text(3).starts_with("cu") && !row.text(3).starts_with("cuda");
      events_.slice(driver ? "cuda_driver" : "cuda_runtime", quoted(row, 3), at.pid, at.tid, row[1], row[2]);
      // Calls that launched nothing keep off the numbers of launches: those have a remainder of 1 to 3.
      events_.integer("correlation", row.known(4) ? row[4] : row.known(5) ? row[5] * 4 : kNull);
      events_.end();
      if (row.known(4)) events_.flow("s", row[4], at.pid, at.tid, row[1]);
    });
  }

  // Calls that launch graphs are written right before the first kernel of the graph, as Kineto does: readers of long
  // files keep few launches open.
  Result<void> load_graph_calls() {
    return each(
        "graph launches",
        fmt::format("SELECT l.id, l.thread_id, l.launch_begin_ns, coalesce(l.launch_end_ns, l.launch_begin_ns), "
                    "coalesce(a.name, 'cudaGraphLaunch') FROM ({}) AS l LEFT JOIN api AS a ON a.thread_id = "
                    "l.thread_id AND a.begin_ns = l.launch_begin_ns AND a.end_ns = l.launch_end_ns WHERE "
                    "l.launch_begin_ns IS NOT NULL",
                    selected_graph_launches(request_.selection)),
        [&](const Row& row) {
          graph_calls_.insert_or_assign(row[0], Call{row[1], row[2], row[3], quoted(row, 4)});
        });
  }

  void write_graph_call(std::int64_t graph_launch_id) {
    const auto found = graph_calls_.find(graph_launch_id);
    if (found == graph_calls_.end()) return;
    const Call& call = found->second;
    const Place at = place(call.thread_id);
    events_.slice("cuda_runtime", call.name, at.pid, at.tid, call.begin_ns, call.end_ns);
    events_.integer("correlation", graph_launch_id * 4 + 3);
    events_.end();
    events_.flow("s", graph_launch_id * 4 + 3, at.pid, at.tid, call.begin_ns);
    graph_calls_.erase(found);
  }

  Result<void> write_kernels(const std::string& kernels, std::string_view order) {
    const std::string sql = fmt::format(R"(
SELECT k.device_id, k.stream, k.thread_id, k.begin_ns, k.end_ns, k.name,
  CASE WHEN k.launch_begin_ns IS NULL THEN NULL WHEN k.graph_launch_id IS NOT NULL THEN k.graph_launch_id * 4 + 3
       ELSE k.id * 4 + 1 END,
  k.registers, k.shared_bytes, k.grid_x, k.grid_y, k.grid_z, k.block_x, k.block_y, k.block_z, k.graph_node_id,
  g.m, g.n, g.k, k.stage, k.module, k.op, k.stack_id, k.source = 'estimated',
  CAST(round(k.confidence * 100) AS BIGINT), k.graph_launch_id, o.correlation
FROM ({}) AS k
LEFT JOIN (SELECT id AS product, m, n, k FROM gemm) AS g ON g.product = k.gemm_id
LEFT JOIN (SELECT id AS operator, correlation FROM op) AS o ON o.operator = k.op_id {})",
                                        kernels, order);
    return each("kernels", sql, [&](const Row& row) {
      const auto triple = [&](std::string_view name, std::size_t column) {
        if (!row.known(column)) return;
        events_.json(name, fmt::format("[{}, {}, {}]", row[column], std::max<std::int64_t>(row[column + 1], 1),
                                       std::max<std::int64_t>(row[column + 2], 1)));
      };
      if (row.known(25)) write_graph_call(row[25]);
      const Place at = stream_place(row[0], row[1], row[2]);
      events_.slice("kernel", quoted(row, 5), at.pid, at.tid, row[3], row[4]);
      events_.integer("External id", row[26]);
      events_.integer("device", at.pid);
      events_.integer("stream", row[1]);
      arguments(row, 6, {{"correlation"}, {"registers per thread"}, {"shared memory"}});
      triple("grid", 9);
      triple("block", 12);
      arguments(
          row, 15,
          {{"graph node id"}, {"m"}, {"n"}, {"k"}, {"stage", As::kText}, {"module", As::kText}, {"op", As::kText}});
      stack(row[22]);
      if (row[23] == 1) {
        events_.json("estimated", "true");
        events_.integer("confidence %", row[24]);
      }
      events_.end();
      if (row.known(6)) events_.flow("f", row[6], at.pid, at.tid, row[3]);
    });
  }

  Result<void> write_copies() {
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
                                        selected_rows("copy", request_.selection));
    return each("copies", sql, [&](const Row& row) {
      const Place at = stream_place(row[0], row[1], row[2]);
      events_.slice(row[10] == 1 ? "gpu_memset" : "gpu_memcpy", quoted(row, 5), at.pid, at.tid, row[3], row[4]);
      events_.integer("External id", row[9]);
      events_.integer("device", at.pid);
      events_.integer("stream", row[1]);
      arguments(row, 6, {{"correlation"}, {"bytes"}});
      if (std::isfinite(row.real(11))) events_.real("memory bandwidth (GB/s)", row.real(11));
      events_.integer("graph node id", row[8]);
      events_.end();
      if (row.known(6)) events_.flow("f", row[6], at.pid, at.tid, row[3]);
    });
  }

  // Launches of which no node is known: their time would be missing else.
  Result<void> write_graphs() {
    return each(
        "graph launches",
        fmt::format("SELECT device_id, stream, thread_id, begin_ns, end_ns, id, graph, launch_begin_ns IS NOT NULL "
                    "FROM ({}) AS l WHERE NOT coalesce(nodes_recorded, false) AND graph NOT IN (SELECT n.graph FROM "
                    "graph_node AS n JOIN node_share AS s ON s.graph_node_id = n.id)",
                    selected_graph_launches(request_.selection)),
        [&](const Row& row) {
          const Place at = stream_place(row[0], row[1], row[2]);
          events_.slice("graph_launch", "\"nodes of an unknown graph\"", at.pid, at.tid, row[3], row[4]);
          events_.integer("device", at.pid);
          events_.integer("stream", row[1]);
          if (row[7] == 1) events_.integer("correlation", row[5] * 4 + 3);
          events_.integer("graph id", row[6]);
          events_.end();
          if (row[7] == 1) events_.flow("f", row[5] * 4 + 3, at.pid, at.tid, row[3]);
        });
  }

  Result<void> write_counters() {
    return each("counters",
                fmt::format("SELECT device_id, ts_ns, metric || coalesce(' (' || nullif(unit, '') || ')', ''), value, "
                            "process_id FROM ({}) ORDER BY ts_ns",
                            selected_rows("telemetry", request_.selection)),
                [&](const Row& row) {
                  if (!std::isfinite(row.real(3))) return;
                  const auto process = tracks_.process_of_id.find(row[4]);
                  const std::int64_t pid =
                      process != tracks_.process_of_id.end() ? process_pids_[process->second] : device_number(row[0]);
                  std::string reading;
                  append_real(reading, row.real(3));
                  events_.point("C", "telemetry", quoted(row, 2), pid, 0, row[1], "value", reading);
                });
  }

  // A text of the current result, with its quotes.
  const std::string& quoted(const Row& row, std::size_t column) {
    const auto at = static_cast<std::size_t>(row[column]);
    if (at >= quoted_.size()) quoted_.resize(row.chunk.names.size());
    if (quoted_[at].empty()) quoted_[at] = json_quoted(at == 0 ? "(no name)" : row.text(column));
    return quoted_[at];
  }
  // Columns from `first` on as arguments; what is not known is left out.
  enum class As : std::uint8_t { kNumber, kText, kJson };
  struct Argument {
    std::string_view name;
    As as = As::kNumber;
  };
  void arguments(const Row& row, std::size_t first, std::initializer_list<Argument> all) {
    for (const Argument& argument : all) {
      const std::size_t column = first++;
      if (argument.as == As::kNumber) {
        events_.integer(argument.name, row[column]);
      } else if (row[column] != 0) {
        // What a framework wrote as JSON stays JSON, anything else is text.
        const bool json = argument.as == As::kJson && is_json(row.text(column));
        events_.json(argument.name, json ? row.text(column) : quoted(row, column));
      }
    }
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

Result<Written> write(const Request& request) {
  LLMPROF_LET(Tracks tracks, load_tracks(request.run));
  LLMPROF_LET(Stacks stacks, load_stacks(request.run));
  LLMPROF_LET(OutputFile out, OutputFile::create(request.output));
  Writer writer(request, out, std::move(tracks), std::move(stacks));
  LLMPROF_TRY(writer.write());
  LLMPROF_TRY(out.finish());
  Written written{{request.output}, writer.written(), {}};
  LLMPROF_TRY(note_samples(request.run, written.notes));
  return written;
}

// Means of recorded runs: a kernel with its launch and the arrow between them, a range or call.
Result<double> estimate(const Request& request) { return estimated_bytes(request.run, request.selection, 620, 240); }

}  // namespace
}  // namespace chrome_json

extern const Exporter kChromeJson;
const Exporter kChromeJson{"chrome",
                           "Chrome trace JSON as PyTorch's profiler writes it: ui.perfetto.dev, chrome://tracing",
                           ".json.gz",
                           chrome_json::write,
                           false,
                           ".json",
                           chrome_json::estimate};

}  // namespace llmprof::exporters
