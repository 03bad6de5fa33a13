// Perfetto trace, protobuf: tracks of processes, threads, devices and streams; slices, flows and counters on them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/version.h"
#include "exporters/exporter.h"
#include "exporters/perfetto_file.h"
#include "exporters/selection.h"
#include "exporters/tracks.h"
#include "trace/chunk_row.h"

namespace llmprof::exporters {
namespace perfetto {
namespace {

constexpr std::int64_t kWindowRows = 1 << 20;          // sorted at once
constexpr std::int64_t kAnnotatedKernels = 1'000'000;  // above that the details of kernels would be most of the file
constexpr std::int64_t kNull = trace::Columns::kNull;
using Row = trace::ChunkRow;

class Writer {
 public:
  Writer(const Request& request, OutputFile& out, Tracks tracks, std::int64_t origin_ns)
      : run_(request.run), request_(request), file_(out, origin_ns), slices_(file_), tracks_(std::move(tracks)) {}

  Result<void> write(const std::vector<Window>& host, const std::vector<Window>& device, Detail detail) {
    LLMPROF_TRY(write_head());
    LLMPROF_TRY(write_steps());
    total_ = static_cast<double>(host.size() + device.size());
    for (const Window& window : host) LLMPROF_TRY(write_host(window));
    for (const Window& window : device) LLMPROF_TRY(write_device(window, detail));
    slices_.finish();
    return write_counters();
  }
  std::int64_t written() const { return slices_.written() + counts_; }

 private:
  // What is read of a result: names of chunks as numbers of the file, and where a slice is assembled.
  std::int64_t name(const Row& row, std::size_t column) {
    const auto code = static_cast<std::size_t>(row[column]);
    if (code >= names_.size()) names_.resize(row.chunk.names.size());
    if (names_[code] == 0) names_[code] = file_.name(code == 0 ? "(no name)" : row.text(column));
    return names_[code];
  }
  template <class Take>
  Result<void> each(const std::string& sql, Take&& take) {
    names_.clear();
    return trace::each_row(run_, sql, [&](const Row& row) {
      take(row);
      return !file_.failed();
    });
  }
  Result<void> progress() {
    if (request_.progress({"writing slices", done_++, total_, "parts"})) return {};
    return Error{ErrorCode::kInterrupted, "interrupted", ""};
  }

  Result<void> write_head() {
    LLMPROF_LET(const std::optional<std::int64_t> wall_of_zero, wall_of_zero_ns(run_));
    LLMPROF_LET(const trace::ResultTable sync, run_.query("SELECT ts_ns FROM clock_sync ORDER BY ts_ns LIMIT 1"));
    const std::int64_t at_ns = sync.rows.empty() ? 0 : sync.rows[0][0].as_int();
    file_.clocks(at_ns, wall_of_zero ? std::optional(*wall_of_zero + at_ns) : std::nullopt);
    file_.system("llmprof " + std::string(base::version()));
    for (const HostProcess& process : tracks_.processes)
      process_uuids_.push_back(file_.process(process.pid, process.name, process.arguments));
    for (std::size_t i = 0; i < tracks_.threads.size(); ++i) thread_track(i);
    return {};
  }

  // The number of slices_ of a thread.
  std::size_t thread_track(std::size_t thread) {
    for (std::size_t i = thread_tracks_.size(); i <= thread; ++i) {
      const HostThread& row = tracks_.threads[i];
      const std::uint64_t uuid = file_.thread(tracks_.processes[row.process].pid, row.tid, row.name);
      thread_tracks_.push_back(slices_.add_track(uuid, row.title()));
    }
    return thread_tracks_[thread];
  }
  std::uint64_t device_uuid(std::size_t device) {
    for (std::size_t i = device_uuids_.size(); i <= device; ++i)
      device_uuids_.push_back(file_.process(device_pid(i), tracks_.devices[i].title, ""));
    return device_uuids_[device];
  }
  static std::int64_t device_pid(std::size_t device) { return (1 << 23) + static_cast<std::int64_t>(device); }

  // A stream; on a CPU, the thread that computed.
  std::size_t stream_track(std::int64_t device_id, std::int64_t stream, std::int64_t thread_id) {
    const std::pair key{device_id, stream != kNull ? stream : -1 - thread_id};
    if (key == last_stream_ && !stream_tracks_.empty()) return last_track_;
    auto found = stream_tracks_.find(key);
    if (found == stream_tracks_.end()) {
      const std::size_t device = tracks_.device(device_id);
      device_uuid(device);
      const std::string title =
          stream != kNull ? fmt::format("stream {}", stream) : tracks_.threads[tracks_.thread(thread_id)].title();
      const std::int64_t tid = (std::int64_t{1} << 24) + static_cast<std::int64_t>(stream_tracks_.size());
      const std::uint64_t uuid = file_.thread(device_pid(device), tid, title);
      found = stream_tracks_.emplace(key, slices_.add_track(uuid, title)).first;
    }
    last_stream_ = key;
    return last_track_ = found->second;
  }

  // Steps as slices; stages as slices over the steps of one stage that follow each other.
  Result<void> write_steps() {
    LLMPROF_LET(
        const trace::ResultTable rows,
        run_.query(fmt::format("SELECT process_id, begin_ns, end_ns, stage, number, batch, tokens, context FROM "
                               "({}) ORDER BY process_id, begin_ns, end_ns DESC",
                               selected_steps(request_.selection))));
    struct Stage {
      std::int64_t begin_ns, end_ns, name;
    };
    for (std::size_t i = 0; i < rows.rows.size();) {
      const std::int64_t process_id = rows.rows[i][0].as_int();
      const auto found = tracks_.process_of_id.find(process_id);
      const std::uint64_t parent = process_uuids_[found != tracks_.process_of_id.end() ? found->second : 0];
      std::vector<Stage> stages;
      const std::size_t stage_track = slices_.add_track(file_.track(parent, "stages"), "stages");
      const std::size_t step_track = slices_.add_track(file_.track(parent, "steps"), "steps");
      for (; i < rows.rows.size() && rows.rows[i][0].as_int() == process_id; ++i) {
        const auto& row = rows.rows[i];
        const std::int64_t begin = row[1].as_int(), end = std::max(begin, row[2].as_int());
        const std::int64_t stage = file_.name(row[3].is_null() ? "(no stage)" : row[3].text);
        if (!stages.empty() && stages.back().name == stage)
          stages.back().end_ns = std::max(stages.back().end_ns, end);
        else
          stages.push_back({begin, end, stage});
        notes_.clear();
        constexpr std::size_t kOf[] = {note("number"), note("batch"), note("tokens"), note("context")};
        for (std::size_t k = 0; k < std::size(kOf); ++k)
          if (!row[4 + k].is_null()) notes_.push_back({kOf[k], false, row[4 + k].as_int()});
        slices_.slice(step_track, begin, end, true, {.name = stage, .category = "step", .flows = {}, .notes = notes_});
      }
      for (const Stage& stage : stages)
        slices_.slice(stage_track, stage.begin_ns, stage.end_ns, true,
                      {.name = stage.name, .category = "stage", .flows = {}});
    }
    return {};
  }

  Result<void> write_host(const Window& window) {
    LLMPROF_TRY(progress());
    Pending pending;
    LLMPROF_TRY(each(fmt::format("SELECT thread_id, begin_ns, greatest(begin_ns, end_ns) AS until_ns, name, kind, flow "
                                 "FROM ({}) WHERE begin_ns >= {} "
                                 "AND begin_ns < {} ORDER BY thread_id, begin_ns, until_ns DESC, kind",
                                 host_slices(request_.selection), window.begin_ns, window.end_ns),
                     [&](const Row& row) {
                       const auto kind = static_cast<HostKind>(row[4]);
                       // The call that launched is there twice when calls were recorded too: one slice then, with the
                       // flow.
                       const bool joins = pending.is_set && kind == HostKind::kLaunch &&
                                          pending.kind >= HostKind::kApi && pending.thread_id == row[0] &&
                                          pending.begin_ns == row[1] && pending.end_ns == row[2];
                       if (!joins) {
                         flush(pending);
                         pending.thread_id = row[0];
                         pending.begin_ns = row[1];
                         pending.end_ns = row[2];
                         pending.name = name(row, 3);
                         pending.kind = kind;
                         pending.flows.clear();
                         pending.is_set = true;
                       }
                       if (row[5] != kNull) pending.flows.push_back(static_cast<std::uint64_t>(row[5]));
                     }));
    flush(pending);
    return {};
  }

  Result<void> write_device(const Window& window, Detail detail) {
    LLMPROF_TRY(progress());
    const std::string sql = fmt::format(
        "SELECT device_id, stream, thread_id, begin_ns, greatest(begin_ns, end_ns) AS until_ns, name, kind, flow, "
        "estimated{} FROM ({}) WHERE begin_ns >= {} "
        "AND begin_ns < {} ORDER BY begin_ns, until_ns DESC, kind",
        detail == Detail::kFull ? ", stage, module, op, grid, block, registers, shared_bytes, m, n, k, batch, "
                                  "confidence_percent, bytes, graph"
                                : "",
        device_slices(request_.selection, detail), window.begin_ns, window.end_ns);
    const Annotation estimated{note("source"), true, file_.name("estimated")};
    return each(sql, [&](const Row& row) {
      constexpr std::string_view kCategories[] = {"graph", "kernel", "copy"};
      const auto kind = static_cast<DeviceKind>(row[6]);
      notes_.clear();
      if (row[8] == 1) notes_.push_back(estimated);
      notes_of(row);
      PerfettoFile::Event event{.name = name(row, 5),
                                .category = kCategories[static_cast<std::size_t>(kind)],
                                .flows = {},
                                .ends_flow = row[7] != kNull ? static_cast<std::uint64_t>(row[7]) : 0,
                                .notes = notes_};
      slices_.slice(stream_track(row[0], row[1], row[2]), row[3], row[4], kind == DeviceKind::kGraph, event);
    });
  }

  Result<void> write_counters() {
    std::map<std::pair<std::uint64_t, std::int64_t>, PerfettoFile::Sequence> sequences;  // of track and metric
    const auto count = [&](std::uint64_t parent, std::int64_t metric, std::string_view unit, std::int64_t at_ns,
                           double value, std::string_view text) {
      if (!std::isfinite(value)) return;
      auto found = sequences.find({parent, metric});
      if (found == sequences.end()) {
        const std::uint64_t track = file_.counter(parent, text, unit);
        found = sequences.emplace(std::pair{parent, metric}, file_.sequence(track, at_ns)).first;
      }
      file_.count(found->second, at_ns, value);
      ++counts_;
    };
    LLMPROF_TRY(each(fmt::format("SELECT device_id, process_id, metric, unit, ts_ns, value FROM ({}) ORDER BY ts_ns",
                                 selected_rows("telemetry", request_.selection)),
                     [&](const Row& row) {
                       const auto process = tracks_.process_of_id.find(row[1]);
                       const std::uint64_t parent = process != tracks_.process_of_id.end()
                                                        ? process_uuids_[process->second]
                                                        : device_uuid(tracks_.device(row[0]));
                       count(parent, name(row, 2), row.text(3), row[4], row.real(5), row.text(2));
                     }));
    return each(fmt::format("SELECT process_id, ts_ns, CAST(rss_bytes AS DOUBLE) FROM ({}) ORDER BY process_id, ts_ns",
                            selected_rows("process_usage", request_.selection)),
                [&](const Row& row) {
                  const auto process = tracks_.process_of_id.find(row[0]);
                  if (process == tracks_.process_of_id.end()) return;
                  count(process_uuids_[process->second], file_.name("rss_bytes"), "B", row[1], row.real(2),
                        "rss_bytes");
                });
  }

  // Columns 9 and on of the detailed device slices.
  void notes_of(const Row& row) {
    constexpr std::size_t kOf[] = {note("stage"),     note("module"),       note("op"),    note("grid"), note("block"),
                                   note("registers"), note("shared_bytes"), note("m"),     note("n"),    note("k"),
                                   note("batch"),     note("confidence"),   note("bytes"), note("graph")};
    constexpr std::size_t kTexts = 5;  // the first ones
    for (std::size_t i = 0; i < std::size(kOf) && 9 + i < row.chunk.values.size(); ++i) {
      const std::int64_t value = row[9 + i];
      if (i < kTexts && !row.text(9 + i).empty()) notes_.push_back({kOf[i], true, name(row, 9 + i)});
      if (i >= kTexts && value != kNull && !(kOf[i] == note("confidence") && value == 100))
        notes_.push_back({kOf[i], false, value});
    }
  }

  // A host slice that may still take flows from rows of the same time.
  struct Pending {
    std::int64_t thread_id = 0, begin_ns = 0, end_ns = 0, name = 0;
    HostKind kind = HostKind::kRange;
    std::vector<std::uint64_t> flows;
    bool is_set = false;
  };
  void flush(Pending& pending) {
    if (!pending.is_set) return;
    pending.is_set = false;
    constexpr std::string_view kCategories[] = {"range", "range", "op", "api", "launch"};
    const PerfettoFile::Event event{
        .name = pending.name, .category = kCategories[static_cast<std::size_t>(pending.kind)], .flows = pending.flows};
    const std::size_t track = thread_track(tracks_.thread(pending.thread_id));
    if (pending.kind == HostKind::kMark)
      slices_.instant(track, pending.begin_ns, event);
    else
      slices_.slice(track, pending.begin_ns, pending.end_ns, true, event);
  }

  const trace::Run& run_;
  const Request& request_;
  PerfettoFile file_;
  PerfettoSlices slices_;
  Tracks tracks_;
  std::vector<std::uint64_t> process_uuids_, device_uuids_;
  std::vector<std::size_t> thread_tracks_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> stream_tracks_;
  std::pair<std::int64_t, std::int64_t> last_stream_;
  std::size_t last_track_ = 0;
  std::vector<std::int64_t> names_;  // code of the current result -> number of the file
  std::vector<Annotation> notes_;
  std::int64_t counts_ = 0;
  double done_ = 0, total_ = 0;
};

Result<Written> write(const Request& request) {
  const trace::Run& run = request.run;
  LLMPROF_LET(Tracks tracks, load_tracks(run));
  LLMPROF_LET(const std::int64_t kernels,
              count_rows(run, fmt::format("({})", kernels_of(request.selection, Detail::kPlain))));
  const Detail detail = kernels <= kAnnotatedKernels ? Detail::kFull : Detail::kPlain;
  LLMPROF_LET(const std::vector<Window> host, windows_of(run, host_slices(request.selection), kWindowRows));
  LLMPROF_LET(const std::vector<Window> device,
              windows_of(run, device_slices(request.selection, Detail::kPlain), kWindowRows));
  std::int64_t origin_ns = 0;
  if (!host.empty()) origin_ns = std::min(origin_ns, host.front().begin_ns);
  if (!device.empty()) origin_ns = std::min(origin_ns, device.front().begin_ns);
  LLMPROF_LET(const trace::ResultTable telemetry, run.query("SELECT min(ts_ns) FROM telemetry"));
  origin_ns = std::min(origin_ns, telemetry.rows[0][0].as_int());
  LLMPROF_LET(OutputFile out, OutputFile::create(request.output));
  Writer writer(request, out, std::move(tracks), origin_ns);
  LLMPROF_TRY(writer.write(host, device, detail));
  LLMPROF_TRY(out.finish());
  Written written{{request.output}, writer.written(), {}};
  if (detail == Detail::kPlain) {
    written.notes.push_back(
        fmt::format("more than {} kernels: without grid, module and the other details of a kernel; "
                    "--window or --stage brings them",
                    kAnnotatedKernels));
  }
  if (origin_ns < 0)
    written.notes.push_back(fmt::format("times are shifted by {} ns: the format has none below 0", -origin_ns));
  LLMPROF_TRY(note_samples(run, written.notes));
  return written;
}

// Means of recorded runs.
Result<double> estimate(const Request& request) { return estimated_bytes(request.run, request.selection, 70, 60); }

}  // namespace
}  // namespace perfetto

extern const Exporter kPerfetto;
const Exporter kPerfetto{"perfetto",
                         "Perfetto trace, protobuf: ui.perfetto.dev, trace_processor",
                         ".pftrace",
                         perfetto::write,
                         false,
                         ".perfetto-trace .pftrace.gz",
                         perfetto::estimate};

}  // namespace llmprof::exporters
