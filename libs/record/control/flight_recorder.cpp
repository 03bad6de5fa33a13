#include "record/control/flight_recorder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include "base/file.h"
#include "base/numbers.h"
#include "host/proc.h"
#include "record/launch/injection.h"
#include "record/run/capture.h"
#include "trace/run.h"

namespace llmprof::record {
namespace {

// Takes the number behind the last `mark` of the text off it.
bool take_number(std::string_view& text, char mark, std::int64_t& value) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return false;
  const auto number = base::parse_number<std::int64_t>(text.substr(at + 1));
  if (!number) return false;
  value = *number;
  text = text.substr(0, at);
  return true;
}

}  // namespace

bool parse_log_name(std::string_view name, LogName& out) {
  constexpr std::string_view kSuffix = ".log";
  if (!name.ends_with(kSuffix)) return false;
  name.remove_suffix(kSuffix.size());
  out.segment = 0;
  if (name.rfind('.') != std::string_view::npos && name.rfind('.') > name.rfind('-')) {
    if (!take_number(name, '.', out.segment)) return false;
  }
  return take_number(name, '-', out.image) && take_number(name, '-', out.start_ticks) &&
         take_number(name, '-', out.pid) && !name.empty();
}

struct Ring::File {
  std::string name;
  LogName of;
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;  // wall time; for the order only
  bool last = false;            // of its process

  auto process() const { return std::pair(of.pid, of.start_ticks); }
};

Ring::Ring(std::string capture_folder, std::int64_t keep_ns, std::uint64_t max_bytes)
    : folder_(std::move(capture_folder)), keep_ns_(keep_ns), max_bytes_(max_bytes) {}

// The oldest first.
std::vector<Ring::File> Ring::files() const {
  std::vector<File> files;
  for (const std::string& name : log_names(folder_)) {
    File file{.name = name};
    struct stat info {};
    if (!parse_log_name(name, file.of) || ::stat((folder_ + "/" + name).c_str(), &info) != 0) continue;
    file.bytes = static_cast<std::uint64_t>(info.st_size);
    file.changed_ns = info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
    files.push_back(std::move(file));
  }
  const auto order = [](const File& file) { return std::tuple(file.of.image, file.of.segment); };
  for (File& file : files) {
    file.last = std::none_of(files.begin(), files.end(), [&](const File& other) {
      return other.process() == file.process() && order(other) > order(file);
    });
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.changed_ns < b.changed_ns; });
  return files;
}

void Ring::drop(const File& file) {
  if (::unlink((folder_ + "/" + file.name).c_str()) != 0) return;
  // While a later log of the process is there, its number says how many came before it.
  if (file.last) dropped_ += file.of.segment + 1;
}

void Ring::poll(std::int64_t now_ns) {
  std::uint64_t bytes = 0;
  std::vector<File> here = files();
  for (const File& file : here) bytes += file.bytes;
  for (const File& file : here) {
    const bool over = !is_alive(file.of.pid, file.of.start_ticks);
    bool old = false;
    if (over) {
      const std::int64_t since_ns = over_since_ns_.try_emplace(file.name, now_ns).first->second;
      old = now_ns - since_ns > keep_ns_;
    }
    const bool free = over || !file.last;
    if (!old && !(free && bytes > max_bytes_)) continue;
    drop(file);
    over_since_ns_.erase(file.name);
    bytes -= file.bytes;
  }
}

namespace {

namespace fs = std::filesystem;

std::string parent_of(const std::string& path) { return fs::path(path).parent_path().string(); }

// A recorded process knows its capture folder by a variable; the recorder holds the lock in it open.
std::optional<std::string> run_of_process(pid_t pid) {
  if (const std::string folder = host::variable(pid, kCaptureVariable); !folder.empty()) return parent_of(folder);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), ignored)) {
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (target.ends_with(".llmprof/capture/lock")) return parent_of(parent_of(target));
  }
  return std::nullopt;
}

Result<std::string> find_recording(const std::string& recording) {
  const std::string named = trace::run_folder(recording);
  if (base::is_file(record_json(capture_folder(named)))) return named;
  if (const auto pid = base::parse_number<pid_t>(recording); pid && *pid > 0) {
    if (const auto folder = run_of_process(*pid); folder && base::is_file(record_json(capture_folder(*folder)))) {
      return *folder;
    }
  }
  return Error{ErrorCode::kNotFound, recording + ": nothing is being recorded under this name or process",
               "give the name of the run, or the pid of `llmprof record` or of the program"};
}

Result<void> check_recording(const std::string& folder, const CaptureInfo& info) {
  if (!CaptureLock::take(capture_folder(folder))) return {};  // the recorder has it
  if (is_alive(info.root_pid, info.root_start_ticks)) return {};
  return Error{ErrorCode::kUsage, folder + " is not being recorded any more",
               fmt::format("`llmprof report {}` reads it", folder)};
}

std::string unused_name(const std::string& folder) {
  std::string stem = folder;
  if (stem.ends_with(".llmprof")) stem.resize(stem.size() - std::string_view(".llmprof").size());
  for (int i = 1;; ++i) {
    std::string name = trace::run_folder(fmt::format("{}-dump-{}", stem, i));
    std::error_code ignored;
    if (!fs::exists(name, ignored)) return name;
  }
}

// A log that its process deletes meanwhile was too old anyway.
Result<void> link_logs(const std::string& from, const std::string& to) {
  for (const std::string& name : log_names(from)) {
    const std::string source = from + "/" + name, target = to + "/" + name;
    if (::link(source.c_str(), target.c_str()) == 0 || errno == ENOENT) continue;
    std::error_code failed;
    fs::copy(source, target, fs::copy_options::copy_symlinks, failed);
    if (failed && failed != std::errc::no_such_file_or_directory) {
      return Error{ErrorCode::kIo, fmt::format("{}: {}", target, failed.message()), ""};
    }
  }
  return {};
}

Result<IngestTally> make_run(const std::string& from, const std::string& folder, CaptureInfo info,
                             const base::Progress& progress) {
  LLMPROF_LET(const CaptureLock lock, CaptureLock::take(capture_folder(folder)));
  LLMPROF_TRY(link_logs(capture_folder(from), capture_folder(folder)));
  if (!info.end) info.end = read_clocks();
  LLMPROF_TRY(write_capture_info(capture_folder(folder), info));
  return ingest(folder, {}, progress);
}

}  // namespace

Result<Dumped> dump(const DumpOptions& options, const base::Progress& progress) {
  LLMPROF_LET(const std::string recording, find_recording(options.recording));
  LLMPROF_LET(CaptureInfo info, read_capture_info(capture_folder(recording)));
  LLMPROF_TRY(check_recording(recording, info));
  std::error_code ignored;
  const std::string name = options.output.empty() ? unused_name(recording) : trace::run_folder(options.output);
  Dumped dumped;
  dumped.folder = fs::absolute(name, ignored).lexically_normal().string();
  LLMPROF_TRY(create_run_folder(dumped.folder, options.force));
  auto tally = make_run(recording, dumped.folder, std::move(info), progress);
  if (!tally) {
    remove_run_folder(dumped.folder);
    return tally.error();
  }
  dumped.tally = std::move(*tally);
  return dumped;
}

}  // namespace llmprof::record
