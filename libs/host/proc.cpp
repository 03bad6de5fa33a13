#include "host/proc.h"

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "wire/clock.h"

namespace llmprof::host {

namespace {

constexpr std::size_t kMaxArgumentBytes = 4096;  // of each of perhaps very many processes
using Buffer = std::array<char, 4096>;           // holds any of the short files

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return value;
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

int open_read(const char* path) { return ::open(path, O_RDONLY | O_CLOEXEC); }

// Short files come whole in one read.
std::string_view read_once(int descriptor, Buffer& buffer) {
  const ssize_t count = ::pread(descriptor, buffer.data(), buffer.size(), 0);
  return {buffer.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

std::string_view read_short(const char* path, Buffer& buffer) {
  const int descriptor = open_read(path);
  if (descriptor < 0) return {};
  const std::string_view text = read_once(descriptor, buffer);
  ::close(descriptor);
  return text;
}

std::string read_long(const char* path, std::size_t limit) {
  std::string text;
  const int descriptor = open_read(path);
  if (descriptor < 0) return text;
  Buffer buffer;
  while (text.size() < limit) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(descriptor);
  text.resize(std::min(text.size(), limit));
  return text;
}

// A path below /proc without allocation.
struct Path {
  char text[64];
  template <class... Args>
  explicit Path(fmt::format_string<Args...> pattern, Args&&... args) {
    *fmt::format_to_n(text, sizeof text - 1, pattern, std::forward<Args>(args)...).out = '\0';
  }
};

std::string_view value_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + key.size());
}

std::vector<pid_t> numbered_entries(const char* path) {
  std::vector<pid_t> ids;
  DIR* folder = ::opendir(path);
  if (folder == nullptr) return ids;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') ids.push_back(static_cast<pid_t>(number(entry->d_name)));
  }
  ::closedir(folder);
  return ids;
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * 0x100000001b3u; }

std::uint64_t image_of(std::string_view name, std::uint64_t code, std::uint64_t stack) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  if (code == 0) return 0;                                 // its memory is gone already
  if (stack != 0) return mixed(mixed(hash, code), stack);  // their addresses are random, new at each exec
  for (const char c : name) hash = mixed(hash, static_cast<unsigned char>(c));  // not shown to us: the name must do
  return hash;
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
  static const std::uint64_t ns_per_tick = 1'000'000'000u / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  // "pid (name) state ppid …": the name may hold anything, so fields count from behind its last ')'.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close + 2 >= text.size()) return {};
  constexpr int kFirst = 3, kLast = 28;  // field numbers of proc(5)
  std::array<std::string_view, kLast - kFirst + 1> fields;
  std::size_t begin = close + 2;
  for (std::string_view& field : fields) {
    if (begin >= text.size()) return {};
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    field = text.substr(begin, end - begin);
    begin = end + 1;
  }
  const auto value = [&](int field) { return number(fields[static_cast<std::size_t>(field - kFirst)]); };
  ProcStat stat;
  stat.pid = static_cast<pid_t>(number(text));
  stat.state = fields[0].empty() ? '?' : fields[0].front();
  stat.parent = static_cast<pid_t>(value(4));
  stat.minor_faults = value(10);
  stat.children_minor_faults = value(11);
  stat.major_faults = value(12);
  stat.user_ns = value(14) * ns_per_tick;
  stat.system_ns = value(15) * ns_per_tick;
  stat.threads = static_cast<std::uint32_t>(value(20));
  stat.start_ticks = value(22);
  stat.rss_bytes = value(24) * page_bytes();
  stat.image = image_of(text.substr(open, close - open), value(26), value(28));
  return stat;
}

std::optional<std::uint64_t> parse_statm(std::string_view text) {
  const std::size_t at = text.find(' ');  // "size resident …", in pages
  if (at == std::string_view::npos) return {};
  return number(text.substr(at)) * page_bytes();
}

StatFile::StatFile(pid_t pid) : descriptor_(open_read(Path("/proc/{}/stat", pid).text)) {
  if (descriptor_ < 0) {
    error_ = errno;
  } else {
    memory_ = open_read(Path("/proc/{}/statm", pid).text);
  }
}
StatFile::StatFile(StatFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::exchange(other.memory_, -1)),
      error_(other.error_) {}
StatFile& StatFile::operator=(StatFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(memory_, other.memory_);
  std::swap(error_, other.error_);
  return *this;
}
StatFile::~StatFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (memory_ >= 0) ::close(memory_);
}

std::optional<ProcStat> StatFile::read() const {
  Buffer buffer;
  auto stat = parse_stat(read_once(descriptor_, buffer));
  if (!stat || memory_ < 0) return stat;
  if (const auto bytes = parse_statm(read_once(memory_, buffer))) stat->rss_bytes = *bytes;
  return stat;
}

std::optional<ProcStat> read_stat(pid_t pid) {
  Buffer buffer;
  return parse_stat(read_short(Path("/proc/{}/stat", pid).text, buffer));
}

std::optional<ProcStat> read_stat(pid_t pid, pid_t thread) {
  Buffer buffer;
  return parse_stat(read_short(Path("/proc/{}/task/{}/stat", pid, thread).text, buffer));
}

std::uint64_t age_ns(const ProcStat& stat) {
  static const auto ticks_per_s = static_cast<std::uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
  const std::uint64_t made = stat.start_ticks * (1'000'000'000u / ticks_per_s),
                      now = wire::read_clock_ns(CLOCK_BOOTTIME);
  return made < now ? now - made : 0;
}

ProcStatus parse_status(std::string_view text) {
  ProcStatus status;
  status.process = static_cast<pid_t>(number(value_of(text, "\nTgid:")));
  status.peak_rss_bytes = number(value_of(text, "\nVmHWM:")) * 1024;
  status.voluntary_switches = number(value_of(text, "\nvoluntary_ctxt_switches:"));
  status.involuntary_switches = number(value_of(text, "\nnonvoluntary_ctxt_switches:"));
  return status;
}

namespace {
std::optional<ProcStatus> read_status_file(const char* path) {
  Buffer buffer;
  const std::string_view text = read_short(path, buffer);
  return text.empty() ? std::nullopt : std::optional(parse_status(text));
}
}  // namespace

std::optional<ProcStatus> read_status(pid_t pid) { return read_status_file(Path("/proc/{}/status", pid).text); }
std::optional<ProcStatus> read_status(pid_t pid, pid_t thread) {
  return read_status_file(Path("/proc/{}/task/{}/status", pid, thread).text);
}

pid_t innermost_pid(pid_t pid) {
  Buffer buffer;
  std::string_view line = value_of(read_short(Path("/proc/{}/status", pid).text, buffer), "\nNSpid:");
  line = line.substr(0, line.find('\n'));
  const auto inner = static_cast<pid_t>(number(line.substr(std::min(line.find_last_of(" \t") + 1, line.size()))));
  return inner > 0 ? inner : pid;
}

std::optional<ProcIo> parse_io(std::string_view text) {
  const std::string_view read = value_of(text, "\nread_bytes:");
  const std::string_view written = value_of(text, "\nwrite_bytes:");
  if (read.empty() || written.empty()) return {};
  return ProcIo{number(read), number(written)};
}

std::optional<ProcIo> read_io(pid_t pid) {
  Buffer buffer;
  return parse_io(read_short(Path("/proc/{}/io", pid).text, buffer));
}

// "12345 678 90": on a core, waiting for one (both ns), how often.
std::optional<std::uint64_t> parse_schedstat(std::string_view text) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  return number(text.substr(blank));
}

std::optional<std::uint64_t> read_core_wait_ns(pid_t pid) {
  Buffer buffer;
  return parse_schedstat(read_short(Path("/proc/{}/schedstat", pid).text, buffer));
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are in user and nice already.
std::optional<MachineTime> parse_machine_time(std::string_view text) {
  constexpr std::string_view kFirst = "cpu ";
  if (!text.starts_with(kFirst)) return std::nullopt;
  text = text.substr(0, text.find('\n')).substr(kFirst.size());
  std::array<std::uint64_t, 8> ticks{};
  for (std::uint64_t& each : ticks) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
    each = number(text);
    text.remove_prefix(std::min(text.find(' '), text.size()));
  }
  return MachineTime{
      .busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6], .idle = ticks[3] + ticks[4], .stolen = ticks[7]};
}

std::optional<MachineTime> read_machine_time() {
  Buffer buffer;
  return parse_machine_time(read_short("/proc/stat", buffer));
}

std::vector<pid_t> processes() { return numbered_entries("/proc"); }
std::vector<pid_t> threads(pid_t pid) { return numbered_entries(Path("/proc/{}/task", pid).text); }

pid_t newest_id() {
  static const int descriptor = open_read("/proc/loadavg");  // one for the life of the program
  Buffer buffer;
  const std::string_view text = read_once(descriptor, buffer);
  const std::size_t at = text.rfind(' ');
  return at == std::string_view::npos ? 0 : static_cast<pid_t>(number(text.substr(at)));
}

std::string link_target(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return target;
}

std::string executable(pid_t pid) { return link_target(Path("/proc/{}/exe", pid).text); }

std::string arguments(pid_t pid) {
  std::string text = read_long(Path("/proc/{}/cmdline", pid).text, kMaxArgumentBytes);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

namespace {
std::string environment_of(pid_t pid) { return '\0' + read_long(Path("/proc/{}/environ", pid).text, 1 << 20) + '\0'; }
}  // namespace

std::string variable(pid_t pid, std::string_view name) {
  const std::string environment = environment_of(pid);
  const std::string wanted = '\0' + std::string(name) + '=';
  const std::size_t at = environment.find(wanted);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + wanted.size();
  return environment.substr(begin, environment.find('\0', begin) - begin);
}

std::string maps(pid_t pid, std::size_t limit) { return read_long(Path("/proc/{}/maps", pid).text, limit); }

bool has_variable(pid_t pid, std::string_view setting) {
  const std::string environment = environment_of(pid);
  return environment.find('\0' + std::string(setting) + '\0') != std::string::npos;
}

namespace {

constexpr pid_t kFewIds = 64;  // more new ids than this: listing all processes is cheaper

std::set<pid_t> ancestors() {
  std::set<pid_t> found{1};
  for (pid_t pid = ::getpid(); pid > 1 && found.insert(pid).second;) {
    const auto stat = read_stat(pid);
    pid = stat ? stat->parent : 0;
  }
  return found;
}

}  // namespace

ProcessTree::ProcessTree(pid_t root, std::string setting)
    : setting_(std::move(setting)), members_{root}, adopters_(ancestors()), found_{root} {
  if (const auto stat = read_stat(root)) root_start_ticks_ = stat->start_ticks;
}

std::vector<pid_t> ProcessTree::look() {
  const pid_t newest = newest_id();
  if (newest == newest_ && newest != 0 && unborn_.empty()) return std::exchange(found_, {});
  const bool few = newest_ != 0 && newest >= newest_ && newest - newest_ <= kFewIds;
  std::vector<Candidate> candidates = few ? newly_made(newest) : not_yet_seen();
  newest_ = newest;
  // A parent may stand behind its child when ids start over: as long as one was found, the rest gets another chance.
  for (bool again = true; again;) {
    again = std::erase_if(candidates, [&](const Candidate& candidate) {
              if (!belongs(candidate)) return false;
              members_.insert(candidate.pid);
              found_.push_back(candidate.pid);
              return true;
            }) > 0;
  }
  return std::exchange(found_, {});
}

// Ids are given out in order, to threads too, and a moment before the process can be seen: who is not there is either
// gone or not there yet, and gets a second look.
std::vector<ProcessTree::Candidate> ProcessTree::newly_made(pid_t newest) {
  std::vector<Candidate> candidates;
  const auto probe = [&](pid_t pid) {
    const auto stat = read_stat(pid);
    if (stat && !stat->ended()) candidates.push_back({pid, stat->parent});
    return stat.has_value();
  };
  for (const pid_t pid : std::exchange(unborn_, {})) probe(pid);
  for (pid_t pid = newest_ + 1; pid <= newest; ++pid) {
    if (!probe(pid)) unborn_.push_back(pid);
  }
  return candidates;
}

std::vector<ProcessTree::Candidate> ProcessTree::not_yet_seen() {
  std::vector<Candidate> candidates;
  std::set<pid_t> alive;
  unborn_.clear();
  for (const pid_t pid : processes()) {
    if (members_.contains(pid)) continue;
    alive.insert(pid);
    if (foreign_.contains(pid)) continue;
    const auto stat = read_stat(pid);
    if (stat && !stat->ended() && stat->start_ticks >= root_start_ticks_) candidates.push_back({pid, stat->parent});
  }
  foreign_ = std::move(alive);
  return candidates;
}

bool ProcessTree::belongs(const Candidate& candidate) const {
  if (candidate.pid == ::getpid() || members_.contains(candidate.pid)) return false;
  const bool orphan = !setting_.empty() && adopters_.contains(candidate.parent);
  if (!members_.contains(candidate.parent) && !(orphan && has_variable(candidate.pid, setting_))) return false;
  const auto status = read_status(candidate.pid);
  return status && status->process == candidate.pid;  // not a thread
}

}  // namespace llmprof::host
