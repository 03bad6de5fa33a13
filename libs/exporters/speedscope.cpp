// speedscope profiles: GPU time and CPU time by stack, and a time line of every thread and stream. The format is the
// JSON that https://www.speedscope.app/file-format-schema.json describes.
#include <fmt/format.h>

#include <map>

#include "base/version.h"
#include "exporters/exporter.h"
#include "exporters/json_text.h"
#include "exporters/lanes.h"
#include "exporters/output_file.h"
#include "exporters/selection.h"
#include "exporters/stacks.h"
#include "exporters/tracks.h"
#include "trace/chunk_row.h"

namespace llmprof::exporters {
namespace speedscope {
namespace {

constexpr std::int64_t kMostSlices = 1'000'000;  // speedscope holds a whole file in a browser's memory

// One lane of a track: a list of opening and closing events as JSON.
struct Lane {
  std::string events;
  std::vector<std::uint32_t> open;  // frames
  std::int64_t begin_ns = 0, end_ns = 0;
};
struct Track {
  std::string title;
  Lanes lanes = {};
  std::vector<Lane> written = {};
};

class TimeLines {
 public:
  TimeLines(Frames& frames, std::int64_t origin_ns) : frames_(frames), origin_ns_(origin_ns) {}

  Track& track(std::int64_t kind, std::int64_t id, const std::string& title) {
    return tracks_.try_emplace({kind, id}, Track{title}).first->second;
  }
  // Slices of one track come in order of their begin.
  void slice(Track& track, std::int64_t begin_ns, std::int64_t end_ns, bool may_hold, std::string_view name) {
    const std::size_t lane = track.lanes.place(begin_ns, end_ns, may_hold, closer(track));
    if (lane == track.written.size()) track.written.push_back({"", {}, begin_ns, begin_ns});
    Lane& into = track.written[lane];
    into.open.push_back(frames_.number(name));
    event(into, 'O', begin_ns);
  }
  void finish() {
    for (auto& [key, track] : tracks_) track.lanes.close_all(closer(track));
  }
  const std::map<std::pair<std::int64_t, std::int64_t>, Track>& tracks() const { return tracks_; }
  std::int64_t events() const { return events_; }

 private:
  std::function<void(std::size_t, std::int64_t)> closer(Track& track) {
    return [this, &track](std::size_t lane, std::int64_t at_ns) {
      Lane& into = track.written[lane];
      event(into, 'C', at_ns);
      into.open.pop_back();
      into.end_ns = std::max(into.end_ns, at_ns);
    };
  }
  void event(Lane& lane, char type, std::int64_t at_ns) {
    lane.events += lane.events.empty() ? "\n{\"type\": \"" : ",\n{\"type\": \"";
    lane.events += type;
    lane.events += "\", \"frame\": ";
    append_number(lane.events, lane.open.back());
    lane.events += ", \"at\": ";
    append_number(lane.events, at_ns - origin_ns_);
    lane.events += '}';
    ++events_;
  }

  Frames& frames_;
  std::int64_t origin_ns_;
  std::int64_t events_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, Track> tracks_;
};

// A profile of sums: every stack once, with its weight.
struct SampledProfile {
  std::string samples, weights;
  std::int64_t total = 0, count = 0;

  void add(const StackWeight& sum) {
    samples += count == 0 ? "\n[" : ",\n[";
    for (std::size_t i = 0; i < sum.frames.size(); ++i)
      samples += fmt::format("{}{}", i == 0 ? "" : ", ", sum.frames[i]);
    samples += ']';
    weights += fmt::format("{}{}", count == 0 ? "" : ", ", sum.value);
    total += sum.value;
    ++count;
  }
};

class Writer {
 public:
  Writer(const Request& request, OutputFile& out, Tracks tracks)
      : request_(request), out_(out), tracks_(std::move(tracks)) {}

  Result<Written> write() {
    out_.write("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\": ");
    out_.write(json_quoted(fmt::format("llmprof@{}", base::version())));
    out_.write(",\n\"name\": " + json_quoted(request_.run.folder()) + ",\n\"profiles\": [");
    LLMPROF_TRY(write_sums());
    LLMPROF_TRY(write_time_lines());
    if (profiles_ == 0) write_sampled("nothing was recorded", {});
    out_.write("\n],\n\"shared\": {\"frames\": [");
    write_frames();
    out_.write("\n]}}\n");
    written_.files = {request_.output};
    return written_;
  }

 private:
  void write_sampled(std::string_view name, const SampledProfile& profile) {
    out_.write(
        fmt::format("{}\n{{\"type\": \"sampled\", \"name\": {}, \"unit\": \"nanoseconds\", \"startValue\": 0, "
                    "\"endValue\": {}, \"samples\": [",
                    profiles_++ == 0 ? "" : ",", json_quoted(name), profile.total));
    out_.write(profile.samples);
    out_.write("], \"weights\": [" + profile.weights + "]}");
    written_.records += profile.count;
  }
  Result<void> write_sums() {
    SampledProfile gpu, cpu, blas;
    LLMPROF_TRY(each_stack(request_, frames_, [&](const StackWeight& sum) {
      if (sum.value <= 0) return;
      if (sum.weight == Weight::kGpuTime) gpu.add(sum);
      if (sum.weight == Weight::kCpuTime) cpu.add(sum);
      if (sum.weight == Weight::kCpuKernelTime) blas.add(sum);
    }));
    if (gpu.count > 0) write_sampled("GPU time by stack", gpu);
    if (cpu.count > 0) write_sampled("CPU time by stack (samples)", cpu);
    if (blas.count > 0) write_sampled("time of BLAS calls by stack", blas);
    return {};
  }
  Result<void> write_time_lines() {
    const trace::Run& run = request_.run;
    const std::string host = host_slices(request_.selection),
                      device = device_slices(request_.selection, Detail::kPlain);
    LLMPROF_LET(const trace::ResultTable size,
                run.query(fmt::format("SELECT count(*), min(begin_ns) FROM (SELECT begin_ns FROM ({}) UNION ALL SELECT "
                                      "begin_ns FROM ({}))",
                                      host, device)));
    if (size.rows[0][0].as_int() > kMostSlices) {
      written_.notes.push_back(
          fmt::format("more than {} slices: without time lines; --window brings them", kMostSlices));
      return {};
    }
    const std::int64_t origin_ns = size.rows[0][1].as_int();
    TimeLines lines(frames_, origin_ns);
    const auto name = [](const trace::ChunkRow& row, std::size_t column) -> std::string_view {
      return row[column] == 0 ? "(no name)" : std::string_view(row.text(column));
    };
    const auto thread_title = [&](std::int64_t thread_id) {
      const HostThread& thread = tracks_.threads[tracks_.thread(thread_id)];
      return fmt::format("{} {}", thread.name.empty() ? "thread" : thread.name, thread.tid);
    };
    LLMPROF_TRY(trace::each_row(
        run,
        fmt::format(
            "SELECT thread_id, begin_ns, greatest(begin_ns, end_ns) AS until_ns, name FROM ({}) ORDER BY thread_id, "
            "begin_ns, until_ns DESC, kind",
            host),
        [&](const trace::ChunkRow& row) {
          lines.slice(lines.track(0, row[0], thread_title(row[0])), row[1], row[2], true, name(row, 3));
        }));
    LLMPROF_TRY(trace::each_row(
        run,
        fmt::format(
            "SELECT device_id, stream, thread_id, begin_ns, greatest(begin_ns, end_ns) AS until_ns, name, kind FROM "
            "({}) ORDER BY begin_ns, until_ns DESC, kind",
            device),
        [&](const trace::ChunkRow& row) {
          const Device& on = tracks_.devices[tracks_.device(row[0])];
          Track& track = lines.track(1 + row[0], row.known(1) ? row[1] : -1 - row[2],
                                     row.known(1) ? fmt::format("{}, stream {}", on.title, row[1])
                                                  : fmt::format("{}, {}", on.title, thread_title(row[2])));
          lines.slice(track, row[3], row[4], static_cast<DeviceKind>(row[6]) == DeviceKind::kGraph, name(row, 5));
        }));
    lines.finish();
    for (const auto& [key, track] : lines.tracks())
      for (std::size_t lane = 0; lane < track.written.size(); ++lane) write_lane(track, lane, origin_ns);
    written_.records += lines.events();
    return {};
  }

  void write_lane(const Track& track, std::size_t lane, std::int64_t origin_ns) {
    const Lane& one = track.written[lane];
    const std::string title = lane == 0 ? track.title : fmt::format("{} ({})", track.title, lane + 1);
    out_.write(
        fmt::format("{}\n{{\"type\": \"evented\", \"name\": {}, \"unit\": \"nanoseconds\", \"startValue\": {}, "
                    "\"endValue\": {}, \"events\": [",
                    profiles_++ == 0 ? "" : ",", json_quoted(title), one.begin_ns - origin_ns, one.end_ns - origin_ns));
    out_.write(one.events);
    out_.write("]}");
  }

  void write_frames() {
    bool first = true;
    for (const Frame& frame : frames_.all()) {
      std::string line = first ? "\n{\"name\": " : ",\n{\"name\": ";
      line += json_quoted(frame.name);
      if (!frame.file.empty()) line += ", \"file\": " + json_quoted(frame.file);
      if (frame.line > 0) line += fmt::format(", \"line\": {}", frame.line);
      out_.write(line + "}");
      first = false;
    }
  }

  const Request& request_;
  OutputFile& out_;
  Tracks tracks_;
  Frames frames_;
  Written written_;
  int profiles_ = 0;
};

Result<Written> write(const Request& request) {
  LLMPROF_LET(Tracks tracks, load_tracks(request.run));
  LLMPROF_LET(OutputFile out, OutputFile::create(request.output));
  Writer writer(request, out, std::move(tracks));
  LLMPROF_LET(Written written, writer.write());
  LLMPROF_TRY(out.finish());
  return written;
}

}  // namespace
}  // namespace speedscope

extern const Exporter kSpeedscope;
const Exporter kSpeedscope{
    "speedscope", "speedscope profile, JSON: speedscope.app", ".speedscope.json", speedscope::write, false, ".json"};

}  // namespace llmprof::exporters
