#pragma once
// Unix sockets by path, for the two ends of libs/record/control.h.

#include <sys/socket.h>

#include <string>

#include "base/result.h"

namespace llmprof::record {

// A listening socket that only its owner can connect to. A socket that nobody listens at any more is replaced; anything
// else of that name is refused.
Result<int> listen_at(const std::string& path);

Result<int> connect_to(const std::string& path);

}  // namespace llmprof::record
