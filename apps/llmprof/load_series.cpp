// llmprof load --sweep and --find-rate: several loads, one after the other.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/axis.h"
#include "base/file.h"
#include "base/human.h"
#include "base/numbers.h"
#include "base/strings.h"
#include "given_names.h"
#include "load/search.h"
#include "load_verb.h"
#include "model_verb.h"
#include "report/load.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

constexpr std::int64_t kLeastProbe = 40, kMostProbe = 100'000;

Error wrong_series(std::string message, std::string hint = "") {
  return Error{ErrorCode::kUsage, std::move(message), std::move(hint)};
}

struct Sweep {
  std::string varied;  // rate, concurrency
  std::vector<double> values;
};

Result<Sweep> sweep_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  Sweep out{.varied = text.substr(0, equals), .values = {}};
  const Error bad = wrong_series(fmt::format("--sweep: '{}' is neither rate=VALUES nor concurrency=VALUES", text),
                                 "rate=1..32:x2, rate=0.5,1,2 or concurrency=1,4,16");
  if (equals == std::string::npos || (out.varied != "rate" && out.varied != "concurrency")) return bad;
  const std::string values = text.substr(equals + 1);
  if (const auto whole = base::parse_axis_values(values)) {
    out.values.assign(whole->begin(), whole->end());
  } else {
    for (const std::string_view part : base::split(values, ',')) {
      const auto value = base::parse_number<double>(part);
      if (!value || out.varied != "rate") return bad;
      out.values.push_back(*value);
    }
  }
  if (std::ranges::any_of(out.values, [](double value) { return !(value > 0 && value < 1e6); })) return bad;
  return out;
}

class Series {
 public:
  Series(const Arguments& arguments, AskedLoad& asked, std::string varied)
      : arguments_(arguments), asked_(asked) {
    document.varied = std::move(varied);
    document.url = asked.options.http.base_url, document.model = asked.options.body.model;
    document.endpoint = load::name_of(asked.options.body.endpoint);
    document.slo = {asked.slo.ttft_ns, asked.slo.tpot_ns, asked.slo.e2e_ns};
  }

  Result<void> prepare() {
    LLMPROF_LET(probe_ns_, time_ns("--probe", arguments_.get("--probe")));
    const auto share = base::parse_number<double>(arguments_.get("--good"));
    if (!share || !(*share > 0 && *share <= 1)) return wrong_series("--good wants a share, as in --good 0.99");
    document.share = share;
    if (document.varied == "concurrency") return {};
    if (arguments_.given("--concurrency")) return wrong_series("--concurrency and a rate exclude each other");
    const auto rate = base::parse_number<double>(arguments_.get("--rate"));
    if (!rate) return wrong_series("the rate is what is varied: --rate wants one number, to begin with");
    base_rate_ = *rate;
    return {};
  }

  Result<load::PointRow> run(double value) {
    LLMPROF_LET(load::Prompts prompts, prompts_for(value));
    load::Prompts warm_up;
    if (document.points.empty()) {
      LLMPROF_LET(warm_up, warm_up_prompts(arguments_, asked_));
    }
    const std::string label = label_of(value);
    LLMPROF_LET(const LoadRun done, run_load(arguments_, asked_, prompts, warm_up, label + ": "));
    load::PointRow point = load::point_of(done.figures, "steady");
    point.label = label, point.value = value;
    point.good = point.good_share && *point.good_share >= *document.share;
    if (!asked_.folder.empty()) {
      point.run = fmt::format("{}-{:g}.llmprof", asked_.folder, value);
      LLMPROF_TRY(check_place(point.run, arguments_.on("--force")));
      LLMPROF_TRY(write_load(point.run, arguments_, done));
    }
    document.interrupted = done.result.interrupted;
    if (document.workload.empty()) document.workload = prompts.description + fmt::format("; the {} varied", document.varied);
    document.points.push_back(point);
    return point;
  }

  Result<int> show() {
    std::ranges::stable_sort(document.points, {}, &load::PointRow::value);
    if (arguments_.given("--prompts"))
      document.notes.emplace_back("the prompts were the same at every point: a prefix cache had seen them before");
    if (std::ranges::any_of(document.points, [](const load::PointRow& point) { return !point.kept; }))
      document.notes.emplace_back("where the client did not keep up, the figures are not the server's alone");
    if (const std::string file = arguments_.get("--plot"); !file.empty()) {
      LLMPROF_LET(const std::string bytes, report::plot_bytes(report::load_plot(document), file));
      LLMPROF_TRY(base::write_file(file, bytes, base::Readers::kAsTheUmaskSays));
    }
    report::LoadSeriesPage page{.document = document};
    page.canvas.colour = colour_wanted(), page.canvas.unicode = unicode_wanted();
    page.canvas.width = std::clamp<std::size_t>(output_width(100), 40, 100);
    print(laid_out(page, arguments_, "llmprof.load_series"));
    constexpr int kInterrupted = 130;
    return document.interrupted ? kInterrupted : 0;
  }

  load::SeriesDocument document;

 private:
  std::string label_of(double value) const {
    return document.varied == "rate" ? base::three_digits(value) + " req/s" : fmt::format("concurrency {:g}", value);
  }

  // Words of its own at every point, or the prefix cache would know them from the one before.
  Result<load::Prompts> prompts_for(double value) {
    std::int64_t requests = asked_.requests;
    const bool rate = document.varied == "rate";
    if (rate && !arguments_.given("--requests"))
      requests = std::clamp(static_cast<std::int64_t>(std::llround(value * probe_ns_ * 1e-9)), kLeastProbe, kMostProbe);
    LLMPROF_LET(load::Prompts prompts, asked_prompts(arguments_, asked_, requests, asked_.seed + document.points.size()));
    if (!rate) {
      asked_.options.concurrency = static_cast<std::int64_t>(value);
      return prompts;
    }
    // The same arrivals, nearer to each other.
    double from_rate = base_rate_;
    if (const double last_ns = prompts.prompts.back().arrival_ns; arguments_.given("--workload") && last_ns > 0)
      from_rate = static_cast<double>(prompts.prompts.size()) / (last_ns * 1e-9);
    for (load::Prompt& prompt : prompts.prompts) prompt.arrival_ns *= from_rate / value;
    return prompts;
  }

  const Arguments& arguments_;
  AskedLoad& asked_;
  double probe_ns_ = 0, base_rate_ = 1;
};

}  // namespace

Result<int> run_load_series(const Arguments& arguments, AskedLoad& asked) {
  if (!arguments.on("--find-rate")) {
    LLMPROF_LET(const Sweep sweep, sweep_of(arguments.get("--sweep")));
    Series series(arguments, asked, sweep.varied);
    LLMPROF_TRY(series.prepare());
    for (const double value : sweep.values) {
      LLMPROF_TRY(series.run(value));
      if (series.document.interrupted) break;
    }
    return series.show();
  }
  if (arguments.given("--sweep")) return wrong_series("--find-rate and --sweep exclude each other");
  if (!asked.slo.any()) return wrong_series("--find-rate needs limits", "as in --slo ttft=200ms,tpot=50ms");
  Series series(arguments, asked, "rate");
  LLMPROF_TRY(series.prepare());
  const load::SearchOptions options{.first = base::parse_number<double>(arguments.get("--rate")).value_or(1)};
  LLMPROF_LET(const load::RateFound found, load::find_rate(options, [&](double rate) -> Result<load::Probe> {
                LLMPROF_LET(const load::PointRow point, series.run(rate));
                return load::Probe{rate, point.good, point.kept, point.requests_per_s, series.document.interrupted};
              }));
  series.document.rate = found.rate, series.document.why = found.why;
  return series.show();
}

}  // namespace llmprof::app
