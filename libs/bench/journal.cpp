#include "bench/journal.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace llmprof::bench {

namespace {

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorCode::kCorruptInput, fmt::format("{}: {}", path, what), "begin the benchmark again under another name"};
}

// Bytes up to the end of the last line that is whole.
struct Lines {
  std::vector<std::string> whole;
  std::int64_t bytes = 0;
};

Result<Lines> read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return base::errno_error(base::code_of_errno(errno), path, errno);
  Lines lines;
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // without its newline: cut off
    lines.bytes += static_cast<std::int64_t>(line.size()) + 1;
    lines.whole.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string journal_path(const std::string& run_folder) { return run_folder + "/capture/bench.jsonl"; }

Journal::Journal(Journal&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Journal> Journal::open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd < 0) return base::errno_error(base::code_of_errno(errno), path, errno);
  Journal journal(fd, path);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Error{ErrorCode::kUnsupported, path + ": another llmprof is measuring into it now", "wait until it is done"};
  }
  return journal;
}

Result<Journal> Journal::create(const std::string& run_folder, const Sweep& sweep) {
  LLMPROF_LET(Journal journal, open(journal_path(run_folder), O_CREAT | O_EXCL));
  LLMPROF_TRY(journal.write_line(sweep_to_json(sweep)));
  return journal;
}

Result<OpenedJournal> Journal::reopen(const std::string& run_folder) {
  const std::string path = journal_path(run_folder);
  LLMPROF_LET(Journal journal, open(path, 0));
  LLMPROF_LET(const Lines lines, read_lines(path));
  if (lines.whole.empty()) return damaged(path, "it does not even hold the sweep");
  const auto head = base::parse_json(lines.whole.front(), path);
  if (!head) return damaged(path, head.error().message);
  auto sweep = sweep_from_json(*head);
  if (!sweep) return damaged(path, sweep.error().message);
  OpenedJournal opened{.journal = std::move(journal), .sweep = std::move(*sweep), .finished = {}};
  for (std::size_t i = 1; i < lines.whole.size(); ++i) {
    const auto line = base::parse_json(lines.whole[i], path);
    auto finished = line ? finished_from_json(*line, opened.sweep) : Result<Finished>(line.error());
    if (finished) opened.finished.push_back(std::move(*finished));  // else it is measured again
  }
  if (::ftruncate(opened.journal.fd_, lines.bytes) != 0) return base::errno_error(ErrorCode::kIo, path, errno);
  return opened;
}

Result<void> Journal::check_free(const std::string& run_folder) {
  const std::string path = journal_path(run_folder);
  if (!base::is_file(path)) return {};
  LLMPROF_TRY(open(path, 0));
  return {};
}

Result<void> Journal::append(const Finished& finished) { return write_line(finished_to_json(finished)); }

Result<void> Journal::write_line(const base::Json& line) {
  const std::string text = base::to_line(line) + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(fd_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::errno_error(ErrorCode::kIo, path_, errno);
    done += static_cast<std::size_t>(written);
  }
  if (::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS)
    return base::errno_error(ErrorCode::kIo, path_, errno);
  return {};
}

// The lines of a journal as JSON. What is read may have been written by anybody: every value is asked for by type.

namespace {

using base::Json;
using base::maybe;

constexpr std::string_view kSchema = "llmprof.bench_journal";
constexpr int kVersion = 1;

constexpr std::array kStatuses{Status::kMeasured, Status::kSkipped, Status::kFailed};
constexpr std::array kStops{StoppedBy::kSpread, StoppedBy::kEntropy, StoppedBy::kTime, StoppedBy::kSamples,
                            StoppedBy::kUser};

Error wrong(std::string message) { return {ErrorCode::kCorruptInput, std::move(message), ""}; }

// Reads values by key; the first one that is not as it should be stays as the error.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) error_ = wrong("a line is not an object");
  }

  std::string text(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_string(); });
    return value != nullptr ? value->get<std::string>() : "";
  }
  std::int64_t integer(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_number_integer(); });
    return value != nullptr ? value->get<std::int64_t>() : 0;
  }
  double real(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_number(); });
    return value != nullptr ? value->get<double>() : 0;
  }
  bool boolean(const char* key) {
    const Json* value = find(key, [](const Json& v) { return v.is_boolean(); });
    return value != nullptr && value->get<bool>();
  }
  std::optional<double> maybe_real(const char* key) { return has(key) ? std::optional(real(key)) : std::nullopt; }
  std::optional<std::int64_t> maybe_integer(const char* key) {
    return has(key) ? std::optional(integer(key)) : std::nullopt;
  }
  const Json& array(const char* key) {
    static const Json empty = Json::array();
    const Json* value = find(key, [](const Json& v) { return v.is_array(); });
    return value != nullptr ? *value : empty;
  }
  const Json& object(const char* key) {
    static const Json empty = Json::object();
    const Json* value = find(key, [](const Json& v) { return v.is_object(); });
    return value != nullptr ? *value : empty;
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key) && !json_[key].is_null(); }
  void require(bool fine, const std::string& what) {
    if (!fine && !error_) error_ = wrong(what);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  template <class Is>
  const Json* find(const char* key, const Is& is) {
    if (has(key) && is(json_[key])) return &json_[key];
    require(false, fmt::format("{} is missing or not what it should be", key));
    return nullptr;
  }

  const Json& json_;
  std::optional<Error> error_;
};

Json axes_to_json(const Problem& problem) {
  Json axes = Json::object();
  for (const auto& [name, value] : problem.axes) axes[name] = value;
  return axes;
}

Json point_to_json(const Point& point) {
  return {{"op", point.problem.op},
          {"type", type_name(point.problem.type)},
          {"axes", axes_to_json(point.problem)},
          {"name", point.name},
          {"cache", cache_name(point.cache)},
          {"implementation", point.implementation},
          {"impossible", point.impossible},
          {"used_calls", maybe(point.used_calls)},
          {"used_ns", maybe(point.used_ns)}};
}

Result<Point> point_from_json(const Json& json) {
  Reader reader(json);
  Point point{.problem = {.op = reader.text("op"), .type = Type::kFloat32, .axes = {}},
              .name = reader.text("name"),
              .cache = Cache::kCold,
              .implementation = reader.text("implementation"),
              .impossible = reader.text("impossible"),
              .used_calls = reader.maybe_integer("used_calls"),
              .used_ns = reader.maybe_integer("used_ns")};
  const auto type = parse_type(reader.text("type"));
  const auto cache = parse_cache(reader.text("cache"));
  const Operator* op = find_operator(point.problem.op);
  reader.require(type && cache && op != nullptr, "a point has an operator, type or cache that is not known");
  if (reader.error()) return *reader.error();
  point.problem.type = *type;
  point.cache = *cache;
  Reader axes(reader.object("axes"));
  for (const AxisSpec& axis : op->axes) {
    point.problem.axes.emplace_back(axis.name, axes.integer(std::string(axis.name).c_str()));
    axes.require(point.problem.axes.back().second >= axis.least, "an axis of a point is less than its least");
  }
  if (axes.error()) return *axes.error();
  return point;
}

// The fields of a line, each once: for writing and for reading.
struct WriteFields {
  Json json = Json::object();
  template <class T>
  void operator()(const char* key, const T& value) {
    json[key] = value;
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    json[key] = maybe(value);
  }
};

struct ReadFields {
  Reader& reader;
  void operator()(const char* key, std::string& value) { value = reader.text(key); }
  void operator()(const char* key, double& value) { value = reader.real(key); }
  void operator()(const char* key, bool& value) { value = reader.boolean(key); }
  void operator()(const char* key, std::int64_t& value) { value = reader.integer(key); }
  void operator()(const char* key, std::uint64_t& value) { value = static_cast<std::uint64_t>(reader.integer(key)); }
  void operator()(const char* key, std::optional<double>& value) { value = reader.maybe_real(key); }
};

template <class Fields, class Options>
void option_fields(Fields& field, Options& options) {
  field("least_samples", options.measure.least_samples);
  field("limit_seconds", options.measure.limit_seconds);
  field("relative_spread", options.measure.relative_spread);
  field("check", options.check);
  field("graph", options.graph);
  field("threads", options.threads);
  field("seed", options.seed);
}

template <class Fields, class Measured>
void measurement_fields(Fields& field, Measured& measured) {
  field("noisy", measured.noisy);
  field("throttled", measured.throttled);
  field("clock_mhz", measured.clock_mhz);
  field("spent_seconds", measured.spent_seconds);
}

template <class Fields, class Point>
void work_fields(Fields& field, Point& result) {
  field("flops", result.work.flops);
  field("read_bytes", result.work.read_bytes);
  field("write_bytes", result.work.write_bytes);
  field("floor_seconds", result.roof.floor_seconds);
  field("bound", result.roof.bound);
  field("denominator", result.roof.denominator);
  field("tensor_bytes", result.tensor_bytes);
  field("workspace_bytes", result.workspace_bytes);
  field("buffer_sets", result.buffer_sets);
}

template <class Fields, class Point>
void result_fields(Fields& field, Point& result) {
  field("reason", result.reason);
  field("implementation", result.implementation);
  field("method", result.method);
  field("kernels", result.kernels);
  field("timer", result.timer);
  field("error", result.error);
  field("event_seconds", result.event_seconds);
  field("graph_seconds", result.graph_seconds);
}

Json options_to_json(const BenchOptions& options) {
  WriteFields write;
  option_fields(write, options);
  return write.json;
}

BenchOptions options_from_json(Reader& reader) {
  BenchOptions options;
  ReadFields read{reader};
  option_fields(read, options);
  // What is not positive, and so huge when read as unsigned, means one.
  if (static_cast<std::int64_t>(options.measure.least_samples) < 1) options.measure.least_samples = 1;
  return options;
}

Json measurement_to_json(const Measurement& measured) {
  WriteFields write;
  measurement_fields(write, measured);
  write("samples", measured.samples);
  write("stopped_by", stopped_by_name(measured.stopped_by));
  return write.json;
}

Result<Measurement> measurement_from_json(const Json& json) {
  Reader reader(json);
  ReadFields read{reader};
  Measurement measured;
  measurement_fields(read, measured);
  for (const Json& sample : reader.array("samples")) {
    if (!sample.is_number()) return wrong("a sample is not a number");
    measured.samples.push_back(sample.get<double>());
  }
  const std::string stop = reader.text("stopped_by");
  for (const StoppedBy by : kStops) {
    if (stopped_by_name(by) == stop) measured.stopped_by = by;
  }
  if (reader.error()) return *reader.error();
  if (!measured.samples.empty()) measured.time = statistics(measured.samples);
  return measured;
}

}  // namespace

Json sweep_to_json(const Sweep& sweep) {
  Json json{{"schema", kSchema},
            {"version", kVersion},
            {"llmprof_version", sweep.llmprof_version},
            {"device", sweep.device},
            {"fingerprint", sweep.fingerprint},
            {"command", sweep.command},
            {"options", options_to_json(sweep.options)}};
  json["points"] = Json::array();
  for (const Point& point : sweep.points) json["points"].push_back(point_to_json(point));
  return json;
}

Result<Sweep> sweep_from_json(const Json& json) {
  Reader reader(json);
  if (reader.text("schema") != kSchema) return wrong("it is not the journal of a benchmark");
  if (const std::int64_t version = reader.integer("version"); version != kVersion) {
    return wrong(fmt::format("its format is version {}, this llmprof reads {}", version, kVersion));
  }
  Sweep sweep{.llmprof_version = reader.text("llmprof_version"),
              .device = reader.text("device"),
              .fingerprint = reader.text("fingerprint"),
              .command = {},
              .options = {},
              .points = {}};
  for (const Json& word : reader.array("command")) {
    if (word.is_string()) sweep.command.push_back(word.get<std::string>());
  }
  Reader options(reader.object("options"));
  sweep.options = options_from_json(options);
  if (options.error()) return *options.error();
  const Json& points = reader.array("points");
  reader.require(points.size() <= kMostPoints, "it has more points than a sweep may have");
  if (reader.error()) return *reader.error();
  for (const Json& item : points) {
    LLMPROF_LET(Point point, point_from_json(item));
    sweep.points.push_back(std::move(point));
  }
  return sweep;
}

Json finished_to_json(const Finished& finished) {
  const PointResult& result = finished.result;
  WriteFields write, work;
  result_fields(write, result);
  work_fields(work, result);
  Json& json = write.json;
  json["point"] = finished.point;
  json["status"] = status_name(result.status);
  json["work"] = std::move(work.json);
  json["begin_wall_ns"] = finished.begin_wall_ns;
  json["end_wall_ns"] = finished.end_wall_ns;
  json["measured"] = result.measured.samples.empty() ? Json(nullptr) : measurement_to_json(result.measured);
  return json;
}

Result<Finished> finished_from_json(const Json& json, const Sweep& sweep) {
  Reader reader(json);
  Finished finished{.point = static_cast<std::size_t>(reader.integer("point")),
                    .result = {},
                    .begin_wall_ns = reader.integer("begin_wall_ns"),
                    .end_wall_ns = reader.integer("end_wall_ns")};
  reader.require(finished.point < sweep.points.size(), "a result belongs to no point of the sweep");
  reader.require(finished.begin_wall_ns <= finished.end_wall_ns, "a point ended before it began");
  PointResult& result = finished.result;
  const std::string status = reader.text("status");
  bool known = false;
  for (const Status each : kStatuses) {
    if (status_name(each) != status) continue;
    result.status = each;
    known = true;
  }
  reader.require(known, "a point has a status that is not known");
  ReadFields read{reader};
  result_fields(read, result);
  Reader work(reader.object("work"));
  ReadFields read_work{work};
  work_fields(read_work, result);
  reader.require(!work.error(), "the work of a point is not whole");
  reader.require(result.status != Status::kMeasured || reader.has("measured"), "a measured point has no samples");
  if (reader.error()) return *reader.error();
  result.problem = sweep.points[finished.point].problem;
  if (reader.has("measured")) {
    LLMPROF_LET(result.measured, measurement_from_json(json["measured"]));
    if (result.status == Status::kMeasured && result.measured.samples.empty())
      return wrong("a measured point has no samples");
  }
  return finished;
}

}  // namespace llmprof::bench
