// llmprof diff: compare runs: what got slower or faster, by how much, and why; gates for continuous integration.

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "analyze/diff/diff.h"
#include "base/file.h"
#include "base/json.h"
#include "given_names.h"
#include "record/open_run.h"
#include "report/diff.h"
#include "report_verb.h"

namespace llmprof::app {
namespace diff_verb {
namespace {

constexpr int kGateFailed = 4;

constexpr Option kOptions[] = {
    {"--before", "", "", "RUN...", "", "the runs before, where there are several repeats", true},
    {"--after", "", "", "RUN...", "", "the runs after", true},
    {"--gate", "", "", "EXPR...", "",
     "a limit: 'decode.tpot_p50 < +3%' against before, 'decode.mbu > 0.70' of after; exit status 4 if one is not kept",
     true},
    {"--least", "", "LLMPROF_DIFF_LEAST", "PERCENT", "1%", "changes below this do not count as significant"},
    {"--baseline", "", "", "NAME", "", "compare with runs that were saved under this name"},
    {"--save-baseline", "", "", "NAME", "", "save the runs under a name instead of comparing"},
    {"--list-baselines", "", "", "", "", "list what was saved"},
    {"--model", "", "", "NAME|PATH", "", "the model of all runs; overrides what they know"},
    {"--parallel", "", "", "GROUPS", "", "how ranks divide the model, as for llmprof report"},
    {"--full", "", "", "", "", "print all tables, not only one screen"},
    {"--top", "", "LLMPROF_TOP", "N", "12", "rows of each table"},
    {"--junit", "", "", "FILE", "", "write the results of the gates as JUnit XML"},
    {"--html", "", "", "FILE", "",
     "write a page with the first run of each side and what changed; it needs no network"},
    {"--json", "", "", "", "", "print JSON (docs/format/json-diff.md)"},
};
constexpr Positional kPositionals[] = {{"RUN", false, true}};

struct Wanted {
  std::vector<std::string> before, after;
  std::vector<analyze::Gate> gates;
  double least = 0.01;
  std::size_t top = 12;
};

// "a,b,c" is three runs, unless there is a run of that name.
void add_runs(const std::string& word, std::vector<std::string>& runs) {
  if (base::is_directory(trace::run_folder(word)) || word.find(',') == std::string::npos) {
    runs.push_back(word);
    return;
  }
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find(',', begin), word.size());
    if (end > begin) runs.push_back(word.substr(begin, end - begin));
    begin = end + 1;
  }
}

bool is_gate(const std::string& word) { return word.find_first_of("<>") != std::string::npos; }

Result<double> parse_percent(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0 && value <= 100)) {
    return Error{ErrorCode::kUsage, "--least wants a percentage, not '" + text + "'", "for example --least 1%"};
  }
  return value / 100;
}

// Words that hold < or > are gates, wherever they stand: the shell gives `--gate A B run run` as four words.
Result<std::vector<std::string>> take_gates(const Arguments& arguments, Wanted& wanted) {
  std::vector<std::string> runs, words = arguments.all("--gate");
  words.insert(words.end(), arguments.positionals.begin(), arguments.positionals.end());
  for (const std::string& word : words) {
    if (!is_gate(word)) {
      runs.push_back(word);
      continue;
    }
    LLMPROF_LET(const std::vector<analyze::Gate> gates, analyze::parse_gates(word));
    wanted.gates.insert(wanted.gates.end(), gates.begin(), gates.end());
  }
  return runs;
}

// Runs that were left out are the latest of this folder: `diff` compares the last two, `diff OLD` with the last one.
Result<void> fill_in(Wanted& wanted, bool before_is_known) {
  const bool one_is_enough = before_is_known || !wanted.gates.empty();
  if (!wanted.after.empty() && (one_is_enough || !wanted.before.empty())) return {};
  if (!wanted.after.empty()) wanted.before = std::exchange(wanted.after, {});
  std::vector<std::string> latest = latest_runs(2);
  std::erase_if(latest, [&](const std::string& run) {
    return std::ranges::any_of(wanted.before, [&](const auto& name) { return trace::run_folder(name) == run; });
  });
  const std::size_t needed = one_is_enough || !wanted.before.empty() ? 1 : 2;
  if (latest.size() < needed) {
    return Error{ErrorCode::kUsage, "diff needs two runs, a --baseline, or a --gate for one run",
                 "llmprof diff BEFORE AFTER"};
  }
  wanted.after = {latest.front()};
  if (needed == 2) wanted.before = {latest[1]};
  fmt::print(stderr, "Using {}{}.\n", needed == 2 ? latest[1] + " as before, and as after " : "as after ",
             latest.front());
  return {};
}

Result<Wanted> wanted_of(const Arguments& arguments) {
  Wanted wanted;
  LLMPROF_LET(wanted.least, parse_percent(arguments.get("--least")));
  LLMPROF_LET(wanted.top, top_in(arguments));
  LLMPROF_LET(std::vector<std::string> words, take_gates(arguments, wanted));
  for (const std::string& word : arguments.all("--before")) add_runs(word, wanted.before);
  for (const std::string& word : arguments.all("--after")) add_runs(word, wanted.after);
  const bool before_is_known =
      !wanted.before.empty() || arguments.given("--baseline") || arguments.given("--save-baseline");
  if (before_is_known) {
    for (const std::string& word : words) add_runs(word, wanted.after);
  } else if (words.size() == 2 && wanted.after.empty()) {
    add_runs(words[0], wanted.before);
    add_runs(words[1], wanted.after);
  } else if (words.size() == 1) {
    add_runs(words[0], wanted.after.empty() ? wanted.after : wanted.before);
  } else if (!words.empty()) {
    return Error{ErrorCode::kUsage, fmt::format("{} runs: which are before, which after?", words.size()),
                 "llmprof diff --before RUN... --after RUN..."};
  }
  LLMPROF_TRY(fill_in(wanted, before_is_known));
  return wanted;
}

Result<analyze::Side> read_side(const std::vector<std::string>& names, const Arguments& arguments,
                                const base::Progress& progress) {
  analyze::Side side;
  for (const std::string& name : names) {
    LLMPROF_LET(const OpenedRun opened, open_page(arguments, name, progress, analyze::kDigestSections));
    LLMPROF_LET(analyze::Digest digest, analyze::digest_of(opened.run, opened.page.summary));
    digest.name = name;
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(opened.run.folder(), error);
    if (!error) digest.folder = whole.lexically_normal().string();
    side.name += (side.name.empty() ? "" : ", ") + name;
    side.runs.push_back(std::move(digest));
  }
  if (side.runs.size() > 1) side.name = fmt::format("{} runs: {}", side.runs.size(), side.name);
  return side;
}

Result<int> save(const Arguments& arguments, const Wanted& wanted, const base::Progress& progress) {
  std::vector<std::string> names = wanted.before;
  names.insert(names.end(), wanted.after.begin(), wanted.after.end());
  LLMPROF_LET(const analyze::Side side, read_side(names, arguments, progress));
  LLMPROF_LET(const std::string file, analyze::save_baseline(arguments.get("--save-baseline"), side.runs));
  print(fmt::format("baseline {}: {} {} in {}\n", arguments.get("--save-baseline"), side.runs.size(),
                    side.runs.size() == 1 ? "run" : "runs", file));
  return 0;
}

Result<int> run(const Arguments& arguments) {
  if (arguments.on("--list-baselines")) {
    LLMPROF_LET(const std::vector<analyze::BaselineEntry> entries, analyze::list_baselines());
    print(report::to_text(entries));
    return 0;
  }
  const base::Progress progress = progress_line();
  if (arguments.given("--junit")) LLMPROF_TRY(check_ending("--junit", arguments.get("--junit"), {".xml"}));
  if (arguments.given("--html")) LLMPROF_TRY(check_ending("--html", arguments.get("--html"), {".html", ".htm"}));
  LLMPROF_LET(const Wanted wanted, wanted_of(arguments));
  if (arguments.given("--save-baseline")) return save(arguments, wanted, progress);
  analyze::Side before;
  if (arguments.given("--baseline")) {
    if (!wanted.before.empty())
      return Error{ErrorCode::kUsage, "--baseline and --before are two answers to one question", ""};
    LLMPROF_LET(before, analyze::load_baseline(arguments.get("--baseline")));
  } else {
    LLMPROF_LET(before, read_side(wanted.before, arguments, progress));
  }
  LLMPROF_LET(const analyze::Side after, read_side(wanted.after, arguments, progress));
  report::DiffPage page{.diff = analyze::compare(before, after, {.least = wanted.least}),
                        .compared = !before.runs.empty(),
                        .full = arguments.on("--full"),
                        .top = wanted.top};
  page.diff.after = after.name;
  page.gates = analyze::check_gates(wanted.gates, before, after, page.diff);
  if (arguments.given("--junit")) {
    LLMPROF_TRY(base::write_file(arguments.get("--junit"), report::gates_junit(page), base::Readers::kAsTheUmaskSays));
  }
  if (arguments.given("--html")) {
    const std::string first = wanted.before.empty() ? "" : wanted.before.front();
    LLMPROF_TRY(write_diff_page(arguments, first, wanted.after.front(), page));
  }
  print(laid_out(page, arguments, "llmprof.diff"));
  return std::ranges::all_of(page.gates, &analyze::GateResult::passed) ? 0 : kGateFailed;
}

}  // namespace
}  // namespace diff_verb

extern const Verb kDiff;
const Verb kDiff{"diff",
                 "compare runs: what got slower or faster, by how much, and why",
                 diff_verb::kOptions,
                 diff_verb::kPositionals,
                 false,
                 diff_verb::run};

}  // namespace llmprof::app
