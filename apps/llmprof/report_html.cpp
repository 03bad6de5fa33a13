// --html of `llmprof report` and `llmprof diff`: the page of a run, or of two and what changed, as one file.

#include <fmt/format.h>

#include "analyze/diff/diff.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/version.h"
#include "given_names.h"
#include "pictures/page_data.h"
#include "record/open_run.h"
#include "report/diff.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

constexpr std::size_t kFlameNodes = 2000;

// The run that a page of `report` is about, as its options want it.
Result<OpenedRun> open_report(const Arguments& arguments, const std::string& name, const base::Progress& progress) {
  LLMPROF_LET(trace::Run run, record::open_run(name, progress));
  LLMPROF_LET(report::Page page, make_page(arguments, run, progress));
  return OpenedRun{std::move(run), std::move(page)};
}

Result<base::Json> data_of(const Arguments& arguments, const OpenedRun& opened, std::size_t most_bytes) {
  LLMPROF_LET(base::Json report, report_json(arguments, opened.run, opened.page));
  LLMPROF_LET(base::Json data, pictures::run_data(opened.run, opened.page, std::move(report), most_bytes));
  LLMPROF_LET(pictures::Privacy privacy, pictures::privacy_of(opened.run));
  privacy.keep_hosts = arguments.on("--host-names");  // no option of `diff`
  pictures::redact(data, privacy);
  return data;
}

Result<analyze::Side> side_of(const OpenedRun& opened) {
  LLMPROF_LET(analyze::Digest digest, analyze::digest_of(opened.run, opened.page.summary));
  return analyze::Side{digest.name, {digest}};
}

// The page of one run, or of two with what changed from `before` to `after`.
Result<base::Json> page_data(const Arguments& arguments, const OpenedRun& after, const OpenedRun* before,
                             const report::DiffPage* diff) {
  const std::size_t most_bytes = pictures::kPageBytes * (before != nullptr ? 2 : diff != nullptr ? 4 : 5) / 5;
  base::Json data = {{"made_by", fmt::format("llmprof {}", base::version())},
                     {"runs", base::Json::array()},
                     {"diffs", base::Json::array()}};
  base::Json changes;
  LLMPROF_LET(base::Json run, data_of(arguments, after, most_bytes));
  data["runs"].push_back(std::move(run));
  if (before != nullptr) {
    LLMPROF_LET(base::Json other, data_of(arguments, *before, most_bytes));
    data["runs"].push_back(std::move(other));
    LLMPROF_LET(const pictures::Flame flame_before, pictures::flame(before->run, kFlameNodes));
    LLMPROF_LET(const pictures::Flame flame_after, pictures::flame(after.run, kFlameNodes));
    changes["flame"] = pictures::to_json(pictures::flame_diff(flame_before, flame_after));
  }
  if (diff == nullptr) return data;
  report::to_json(*diff, changes);
  pictures::redact(changes, {});
  data["diffs"].push_back(std::move(changes));
  return data;
}

Result<base::Json> report_data(const Arguments& arguments, const base::Progress& progress) {
  LLMPROF_LET(const RunArgument given, run_argument(arguments));
  LLMPROF_LET(const OpenedRun opened, open_report(arguments, given.run, progress));
  if (!arguments.given("--against")) return page_data(arguments, opened, nullptr, nullptr);
  LLMPROF_LET(const OpenedRun other, open_report(arguments, arguments.get("--against"), progress));
  LLMPROF_LET(const analyze::Side before, side_of(other));
  LLMPROF_LET(const analyze::Side after, side_of(opened));
  const report::DiffPage diff{.diff = analyze::compare(before, after), .gates = {}};
  return page_data(arguments, opened, &other, &diff);
}

Result<std::string> file_in(const Arguments& arguments) {
  std::string file = arguments.get("--html");
  if (file.empty() || base::is_directory(file)) {
    return Error{ErrorCode::kUsage, fmt::format("--html wants a file to write, not '{}'", file),
                 "for example: --html page.html"};
  }
  LLMPROF_TRY(check_ending("--html", file, {".html", ".htm", ".json"}));
  return file;
}

}  // namespace

Result<std::string> write_html(const Arguments& arguments) {
  LLMPROF_LET(const std::string file, file_in(arguments));
  LLMPROF_LET(const base::Json data, report_data(arguments, progress_line()));
  std::string bytes;
  if (file.ends_with(".json")) {
    bytes = base::to_line(data) + "\n";
  } else {
    LLMPROF_LET(bytes, pictures::html_page(data));
  }
  LLMPROF_TRY(base::write_file(file, bytes, base::Readers::kAsTheUmaskSays));
  std::string text =
      fmt::format("{}: {}, needs no network\n", file, base::human_bytes(static_cast<double>(bytes.size())));
  for (const base::Json& run : data["runs"])
    if (run["thinned"].is_string())
      text += fmt::format("{}: {}\n", run["name"].get<std::string>(), run["thinned"].get<std::string>());
  return text;
}

Result<void> write_diff_page(const Arguments& arguments, const std::string& before, const std::string& after,
                             const report::DiffPage& diff) {
  LLMPROF_LET(const std::string file, file_in(arguments));
  const base::Progress progress = progress_line();
  LLMPROF_LET(const OpenedRun opened, open_page(arguments, after, progress));
  std::optional<OpenedRun> other;
  if (!before.empty()) {
    LLMPROF_LET(other, open_page(arguments, before, progress));
  }
  LLMPROF_LET(const base::Json data, page_data(arguments, opened, other ? &*other : nullptr, &diff));
  LLMPROF_LET(const std::string page, pictures::html_page(data));
  return base::write_file(file, page, base::Readers::kAsTheUmaskSays);
}

}  // namespace llmprof::app
