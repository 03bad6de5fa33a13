#include "record/run/capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <type_traits>

#include "base/file.h"
#include "base/json.h"
#include "base/numbers.h"

namespace llmprof::record {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordJson = "record.json";
constexpr std::string_view kFull = "full";
constexpr std::string_view kLock = "lock";
constexpr std::array<std::string_view, 4> kOwnEntries{"run.json", "tables", "derived", "capture"};

void remove_entry(const std::string& folder, std::string_view name) {
  std::error_code ignored;
  fs::remove_all(fs::path(folder) / name, ignored);
}

void remove_own_entries(const std::string& folder) {
  for (const std::string_view name : kOwnEntries) remove_entry(folder, name);
}

bool is_run(const std::string& folder) {
  return base::is_file(folder + "/run.json") || base::is_file(record_json(capture_folder(folder)));
}

Result<void> make_room(const std::string& folder, bool force) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return {};
  if (!base::is_directory(folder)) {
    return Error{ErrorCode::kUsage, folder + " exists and is not a folder", "choose another name with -o"};
  }
  if (base::list_directory(folder).empty()) return {};
  if (!is_run(folder)) {
    return Error{ErrorCode::kUsage, folder + " exists and is not a run; it is left alone",
                 "choose another name with -o"};
  }
  if (!force) {
    return Error{ErrorCode::kUsage, folder + " exists", "choose another name with -o, or replace it with -f"};
  }
  if (base::is_directory(capture_folder(folder))) {  // somebody may be recording into it right now
    LLMPROF_LET(const CaptureLock lock, CaptureLock::take(capture_folder(folder)));
  }
  remove_own_entries(folder);
  return {};
}

}  // namespace

std::string capture_folder(const std::string& run_folder) { return run_folder + "/capture"; }
std::string record_json(const std::string& capture_folder) { return fmt::format("{}/{}", capture_folder, kRecordJson); }

std::vector<std::string> log_names(const std::string& capture_folder) {
  std::vector<std::string> names = base::list_directory(capture_folder);
  std::erase_if(names, [](const std::string& name) {
    return name == kRecordJson || name == kFull || name == kLock || name == kControlFile || name == kPlanFile ||
           name.ends_with(".tmp");
  });
  return names;
}

std::uint64_t log_bytes(const std::string& capture_folder) {
  std::uint64_t bytes = 0;
  for (const std::string& name : log_names(capture_folder)) bytes += base::file_bytes(capture_folder + "/" + name);
  return bytes;
}

void mark_full(const std::string& capture_folder) {
  const std::string path = fmt::format("{}/{}", capture_folder, kFull);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
}

bool is_full(const std::string& capture_folder) { return base::is_file(fmt::format("{}/{}", capture_folder, kFull)); }

Result<void> create_run_folder(const std::string& run_folder, bool force) {
  LLMPROF_TRY(make_room(run_folder, force));
  return base::make_directories(capture_folder(run_folder));
}

void remove_run_folder(const std::string& run_folder) {
  remove_own_entries(run_folder);
  ::rmdir(run_folder.c_str());  // stays if anything else is in it
}

void remove_capture_folder(const std::string& run_folder) { remove_entry(run_folder, "capture"); }

void remove_tables(const std::string& run_folder) {
  remove_entry(run_folder, "tables");
  remove_entry(run_folder, "derived");
}

Result<CaptureLock> CaptureLock::take(const std::string& capture_folder) {
  const std::string path = fmt::format("{}/{}", capture_folder, kLock);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return base::errno_error(ErrorCode::kPermission, path, errno);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd);
    return Error{ErrorCode::kUnsupported,
                 fs::path(capture_folder).parent_path().string() + " is being recorded or read now",
                 "wait until the other llmprof is done"};
  }
  return CaptureLock(fd);
}

CaptureLock::~CaptureLock() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {

struct ProcessState {
  char state = 'X';
  std::int64_t ticks = 0;
};

ProcessState state_of(std::int64_t pid) {
  const auto stat = base::read_file(fmt::format("/proc/{}/stat", pid), 65536);
  if (!stat) return {};
  // The name in parentheses may hold anything; after its last ')' come fields 3, 4, …, so 22 is the 20th word.
  std::size_t at = stat->rfind(')');
  if (at == std::string::npos || at + 2 >= stat->size()) return {};
  ProcessState result{(*stat)[at + 2], 0};
  for (int field = 0; field < 20 && at != std::string::npos; ++field) at = stat->find(' ', at + 1);
  if (at != std::string::npos)
    result.ticks = base::leading_number<std::int64_t>(std::string_view(*stat).substr(at + 1)).value_or(0);
  return result;
}

}  // namespace

std::int64_t start_ticks(std::int64_t pid) { return state_of(pid).ticks; }

bool is_alive(std::int64_t pid, std::int64_t ticks) {
  if (pid <= 0 || ticks == 0) return false;
  const ProcessState found = state_of(pid);
  return found.ticks == ticks && found.state != 'Z' && found.state != 'X';  // Z: ended, not collected by its parent yet
}

namespace {

using base::Json;

std::int64_t now_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

struct Writer {
  Json json = Json::object();
  template <class T>
  void operator()(const char* key, const T& value);
};
// Members of the wrong type read as absent: record.json may come from an untrusted folder.
struct Reader {
  const Json& json;
  template <class T>
  void operator()(const char* key, T& value);
};
template <class Io, class T>
using Member = std::conditional_t<std::is_same_v<Io, Writer>, const T, T>;

// The members of record.json, each once: `io` writes them, or reads them.
template <class Io>
void each_member(Io& io, Member<Io, ClockPair>& pair) {
  io("raw_ns", pair.raw_ns), io("wall_ns", pair.wall_ns), io("error_ns", pair.error_ns);
}
template <class Io>
void each_member(Io& io, Member<Io, hw::Device>& device) {
  io("kind", device.kind), io("name", device.name), io("chip", device.chip), io("units", device.units);
  io("memory_bytes", device.memory_bytes), io("cache_bytes", device.cache_bytes), io("clock_mhz", device.clock_mhz);
  io("driver", device.driver), io("uuid", device.uuid);
}
template <class Io>
void each_member(Io& io, Member<Io, hw::Peak>& peak) {
  io("quantity", peak.quantity), io("type", peak.type), io("value", peak.value);
  io("unit", peak.unit), io("source", peak.source), io("method", peak.method);
}
template <class Io>
void each_member(Io& io, Member<Io, DevicePeaks>& gpu) {
  io("device", gpu.device), io("peaks", gpu.peaks);
}
template <class Io>
void each_member(Io& io, Member<Io, NotedLoss>& loss) {
  io("name", loss.loss), io("count", loss.count), io("detail", loss.detail);
}
template <class Io>
void each_member(Io& io, Member<Io, NotedText>& note) {
  io("subject", note.subject), io("text", note.text);
}
template <class Io>
void each_member(Io& io, Member<Io, CaptureInfo>& info) {
  io("llmprof_version", info.llmprof_version), io("command", info.command), io("executable", info.executable);
  io("environment", info.environment);
  io("root_pid", info.root_pid), io("root_start_ticks", info.root_start_ticks);
  io("root_begin_ns", info.root_begin_ns), io("root_end_ns", info.root_end_ns);
  io("begin", info.begin), io("end", info.end);
  io("exit_status", info.exit_status), io("injectable", info.injectable);
  io("cpu", info.cpu), io("peaks", info.peaks), io("gpus", info.gpus);
  io("losses", info.losses), io("notes", info.notes);
  io("window", info.window), io("last_ns", info.last_ns);
  io("range_event_ns", info.range_event_ns), io("gemm_event_ns", info.gemm_event_ns);
  io("counters", info.counters), io("rests", info.rests), io("models", info.models);
  io("parallel", info.parallel), io("range_rules", info.range_rules), io("recorder_cpu_ns", info.recorder_cpu_ns);
}

Json written(trace::Loss loss) { return trace::info_of(loss).name; }
Json written(const std::optional<trace::AskedCounters>& counters) { return trace::counters_to_json(counters); }
Json written(const std::optional<trace::NotedRests>& rests) { return trace::rests_to_json(rests); }
Json written(const std::vector<trace::NotedModel>& models) { return trace::models_to_json(models); }
Json written(const trace::NotedRules& rules) { return trace::rules_to_json(rules); }
template <class T>
Json written(const T& value) {
  if constexpr (requires { Json(value); }) {
    return value;
  } else {
    Writer writer;
    each_member(writer, value);
    return std::move(writer.json);
  }
}
template <class T>
Json written(const std::optional<T>& value) {
  return value ? written(*value) : Json(nullptr);
}
template <class T>
Json written(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(written(value));
  return json;
}
template <class T>
void Writer::operator()(const char* key, const T& value) {
  json[key] = written(value);
}

// False: it is of another type, and stays as it was.
bool read(const Json& json, trace::Loss& loss) {
  const std::string name = json.is_string() ? json.get<std::string>() : "";
  for (std::size_t i = 0; i < trace::kLossInfo.size(); ++i) {
    if (trace::kLossInfo[i].name == name) loss = static_cast<trace::Loss>(i);
  }
  return json.is_string();
}
bool read(const Json& json, std::optional<trace::AskedCounters>& to) {
  return to = trace::counters_from_json(json), true;
}
bool read(const Json& json, std::optional<trace::NotedRests>& to) { return to = trace::rests_from_json(json), true; }
bool read(const Json& json, std::vector<trace::NotedModel>& to) { return to = trace::models_from_json(json), true; }
bool read(const Json& json, trace::NotedRules& to) { return to = trace::rules_from_json(json), true; }
template <class T>
bool read(const Json& json, T& to) {
  if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) {
    const bool fits = std::is_same_v<T, std::string> ? json.is_string()
                      : std::is_same_v<T, bool>      ? json.is_boolean()
                      : std::is_integral_v<T>        ? json.is_number_integer()
                                                     : json.is_number();
    if (fits) to = json.get<T>();
    return fits;
  } else {
    Reader reader{json};
    if (json.is_object()) each_member(reader, to);
    return json.is_object();
  }
}
template <class T>
bool read(const Json& json, std::optional<T>& to) {
  T value{};
  if (read(json, value)) to = std::move(value);
  return true;
}
template <class T>
bool read(const Json& json, std::vector<T>& to) {
  if (!json.is_array()) return false;
  for (const Json& one : json) {
    T value{};
    if (read(one, value)) to.push_back(std::move(value));
  }
  return true;
}
template <class T>
void Reader::operator()(const char* key, T& value) {
  if (const auto at = json.find(key); at != json.end()) read(*at, value);
}

}  // namespace

ClockPair read_clocks() {
  const std::int64_t before = now_ns(CLOCK_MONOTONIC_RAW);
  const std::int64_t wall = now_ns(CLOCK_REALTIME);
  const std::int64_t after = now_ns(CLOCK_MONOTONIC_RAW);
  return {before + (after - before) / 2, wall, (after - before + 1) / 2};
}

Result<void> write_capture_info(const std::string& capture_folder, const CaptureInfo& info) {
  return base::write_file(record_json(capture_folder), base::to_text(written(info)));
}

Result<CaptureInfo> read_capture_info(const std::string& capture_folder) {
  const std::string path = record_json(capture_folder);
  LLMPROF_LET(const Json json, base::read_json(path));
  CaptureInfo info;
  if (!read(json, info)) return Error{ErrorCode::kCorruptInput, path + ": not a JSON object", ""};
  return info;
}

std::string iso_time(std::int64_t wall_ns) {
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return buffer;
}

}  // namespace llmprof::record
