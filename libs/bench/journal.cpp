#include "bench/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

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

}  // namespace llmprof::bench
