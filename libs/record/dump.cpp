#include "record/dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "record/capture_folder.h"
#include "record/capture_info.h"
#include "record/injection.h"
#include "trace/run.h"

namespace llmprof::record {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEnvironmentBytes = 8u << 20;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string parent_of(const std::string& path) { return fs::path(path).parent_path().string(); }

// A recorded process knows its capture folder by a variable; the recorder holds the lock in it open.
std::optional<std::string> run_of_process(const std::string& pid) {
  const auto environment = base::read_file("/proc/" + pid + "/environ", kMaxEnvironmentBytes);
  const std::string variable = std::string(1, '\0') + kCaptureVariable + "=";
  const std::string text = std::string(1, '\0') + (environment ? *environment : "");
  if (const std::size_t at = text.find(variable); at != std::string::npos) {
    const std::size_t begin = at + variable.size();
    return parent_of(text.substr(begin, text.find('\0', begin) - begin));
  }
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/" + pid + "/fd", ignored)) {
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (target.ends_with(".llmprof/capture/lock")) return parent_of(parent_of(target));
  }
  return std::nullopt;
}

Result<std::string> find_recording(const std::string& recording) {
  const std::string named = trace::run_folder(recording);
  if (base::is_file(record_json(capture_folder(named)))) return named;
  if (is_number(recording)) {
    if (const auto folder = run_of_process(recording); folder && base::is_file(record_json(capture_folder(*folder)))) {
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
