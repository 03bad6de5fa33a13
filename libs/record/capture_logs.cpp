#include "record/capture_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "host/host_log.h"
#include "record/capture_folder.h"
#include "record/log_reader.h"

namespace llmprof::record {
namespace {

// A collector that cannot make a log leaves a symbolic link instead, which takes no descriptor and no space; where it
// points to is the reason: an errno and what failed, "24 log".
constexpr std::string_view kOffSuffix = ".off";
std::string why_off(const std::string& path) {
  std::error_code ignored;
  const std::string text = std::filesystem::read_symlink(path, ignored).string();
  int error = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), error);
  if (failure != std::errc{}) return text;
  return fmt::format("{}:{}", std::strerror(error), std::string_view(end, text.data() + text.size()));
}

}  // namespace

void CaptureLogs::look(Ledger& ledger, bool complete) {
  std::vector<Log> found;
  for (const std::string& name : log_names(folder_)) {
    if (name == host::kHostLogName || known_.contains(name)) continue;
    if (name.ends_with(kOffSuffix)) {
      if (complete) ledger.add(trace::Loss::kCollectorOff, 1, {}, why_off(folder_ + "/" + name));
      continue;
    }
    const auto reader = LogReader::open(folder_ + "/" + name);
    if (reader) {
      known_.insert(name);
      found.push_back({name, reader->header()});
    } else if (complete && reader.error().code != ErrorCode::kNotFound) {  // a process may have deleted its oldest
      ledger.add(trace::Loss::kLogUnreadable, 1, {}, reader.error().message);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Log& a, const Log& b) { return a.header.raw_ns < b.header.raw_ns; });
  for (Log& log : found) add(std::move(log));
}

void CaptureLogs::add(Log log) {
  const Process process{log.header.pid, log.header.start_ticks};
  const auto latest = latest_.find(process);
  if (latest != latest_.end()) {
    Chain& chain = chains_[latest->second];
    if (log.header.segment > chain.logs.back().header.segment) {
      chain.logs.push_back(std::move(log));
      return;
    }
    chain.last_image = false;
  }
  latest_[process] = chains_.size();
  chains_.push_back({{std::move(log)}, true});
}

}  // namespace llmprof::record
