// What `llmprof bench` shows of a run: the table, JSON, CSV, plots, and two runs compared.

#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "bench_verb.h"
#include "record/open_run.h"
#include "record_verb.h"
#include "report/page.h"
#include "report/roofline.h"
#include "report_verb.h"

namespace llmprof::app {
namespace {

using report::BenchPage;
using report::BenchPlot;

Result<BenchPage> bench_page(const std::string& folder) {
  LLMPROF_LET(const trace::Run run, record::open_run(folder, progress_line()));
  LLMPROF_LET(analyze::BenchResults results, analyze::bench_results(run));
  return BenchPage{.run = short_path(folder), .info = run.info(), .results = std::move(results)};
}

// Measured points with FLOPs under the device's roofs.
std::vector<report::RooflinePoint> roofline_points(const BenchPage& page) {
  std::vector<report::RooflinePoint> points;
  for (const analyze::BenchPoint& point : page.results.points) {
    const double bytes = point.read_bytes + point.write_bytes;
    if (!point.flops_per_s || point.flops <= 0 || bytes <= 0) continue;
    points.push_back({.name = fmt::format("{} {}", point.op, point.type),
                      .intensity = point.flops / bytes,
                      .flops_per_second = *point.flops_per_s});
  }
  return points;
}

std::vector<BenchPlot> plots_of(const BenchPage& page) {
  std::vector<BenchPlot> plots = report::to_plots(page);
  const std::vector<report::RooflinePoint> points = roofline_points(page);
  if (!points.empty() && !page.results.peaks.empty()) {
    const std::string device = page.results.devices.empty() ? "" : page.results.devices.front().name;
    plots.push_back({"roofline", report::roofline_plot(device, page.results.peaks, points)});
  }
  return plots;
}

Result<void> write_plot(const report::Plot& plot, const std::filesystem::path& path) {
  LLMPROF_LET(const std::string picture, report::plot_bytes(plot, path.string()));
  LLMPROF_TRY(base::write_file(path.string(), picture, base::Readers::kAsTheUmaskSays));
  fmt::print(stderr, "llmprof: plot in {}\n", path.string());
  return {};
}

// The first plot has the name that was asked for, the others theirs behind it: x.svg, x-gemm-n.svg, x-roofline.svg.
Result<void> write_plots(const BenchPage& page, const std::string& file) {
  const std::vector<BenchPlot> plots = plots_of(page);
  if (plots.empty()) {
    return Error{ErrorCode::kUsage, "there is nothing to plot: no axis has two measured values",
                 "sweep one: --m 1..64:x2"};
  }
  if (file == "-") {
    for (const BenchPlot& plot : plots) {
      print("\n" +
            report::plot_text(
                plot.plot,
                {.width = report::line_width(), .height = 16, .unicode = unicode_wanted(), .colour = colour_wanted()}));
    }
    return {};
  }
  const std::filesystem::path path(file);
  for (std::size_t i = 0; i < plots.size(); ++i) {
    const std::string name = fmt::format("{}-{}{}", path.stem().string(), plots[i].name, path.extension().string());
    LLMPROF_TRY(write_plot(plots[i].plot, i == 0 ? path : path.parent_path() / name));
  }
  return {};
}

Result<double> threshold_of(const Arguments& arguments) {
  LLMPROF_LET(const double percent, number_in<double>(arguments, "--threshold", "a number of percent", 0, 1000));
  return percent / 100;
}

Result<report::BenchComparePage> compare_page(const Arguments& arguments) {
  if (arguments.positionals.size() != 2) {
    return Error{ErrorCode::kUsage, "--compare takes two runs", "llmprof bench --compare A B"};
  }
  LLMPROF_LET(const double threshold, threshold_of(arguments));
  const std::string &a = arguments.positionals[0], &b = arguments.positionals[1];
  LLMPROF_LET(const trace::Run run_a, record::open_run(a, progress_line()));
  LLMPROF_LET(const trace::Run run_b, record::open_run(b, progress_line()));
  LLMPROF_LET(analyze::BenchComparison comparison, analyze::compare_benches(run_a, run_b, threshold));
  return report::BenchComparePage{.a = run_a.folder(), .b = run_b.folder(), .comparison = std::move(comparison)};
}

}  // namespace

Result<void> show_bench(const Arguments& arguments, const std::string& run_folder) {
  LLMPROF_LET(const BenchPage page, bench_page(run_folder));
  print(laid_out(page, arguments, "llmprof.bench"));
  if (arguments.given("--csv")) {
    LLMPROF_TRY(base::write_file(arguments.get("--csv"), report::to_csv(page), base::Readers::kAsTheUmaskSays));
  }
  if (arguments.given("--plot")) LLMPROF_TRY(write_plots(page, arguments.get("--plot")));
  return {};
}

Result<int> compare_runs(const Arguments& arguments) {
  LLMPROF_LET(const report::BenchComparePage page, compare_page(arguments));
  print(laid_out(page, arguments, "llmprof.bench_compare"));
  return 0;
}

}  // namespace llmprof::app
