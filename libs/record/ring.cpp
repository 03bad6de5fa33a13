#include "record/ring.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "base/file.h"
#include "record/capture_folder.h"

namespace llmprof::record {
namespace {

// Takes the number behind the last `mark` of the text off it.
bool take_number(std::string_view& text, char mark, std::int64_t& value) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return false;
  const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
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

}  // namespace llmprof::record
