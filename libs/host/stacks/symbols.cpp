#include "host/stacks/symbols.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/file.h"
#include "host/proc.h"

namespace llmprof::host {
namespace {

constexpr std::size_t kMaxKernelBytes = 64u << 20;
constexpr std::uint64_t kMaxMapBytes = 64u << 20;
constexpr std::size_t kMaxMapSymbols = 1u << 19, kMaxSymbolName = 200;
constexpr std::uint64_t kLookAgainNs = 250'000'000;

// Takes the next word off the front.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

bool parse_hex(std::string_view text, std::uint64_t& value) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

}  // namespace

KernelSymbols::KernelSymbols(std::string text) : text_(std::make_unique<const std::string>(std::move(text))) {
  std::string_view rest = *text_;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    Entry entry;
    if (!parse_hex(next_word(line), entry.begin) || entry.begin == 0) continue;  // 0: hidden from us
    const std::string_view type = next_word(line);
    if (type.size() != 1 || std::string_view("tTwW").find(type.front()) == std::string_view::npos) continue;
    entry.function.name = next_word(line).substr(0, kMaxSymbolName);
    const std::string_view module = next_word(line);
    entry.function.module = module.empty() ? "[kernel]" : module;
    if (!entry.function.name.empty()) functions_.push_back(entry);
  }
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
}

KernelSymbols KernelSymbols::read() {
  auto text = base::read_file("/proc/kallsyms", kMaxKernelBytes);
  return KernelSymbols(text ? std::move(*text) : std::string());
}

const KernelSymbols::Function* KernelSymbols::containing(std::uint64_t address, std::uint64_t& begin) const {
  const auto after = std::upper_bound(functions_.begin(), functions_.end(), address,
                                      [](std::uint64_t wanted, const Entry& entry) { return wanted < entry.begin; });
  if (after == functions_.begin()) return nullptr;
  constexpr std::uint64_t kLongestFunction = 1 << 20;  // beyond it lies something without a name
  const Entry& found = *(after - 1);
  if (address - found.begin >= kLongestFunction) return nullptr;
  begin = found.begin;
  return &found.function;
}

bool parse_python_symbol(std::string_view symbol, PerfMapPython& out) {
  constexpr std::string_view kPrefix = "py::";
  if (!symbol.starts_with(kPrefix)) return false;
  symbol.remove_prefix(kPrefix.size());
  const std::size_t colon = symbol.find(':');  // names of functions hold none
  if (colon == 0 || colon == std::string_view::npos) return false;
  out = {symbol.substr(0, colon), symbol.substr(colon + 1)};
  return true;
}

PerfMap::PerfMap(pid_t pid) {
  const pid_t inner = innermost_pid(pid);
  paths_ = {fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, inner), fmt::format("/tmp/perf-{}.map", pid)};
  struct stat process {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &process) == 0) owner_ = process.st_uid;
}

const std::string* PerfMap::containing(std::uint64_t address, std::uint64_t now_ns) {
  if (looked_ns_ == 0 || now_ns - looked_ns_ > kLookAgainNs) {
    looked_ns_ = std::max<std::uint64_t>(now_ns, 1);
    look();
  }
  return find(address);
}

const std::string* PerfMap::find(std::uint64_t address) const {
  auto at = symbols_.upper_bound(address);
  if (at == symbols_.begin()) return nullptr;
  --at;
  return address < at->second.end ? &at->second.name : nullptr;
}

// Compilers append: what was read stays read. A file that is shorter than that was begun anew.
void PerfMap::look() {
  int descriptor = -1;
  for (const std::string& path : paths_) {
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (descriptor >= 0) break;
  }
  if (descriptor < 0) return;
  struct stat status {};
  const bool good = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
                    (status.st_uid == owner_ || status.st_uid == 0);
  const auto size = good ? std::min(static_cast<std::uint64_t>(status.st_size), kMaxMapBytes) : 0;
  if (good && size < read_bytes_) symbols_.clear(), read_bytes_ = 0;
  if (size > read_bytes_) {
    std::string text(size - read_bytes_, '\0');
    const ssize_t got = ::pread(descriptor, text.data(), text.size(), static_cast<off_t>(read_bytes_));
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    const std::size_t whole = text.rfind('\n') + 1;  // 0 without one
    read_bytes_ += whole;
    take(std::string_view(text).substr(0, whole));
  }
  ::close(descriptor);
}

void PerfMap::take(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(line.size() + 1);
    add(line);
  }
}

// "7f12 40 name, which may hold blanks". Code is thrown away and its place used again: the last line counts.
void PerfMap::add(std::string_view line) {
  std::uint64_t begin = 0, bytes = 0;
  if (!parse_hex(next_word(line), begin) || !parse_hex(next_word(line), bytes)) return;
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (line.empty() || bytes == 0 || begin + bytes < begin || symbols_.size() >= kMaxMapSymbols) return;
  auto at = symbols_.lower_bound(begin);
  if (at != symbols_.begin() && std::prev(at)->second.end > begin) std::prev(at)->second.end = begin;
  while (at != symbols_.end() && at->first < begin + bytes) at = symbols_.erase(at);
  symbols_[begin] = {begin + bytes, std::string(line.substr(0, kMaxSymbolName))};
}

}  // namespace llmprof::host
