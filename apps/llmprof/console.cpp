// What verbs share when they talk to people: errors, progress, colour, the head of JSON outputs.

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/human.h"
#include "base/json.h"
#include "base/text_table.h"
#include "base/version.h"
#include "verb.h"

namespace llmprof::app {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> interrupted{false};

void on_interrupt(int) {
  interrupted = true;
  ::signal(SIGINT, SIG_DFL);  // a second Ctrl-C ends at once
}

std::string amount(double value, std::string_view unit) {
  return unit == "bytes" ? base::human_bytes(value) : base::human_count(value) + " " + std::string(unit);
}

// ": 3 of 24 points, 2.36 s left"; ": 1.20 GB of 4.00 GB (30.0 %), 12.4 s left".
std::string tail_of(const base::ProgressUpdate& update, double seconds) {
  if (update.total <= 0 || update.done <= 0) return ": " + amount(update.done, update.unit);
  const bool bytes = update.unit == "bytes";
  const double left = update.left_seconds.value_or(seconds * (update.total - update.done) / update.done);
  return fmt::format(": {} of {}{}, {} left", bytes ? base::human_bytes(update.done) : base::human_count(update.done),
                     amount(update.total, update.unit),
                     update.left_seconds ? "" : fmt::format(" ({})", base::human_percent(update.done / update.total)),
                     base::human_ns(left * 1e9));
}

class ProgressLine {
 public:
  ~ProgressLine() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

  bool update(const base::ProgressUpdate& update) {
    const auto now = Clock::now();
    if (terminal_ && now - begin_ > std::chrono::seconds(1) && now - last_ > std::chrono::milliseconds(100)) {
      last_ = now;
      shown_ = true;
      const double seconds = std::chrono::duration<double>(now - begin_).count();
      const std::string tail = tail_of(update, seconds);
      constexpr std::size_t kWidth = 79;
      const std::size_t room = kWidth - std::min(kWidth - 10, base::display_width(tail));
      std::fprintf(stderr, "\r\033[K%s", (base::shorten(update.what, room) + tail).c_str());
    }
    return !interrupted;
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return 1;
    case ErrorCode::kInterrupted:
      return 130;
    case ErrorCode::kInternal:
      return 70;
    default:
      return 2;
  }
}

}  // namespace

int fail(const Error& error) {
  std::fprintf(stderr, "llmprof: %s\n", base::printable(error.message).c_str());
  if (!error.hint.empty()) std::fprintf(stderr, "hint: %s\n", base::printable(error.hint).c_str());
  return exit_status(error.code);
}

base::Progress progress_line() {
  struct sigaction old {};
  if (::sigaction(SIGINT, nullptr, &old) == 0 && old.sa_handler == SIG_DFL) ::signal(SIGINT, on_interrupt);
  auto line = std::make_shared<ProgressLine>();
  return [line](const base::ProgressUpdate& update) { return line->update(update); };
}

base::Json json_head(std::string_view schema) {
  base::Json head;
  head["schema"] = schema;
  head["schema_version"] = 1;
  head["llmprof_version"] = base::version();
  return head;
}

std::size_t output_width(std::size_t otherwise) { return ::isatty(STDOUT_FILENO) == 1 ? terminal_width() : otherwise; }

void print_paged(const std::string& text) {
  const char* pager = std::getenv("PAGER");
  if (pager == nullptr) pager = "less";
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  if (::isatty(STDOUT_FILENO) != 1 || dumb || *pager == '\0') return print(text);
  ::setenv("LESS", "FRX", 0);  // short texts are just printed, colours shown, the screen left as it was
  ::signal(SIGINT, SIG_IGN);   // Ctrl-C is the pager's, and so is a pager that ends before it read everything
  ::signal(SIGPIPE, SIG_IGN);
  std::FILE* pipe = ::popen(fmt::format("{{ {} ; }} 2>/dev/null", pager).c_str(), "w");
  if (pipe != nullptr) std::fwrite(text.data(), 1, text.size(), pipe);
  constexpr int kNoSuchCommand = 127;
  const int status = pipe == nullptr ? -1 : ::pclose(pipe);
  if (status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchCommand)) print(text);
}

bool colour_wanted(int file) {
  const char* term = std::getenv("TERM");
  const char* no_colour = std::getenv("NO_COLOR");
  return ::isatty(file) == 1 && (no_colour == nullptr || *no_colour == '\0') && term != nullptr &&
         std::string_view(term) != "dumb";
}

std::size_t terminal_width() {
  constexpr std::size_t kWithoutTerminal = 100;
  const char* columns = std::getenv("COLUMNS");
  if (const long said = columns == nullptr ? 0 : std::strtol(columns, nullptr, 10); said > 0)
    return static_cast<std::size_t>(said);
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (::isatty(file) == 1 && ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return kWithoutTerminal;
}

bool unicode_wanted() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    std::string name(value);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
  }
  return true;  // nobody says: the terminals of today, and the rest of a report has a few such characters anyway
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace llmprof::app
