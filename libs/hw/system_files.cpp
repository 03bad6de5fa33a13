#include "hw/system_files.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"

namespace llmprof::hw {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\"";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr std::int64_t kMaxCpu = 65536;
  std::vector<int> cpus;
  for (const std::string_view part : split(trim(text), ',')) {
    const auto bounds = split(part, '-');
    const auto first = to_number(bounds.front());
    const auto last = to_number(bounds.back());
    if (!first || !last || *first < 0) continue;
    for (std::int64_t cpu = *first; cpu <= std::min(*last, kMaxCpu); ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

SystemFiles::SystemFiles(std::string root) : root_(std::move(root)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

std::string SystemFiles::path(std::string_view relative) const { return root_ + "/" + std::string(relative); }

std::string SystemFiles::text(std::string_view relative) const {
  const Result<std::string> bytes = base::read_file(path(relative), 16u << 20);
  return bytes ? *bytes : "";
}

std::string SystemFiles::line(std::string_view relative) const {
  const std::string all = text(relative);
  return std::string(trim(std::string_view(all).substr(0, all.find('\n'))));
}

std::optional<std::int64_t> SystemFiles::number(std::string_view relative) const { return to_number(line(relative)); }

std::vector<std::string> SystemFiles::list(std::string_view relative) const {
  return base::list_directory(path(relative));
}

bool SystemFiles::exists(std::string_view relative) const { return ::access(path(relative).c_str(), F_OK) == 0; }

std::string SystemFiles::value(std::string_view relative, std::string_view key) const {
  const std::string all = text(relative);
  for (const std::string_view line : split(all, '\n')) {
    const std::size_t separator = line.find_first_of(":=");
    if (separator == std::string_view::npos || trim(line.substr(0, separator)) != key) continue;
    return std::string(trim(line.substr(separator + 1)));
  }
  return "";
}

}  // namespace llmprof::hw
