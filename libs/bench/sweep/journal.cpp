#include "bench/sweep/journal.h"

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

// The lines of a journal as JSON. What is read may have been written by anybody: every value is asked for by type.

using base::Json;
using base::maybe;

constexpr std::string_view kSchema = "llmprof.bench_journal";
constexpr int kVersion = 1;

Error wrong(std::string message) { return {ErrorCode::kCorruptInput, std::move(message), ""}; }

template <class T>
bool holds(const Json& value) {
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  return std::is_floating_point_v<T> ? value.is_number() : value.is_number_integer();
}

// Reads values by key; the first one that is not as it should be stays as the error.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) error_ = wrong("a line is not an object");
  }

  template <class T>
  void operator()(const char* key, T& value) {
    const bool fine = has(key) && holds<T>(json_[key]);
    require(fine, fmt::format("{} is missing or not what it should be", key));
    value = fine ? json_[key].template get<T>() : T{};
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& value) {
    value = has(key) ? std::optional(get<T>(key)) : std::nullopt;
  }
  template <class T>
  T get(const char* key) {
    T value{};
    (*this)(key, value);
    return value;
  }
  // An array or an object.
  const Json& part(const char* key, bool array) {
    static const Json kEmpty[] = {Json::object(), Json::array()};
    const bool fine = has(key) && (array ? json_[key].is_array() : json_[key].is_object());
    require(fine, fmt::format("{} is missing or not what it should be", key));
    return fine ? json_[key] : kEmpty[array ? 1 : 0];
  }

  bool has(const char* key) const { return json_.is_object() && json_.contains(key) && !json_[key].is_null(); }
  void require(bool fine, const std::string& what) {
    if (!fine && !error_) error_ = wrong(what);
  }
  const std::optional<Error>& error() const { return error_; }

 private:
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
  Point point{.problem = {.op = reader.get<std::string>("op"), .type = Type::kFloat32, .axes = {}},
              .name = reader.get<std::string>("name"),
              .cache = Cache::kCold,
              .implementation = reader.get<std::string>("implementation"),
              .impossible = reader.get<std::string>("impossible"),
              .used_calls = {},
              .used_ns = {}};
  reader("used_calls", point.used_calls);
  reader("used_ns", point.used_ns);
  const auto type = parse_type(reader.get<std::string>("type"));
  const auto cache = parse_cache(reader.get<std::string>("cache"));
  const Operator* op = find_operator(point.problem.op);
  reader.require(type && cache && op != nullptr, "a point has an operator, type or cache that is not known");
  if (reader.error()) return *reader.error();
  point.problem.type = *type;
  point.cache = *cache;
  Reader axes(reader.part("axes", false));
  for (const AxisSpec& axis : op->axes) {
    point.problem.axes.emplace_back(axis.name, axes.get<std::int64_t>(std::string(axis.name).c_str()));
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

template <class Fields, class Options>
void option_fields(Fields& field, Options& options) {
  field("least_samples", options.measure.least_samples);
  field("limit_seconds", options.measure.limit_seconds);
  field("relative_spread", options.measure.relative_spread);
  field("warm_up_seconds", options.measure.warm_up_seconds);
  field("least_seconds", options.measure.least_seconds);
  field("check", options.check);
  field("small_checks", options.small_checks);
  field("graph", options.graph);
  field("graph_seconds", options.graph_seconds);
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
  option_fields(reader, options);
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
  Measurement measured;
  measurement_fields(reader, measured);
  for (const Json& sample : reader.part("samples", true)) {
    if (!sample.is_number()) return wrong("a sample is not a number");
    measured.samples.push_back(sample.get<double>());
  }
  const auto stop = std::ranges::find(kStoppedByNames, reader.get<std::string>("stopped_by"));
  if (stop != std::end(kStoppedByNames)) measured.stopped_by = static_cast<StoppedBy>(stop - kStoppedByNames);
  if (reader.error()) return *reader.error();
  if (!measured.samples.empty()) measured.time = statistics(measured.samples);
  return measured;
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
  if (reader.get<std::string>("schema") != kSchema) return wrong("it is not the journal of a benchmark");
  if (const std::int64_t version = reader.get<std::int64_t>("version"); version != kVersion) {
    return wrong(fmt::format("its format is version {}, this llmprof reads {}", version, kVersion));
  }
  Sweep sweep{.llmprof_version = reader.get<std::string>("llmprof_version"),
              .device = reader.get<std::string>("device"),
              .fingerprint = reader.get<std::string>("fingerprint"),
              .command = {},
              .options = {},
              .points = {}};
  for (const Json& word : reader.part("command", true)) {
    if (word.is_string()) sweep.command.push_back(word.get<std::string>());
  }
  Reader options(reader.part("options", false));
  sweep.options = options_from_json(options);
  if (options.error()) return *options.error();
  const Json& points = reader.part("points", true);
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
  Finished finished{.point = static_cast<std::size_t>(reader.get<std::int64_t>("point")),
                    .result = {},
                    .begin_wall_ns = reader.get<std::int64_t>("begin_wall_ns"),
                    .end_wall_ns = reader.get<std::int64_t>("end_wall_ns")};
  reader.require(finished.point < sweep.points.size(), "a result belongs to no point of the sweep");
  reader.require(finished.begin_wall_ns <= finished.end_wall_ns, "a point ended before it began");
  PointResult& result = finished.result;
  const auto status = std::ranges::find(kStatusNames, reader.get<std::string>("status"));
  reader.require(status != std::end(kStatusNames), "a point has a status that is not known");
  if (status != std::end(kStatusNames)) result.status = static_cast<Status>(status - kStatusNames);
  result_fields(reader, result);
  Reader work(reader.part("work", false));
  work_fields(work, result);
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
