// llmprof diff --html: the first run of each side and what changed between the sides, as one file.

#include <fmt/format.h>

#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/version.h"
#include "diff_verb.h"
#include "pictures/page_data.h"
#include "record/open_run.h"

namespace llmprof::app {
namespace {

// One run as the page wants it. Its flame graph is kept for the difference of two.
Result<base::Json> data_of(const Arguments& arguments, const std::string& name, std::size_t most_bytes,
                           pictures::Flame& flame) {
  constexpr std::size_t kNodes = 2000;
  const base::Progress progress = progress_line();
  LLMPROF_LET(trace::Run run, record::open_run(name, progress));
  LLMPROF_LET(
      analyze::Summary summary,
      analyze::summarise(run, {.model = arguments.get("--model"), .parallel = arguments.get("--parallel")}, progress));
  const report::Page page{.run = run.folder(), .info = run.info(), .summary = std::move(summary)};
  base::Json report = json_head("llmprof.report");
  report::to_json(page, report);
  LLMPROF_LET(base::Json data, pictures::run_data(run, page, std::move(report), most_bytes));
  LLMPROF_LET(const pictures::Privacy privacy, pictures::privacy_of(run));
  pictures::redact(data, privacy);
  LLMPROF_LET(flame, pictures::flame(run, kNodes));
  return data;
}

}  // namespace

Result<void> write_diff_page(const Arguments& arguments, const std::string& before, const std::string& after,
                             const report::DiffPage& diff) {
  const std::string file = arguments.get("--html");
  if (file.empty() || base::is_directory(file)) {
    return Error{ErrorCode::kUsage, fmt::format("--html wants a file to write, not '{}'", file),
                 "for example: --html diff.html"};
  }
  base::Json data = {{"made_by", fmt::format("llmprof {}", base::version())}, {"runs", base::Json::array()}};
  const std::size_t most_bytes = before.empty() ? pictures::kPageBytes * 4 / 5 : pictures::kPageBytes * 2 / 5;
  pictures::Flame flame_after, flame_before;
  LLMPROF_LET(base::Json run, data_of(arguments, after, most_bytes, flame_after));
  data["runs"].push_back(std::move(run));
  base::Json changes;
  if (!before.empty()) {
    LLMPROF_LET(base::Json other, data_of(arguments, before, most_bytes, flame_before));
    data["runs"].push_back(std::move(other));
    changes["flame"] = pictures::to_json(pictures::flame_diff(flame_before, flame_after));
  }
  report::to_json(diff, changes);
  pictures::redact(changes, {});
  data["diffs"] = base::Json::array();
  data["diffs"].push_back(std::move(changes));
  LLMPROF_LET(const std::string page, pictures::html_page(data));
  return base::write_file(file, page, base::Readers::kAsTheUmaskSays);
}

}  // namespace llmprof::app
