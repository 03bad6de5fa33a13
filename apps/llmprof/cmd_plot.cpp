// llmprof plot: one picture of a run for a document, as SVG or PNG.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyze/summary.h"
#include "base/file.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "given_names.h"
#include "pictures/flame.h"
#include "pictures/plots.h"
#include "record/control/window_options.h"
#include "record/open_run.h"
#include "report_verb.h"
#include "verb.h"

namespace llmprof::app {
namespace plot_verb {
namespace {

constexpr Option kOptions[] = {
    {"--output", "-o", "", "FILE", "",
     "FILE.svg or FILE.png; without it the picture is drawn in the terminal, where it can be"},
    {"--stage", "", "", "NAME", "", "only this stage"},
    {"--window", "", "", "A:B", "", "timeline: from A to B after the first event, as in 1.5s:2s"},
    {"--weight", "", "", "gpu|cpu|bytes", "gpu", "flame: what the widths are"},
    {"--title", "", "", "TEXT", "", "instead of the picture's own title"},
    {"--width", "", "", "PIXELS", "860", "of the SVG; a PNG has twice as many"},
    {"--dark", "", "", "", "", "on a dark background"},
    {"--model", "", "", "NAME|PATH", "", "the model, as for llmprof report"},
    {"--parallel", "", "", "GROUPS", "", "how ranks divide the model, as for llmprof report"},
    {"--json", "", "", "", "", "print the numbers of the picture as JSON"},
};
constexpr Positional kPositionals[] = {{"RUN", false}, {"PICTURE", false}};

std::string known_pictures() {
  std::string names;
  for (const std::string_view name : pictures::kPictures) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

bool is_picture(const std::string& name) {
  return std::find(pictures::kPictures.begin(), pictures::kPictures.end(), name) != pictures::kPictures.end();
}

Result<std::string> picture_in(const RunArgument& given) {
  if (given.rest.empty())
    return Error{ErrorCode::kUsage, "plot needs PICTURE", "llmprof plot RUN PICTURE; pictures: " + known_pictures()};
  const std::string& name = given.rest.front();
  if (is_picture(name)) return name;
  return Error{ErrorCode::kUsage, fmt::format("there is no picture '{}'", base::printable(name)),
               base::did_you_mean(name, pictures::kPictures) + "pictures: " + known_pictures()};
}

Result<int> width_in(const Arguments& arguments) {
  return number_in<int>(arguments, "--width", "360 to 10000 pixels", 360, 10'000);
}

Result<std::optional<pictures::Window>> window_in(const Arguments& arguments) {
  const std::string text = arguments.get("--window");
  if (text.empty()) return std::optional<pictures::Window>();
  const Error wrong{ErrorCode::kUsage, fmt::format("--window wants two times, not '{}'", base::printable(text)),
                    "--window 1.5s:2s"};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return wrong;
  const Result<std::int64_t> begin = record::parse_moment(text.substr(0, colon));
  const Result<std::int64_t> end = record::parse_moment(text.substr(colon + 1));
  if (!begin || !end || *begin < 0 || *end <= *begin) return wrong;
  return std::optional(pictures::Window{*begin, *end});
}

Result<std::size_t> weight_in(const Arguments& arguments) {
  static constexpr std::array<std::string_view, 3> kWords{"gpu", "cpu", "bytes"};
  const std::string word = arguments.get("--weight");
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  if (found != kWords.end()) return static_cast<std::size_t>(found - kWords.begin());
  return Error{ErrorCode::kUsage, fmt::format("--weight wants gpu, cpu or bytes, not '{}'", base::printable(word)), ""};
}

Result<pictures::PictureOptions> options_in(const Arguments& arguments) {
  pictures::PictureOptions options{.stage = arguments.get("--stage"), .title = arguments.get("--title")};
  LLMPROF_LET(options.width, width_in(arguments));
  LLMPROF_LET(options.window, window_in(arguments));
  LLMPROF_LET(options.weight, weight_in(arguments));
  return options;
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_LET(const RunArgument given, run_argument(arguments, is_picture));
  LLMPROF_LET(const std::string picture, picture_in(given));
  LLMPROF_LET(const pictures::PictureOptions options, options_in(arguments));
  const std::string file = arguments.get("--output");
  if (!file.empty()) LLMPROF_TRY(check_ending("-o", file, {".svg", ".png"}));
  const base::Progress progress = progress_line();
  LLMPROF_LET(OpenedRun opened, open_page(arguments, given.run, progress, pictures::kPlottedSections));
  const trace::Run& run = opened.run;
  report::Page& page = opened.page;
  page.stage = options.stage;
  LLMPROF_TRY(check_stage(page));
  if (arguments.on("--json")) {
    base::Json json = json_head("llmprof.plot");
    json["run"] = page.run;
    json["picture"] = picture;
    LLMPROF_LET(json["data"], pictures::picture_data(picture, run, page, options));
    print(base::to_text(json));
    if (file.empty()) return 0;
  }
  LLMPROF_LET(const report::Plot drawn, pictures::picture_plot(picture, run, page, options));
  if (!file.empty()) {
    const report::SvgSize size{.width = options.width,
                               .height = std::max(320, options.width * 9 / 16),
                               .theme = arguments.on("--dark") ? report::Theme::kDark : report::Theme::kLight};
    LLMPROF_LET(const std::string bytes, report::plot_bytes(drawn, file, size));
    LLMPROF_TRY(base::write_file(file, bytes, base::Readers::kAsTheUmaskSays));
    return 0;
  }
  // A terminal has no room for the names in the boxes, and without them these two say nothing.
  if (picture != "timeline" && picture != "flame") {
    print(report::plot_text(drawn, {.unicode = unicode_wanted(), .colour = colour_wanted()}));
    return 0;
  }
  return Error{ErrorCode::kUsage, fmt::format("a {} cannot be drawn in a terminal", picture),
               fmt::format("llmprof plot {} {} -o {}.svg", page.run, picture, picture)};
}

}  // namespace
}  // namespace plot_verb

extern const Verb kPlot;
const Verb kPlot{
    "plot", "one picture of a run as SVG or PNG", plot_verb::kOptions, plot_verb::kPositionals, false, plot_verb::run};

}  // namespace llmprof::app
