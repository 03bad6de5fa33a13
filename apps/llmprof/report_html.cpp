// llmprof report --html: the page of a run, or of two, as one file.

#include <fmt/format.h>

#include "analyze/diff/diff.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/version.h"
#include "pictures/page_data.h"
#include "record/open_run.h"
#include "report/diff.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

struct Opened {
  trace::Run run;
  report::Page page;
};

Result<Opened> open(const Arguments& arguments, const std::string& name, const base::Progress& progress) {
  LLMPROF_LET(trace::Run run, record::open_run(name, progress));
  LLMPROF_LET(report::Page page, make_page(arguments, run, progress));
  return Opened{std::move(run), std::move(page)};
}

Result<base::Json> data_of(const Arguments& arguments, const Opened& opened, std::size_t most_bytes) {
  LLMPROF_LET(base::Json report, report_json(arguments, opened.run, opened.page));
  LLMPROF_LET(base::Json data, pictures::run_data(opened.run, opened.page, std::move(report), most_bytes));
  LLMPROF_LET(pictures::Privacy privacy, pictures::privacy_of(opened.run));
  privacy.keep_hosts = arguments.on("--host-names");
  pictures::redact(data, privacy);
  return data;
}

Result<analyze::Side> side_of(const Opened& opened) {
  LLMPROF_LET(analyze::Digest digest, analyze::digest_of(opened.run, opened.page.summary));
  return analyze::Side{digest.name, {digest}};
}

// Before is the other run, after the one that the page is about.
Result<base::Json> diff_of(const Opened& before, const Opened& after) {
  constexpr std::size_t kNodes = 2000;
  LLMPROF_LET(const pictures::Flame flame_before, pictures::flame(before.run, kNodes));
  LLMPROF_LET(const pictures::Flame flame_after, pictures::flame(after.run, kNodes));
  LLMPROF_LET(const analyze::Side side_before, side_of(before));
  LLMPROF_LET(const analyze::Side side_after, side_of(after));
  base::Json diff;
  report::to_json(report::DiffPage{.diff = analyze::compare(side_before, side_after), .gates = {}}, diff);
  diff["flame"] = pictures::to_json(pictures::flame_diff(flame_before, flame_after));
  return diff;
}

Result<base::Json> page_data(const Arguments& arguments, const base::Progress& progress) {
  const bool two = arguments.given("--against");
  const std::size_t most_bytes = two ? pictures::kPageBytes * 2 / 5 : pictures::kPageBytes;
  base::Json data = {{"made_by", fmt::format("llmprof {}", base::version())},
                     {"runs", base::Json::array()},
                     {"diffs", base::Json::array()}};
  LLMPROF_LET(const Opened opened, open(arguments, arguments.positionals.at(0), progress));
  LLMPROF_LET(base::Json run, data_of(arguments, opened, most_bytes));
  data["runs"].push_back(std::move(run));
  if (!two) return data;
  LLMPROF_LET(const Opened other, open(arguments, arguments.get("--against"), progress));
  LLMPROF_LET(base::Json other_run, data_of(arguments, other, most_bytes));
  data["runs"].push_back(std::move(other_run));
  LLMPROF_LET(base::Json diff, diff_of(other, opened));
  pictures::redact(diff, {});
  data["diffs"].push_back(std::move(diff));
  return data;
}

}  // namespace

Result<std::string> write_html(const Arguments& arguments) {
  const std::string file = arguments.get("--html");
  if (file.empty() || base::is_directory(file))
    return Error{ErrorCode::kUsage, fmt::format("--html wants a file to write, not '{}'", file),
                 "for example: --html report.html"};
  const base::Progress progress = progress_line();
  LLMPROF_LET(const base::Json data, page_data(arguments, progress));
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

}  // namespace llmprof::app
