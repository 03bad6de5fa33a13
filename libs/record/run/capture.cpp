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

#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "host/proc.h"
#include "wire/clock.h"

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

std::int64_t start_ticks(std::int64_t pid) {
  const auto stat = host::read_stat(static_cast<pid_t>(pid));
  return stat ? static_cast<std::int64_t>(stat->start_ticks) : 0;
}

bool is_alive(std::int64_t pid, std::int64_t ticks) {
  if (pid <= 0 || ticks == 0) return false;
  const auto found = host::read_stat(static_cast<pid_t>(pid));
  return found && found->start_ticks == static_cast<std::uint64_t>(ticks) && found->state != 'Z' &&
         found->state != 'X';  // Z: ended, not collected by its parent yet
}

namespace {

using base::Json;

// record.json has the fields of CaptureInfo, by their names. Those of the wrong type read as absent: it may come from
// an untrusted folder.
template <class T>
Json written(const std::optional<T>& value);
template <class T>
Json written(const std::vector<T>& values);
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
    Json json = Json::object();
    base::for_each_field(value,
                         [&](std::string_view name, const auto& field) { json[std::string(name)] = written(field); });
    return json;
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

// False: it is of another type, and stays as it was.
template <class T>
bool read(const Json& json, std::optional<T>& to);
template <class T>
bool read(const Json& json, std::vector<T>& to);
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
    if (!json.is_object()) return false;
    base::for_each_field(to, [&](std::string_view name, auto& field) {
      if (const auto at = json.find(std::string(name)); at != json.end()) read(*at, field);
    });
    return true;
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

}  // namespace

ClockPair read_clocks() {
  const auto before = static_cast<std::int64_t>(wire::now_ns());
  const auto wall = static_cast<std::int64_t>(wire::read_clock_ns(CLOCK_REALTIME));
  const auto after = static_cast<std::int64_t>(wire::now_ns());
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
