#pragma once
// The program to record: found as a shell finds it, and looked at before it is launched. A program that cannot be
// injected still runs; the reason becomes the loss `not_injected`.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace llmprof::record {

struct Target {
  std::string path;                           // what execve gets
  std::optional<std::string> not_injectable;  // why the dynamic linker will not load our libraries into it
};

// Searches `search_path` (the value of PATH) unless the command has a slash. kNotFound becomes exit status 127,
// kPermission 126.
Result<Target> find_target(const std::string& command, std::string_view search_path);

// Why a program file cannot be injected, or nothing. Scripts are followed to their interpreter.
std::optional<std::string> why_not_injectable(const std::string& path, std::string_view search_path);

}  // namespace llmprof::record
