#pragma once
// The page served on loopback with the full data of runs behind it. Nothing but this machine's own browser, with the
// token, gets an answer; no path of a request reaches the file system (docs/format/view-api.md).

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace llmprof::view {

struct Settings {
  std::vector<std::string> runs;     // folders, opened at start
  std::string listen = "127.0.0.1";  // another one needs `understood`
  bool understood = false;           // --i-understand
  std::uint16_t port = 0;            // 0: any free one
  std::int64_t idle_seconds = 3600;  // without a request: end; 0 never
  bool allow_sql = false;            // a user's SELECT
};

struct Ready {
  std::string url;  // with the token
  std::uint16_t port = 0;
};

// Serves until `stop` is set or nothing was asked for idle_seconds. Call it while this process has one thread.
Result<void> serve(const Settings& settings, const std::function<void(const Ready&)>& ready,
                   const std::atomic<bool>& stop);

}  // namespace llmprof::view
