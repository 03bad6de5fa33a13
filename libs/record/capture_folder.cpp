#include "record/capture_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/file.h"

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
  if (at != std::string::npos) std::from_chars(stat->data() + at + 1, stat->data() + stat->size(), result.ticks);
  return result;
}

}  // namespace

std::int64_t start_ticks(std::int64_t pid) { return state_of(pid).ticks; }

bool is_alive(std::int64_t pid, std::int64_t ticks) {
  if (pid <= 0 || ticks == 0) return false;
  const ProcessState found = state_of(pid);
  return found.ticks == ticks && found.state != 'Z' && found.state != 'X';  // Z: ended, not collected by its parent yet
}

}  // namespace llmprof::record
