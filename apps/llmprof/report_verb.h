#pragma once
// What verbs share that show pages of runs.

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "base/result.h"
#include "report/diff.h"
#include "report/page.h"
#include "trace/run.h"
#include "verb.h"

namespace llmprof::app {

// A page as text, or with --json as JSON.
template <class Page>
std::string laid_out(const Page& page, const Arguments& arguments, std::string_view schema) {
  if (!arguments.on("--json")) return to_text(page, colour_wanted());
  base::Json json = json_head(schema);
  to_json(page, json);
  return base::to_text(json);
}

// An option that is a number between bounds; `what` it wants, in words.
template <class T>
Result<T> number_in(const Arguments& arguments, std::string_view flag, std::string_view what, T least = 0,
                    T most = std::numeric_limits<T>::max()) {
  const std::string text = arguments.get(flag);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return value;
  return Error{ErrorCode::kUsage, fmt::format("{} wants {}, not '{}'", flag, what, text), ""};
}

// --top N of tables.
inline Result<std::size_t> top_in(const Arguments& arguments) {
  return number_in<std::size_t>(arguments, "--top", "a number of rows", 1);
}

struct OpenedRun {
  trace::Run run;
  report::Page page;
};
// A run and its summary, by --model and --parallel; only these sections, if there are any.
Result<OpenedRun> open_page(const Arguments& arguments, const std::string& name, const base::Progress& progress,
                            const std::vector<analyze::Section>& sections = {});
// --stage is one of the run's.
Result<void> check_stage(const report::Page& page);

// The summary of an opened run, as the options want it.
Result<report::Page> make_page(const Arguments& arguments, trace::Run& run, const base::Progress& progress);

// The screen of a run, as `report RUN` prints it.
Result<std::string> screen_of(const std::string& run_name, bool colour);

// The report as JSON: what `report --json` prints.
Result<base::Json> report_json(const Arguments& arguments, const trace::Run& run, const report::Page& page);

// --html FILE of `report`: writes the page and says so.
Result<std::string> write_html(const Arguments& arguments);
// --html FILE of `diff`: the first run of each side and the comparison. `before` is "" where only a baseline is known.
Result<void> write_diff_page(const Arguments& arguments, const std::string& before, const std::string& after,
                             const report::DiffPage& diff);

}  // namespace llmprof::app
