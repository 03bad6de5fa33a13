#pragma once
// The small text files of /proc and /sys, below a root that tests replace. What is missing or unreadable reads as "".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace llmprof::hw {

class SystemFiles {
 public:
  explicit SystemFiles(std::string root = "/");

  std::string path(std::string_view relative) const;  // "proc/meminfo" -> "/proc/meminfo"
  std::string text(std::string_view relative) const;  // the whole file, at most 16 MiB
  std::string line(std::string_view relative) const;  // the first line, trimmed
  std::optional<std::int64_t> number(std::string_view relative) const;
  std::vector<std::string> list(std::string_view relative) const;
  bool exists(std::string_view relative) const;  // file, directory or device
  // Value of the first "key : value" or "key=value" line of a file, trimmed; "" if there is none.
  std::string value(std::string_view relative, std::string_view key) const;

 private:
  std::string root_;  // without the final slash
};

std::string_view trim(std::string_view text);
using base::split;
std::optional<std::int64_t> to_number(std::string_view text);  // leading digits only count if all is digits
std::vector<int> parse_cpu_list(std::string_view text);        // "0-3,8" -> 0 1 2 3 8

// What the control group of this process leaves of the machine (version 1 and 2; every ancestor counts).

struct CgroupLimits {
  std::optional<double> cpus;  // quota / period
  std::optional<std::int64_t> memory_bytes;
};

CgroupLimits cgroup_limits(const SystemFiles& files);

}  // namespace llmprof::hw
