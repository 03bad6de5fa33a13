#pragma once
// What each path means (docs/format/view-api.md). Paths are compared with the ones that exist, never looked up
// anywhere; runs, findings and evidence are numbers.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/asset.h"
#include "pictures/timeline.h"
#include "view/guard.h"
#include "view/http.h"

namespace llmprof::view {

// What routes need to know of runs; a test has its own.
class Content {
 public:
  virtual ~Content() = default;
  virtual std::size_t runs() const = 0;
  virtual Response list() const = 0;
  virtual Response run(std::size_t at) const = 0;
  virtual Response timeline(std::size_t at, const pictures::TimelineRequest& request) const = 0;
  virtual Response requests(std::size_t at, std::optional<pictures::Window> window, int width) const = 0;
  virtual Response diffs() const = 0;
  // Answered later: nothing. `evidence` of a finding, or a user's own statement.
  virtual std::optional<Response> rows(std::size_t at, std::size_t finding, std::size_t evidence,
                                       std::uint64_t ticket) const = 0;
  // Who a step worked for, or the steps that a request was part of.
  virtual std::optional<Response> members(std::size_t at, bool of_step, std::int64_t id,
                                          std::uint64_t ticket) const = 0;
  virtual std::optional<Response> query(std::size_t at, const std::string& sql, std::uint64_t ticket) const = 0;
};

struct Routes {
  const Site& site;
  const Content& content;
  std::span<const base::Asset> assets;  // "app.js", "app.css"
  bool allow_sql = false;
};

// The answer to a request that the guard let through; nothing if it comes later under `ticket`.
std::optional<Response> route(const Routes& routes, const Request& request, std::uint64_t ticket);

}  // namespace llmprof::view
