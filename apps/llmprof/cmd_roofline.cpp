// llmprof roofline: what this machine's devices can really do, measured, kept, and drawn.

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "bench/roofline/roofline.h"
#include "bench_verb.h"
#include "given_names.h"
#include "hw/resolve.h"
#include "report/layout.h"
#include "report/roofline.h"

namespace llmprof::app {
namespace roofline_verb {
namespace {

constexpr Option kOptions[] = {
    {"--device", "-d", "", "NAME", "", "cpu, cuda or cuda:N; else the first GPU, else the CPU"},
    {"--dtype", "", "", "LIST", "", "types whose FLOP/s are measured, as in bf16,fp8; else all"},
    {"--quick", "", "", "", "", "fewer shapes and less time for each: within 15 s instead of 90"},
    {"--stored", "", "", "", "", "show what is stored, and the catalogue's figures for the rest; measure nothing"},
    {"--all", "", "", "", "", "the CPU and every GPU of this machine, one after the other"},
    {"--no-store", "", "", "", "", "show what was measured and keep nothing"},
    {"--plot", "", "", "FILE", "", "the roofline as a picture: FILE.svg or FILE.png"},
    {"--json", "", "", "", "", "print as JSON (docs/format/json-roofline.md)"},
};

Result<void> check_plot(const Arguments& arguments) {
  const std::string file = arguments.get("--plot");
  if (!arguments.given("--plot")) return {};
  LLMPROF_TRY(check_ending("--plot", file, {".svg", ".png"}));
  if (file.ends_with(".png")) LLMPROF_TRY(report::plot_bytes({}, file));  // before minutes are spent on measuring
  return {};
}

std::vector<hw::Peak> peaks_of(const report::RooflinePage& page) {
  std::vector<hw::Peak> peaks;
  for (const hw::PeakRow& row : page.rows) {
    if (row.why.empty()) peaks.push_back(row.peak);
  }
  return peaks;
}

Result<void> write_picture(const report::Plot& plot, const std::string& file) {
  if (file.empty()) return {};
  LLMPROF_LET(const std::string bytes, report::plot_bytes(plot, file));
  return base::write_file(file, bytes, base::Readers::kAsTheUmaskSays);
}

Result<report::RooflinePage> stored_page(const std::string& device) {
  report::RooflinePage page{.stored = true};
  LLMPROF_LET(page.device, bench::roofline_device(device));
  for (hw::Peak& peak : hw::known_peaks(page.device)) page.rows.push_back({std::move(peak), ""});
  if (page.rows.empty()) page.notes.push_back("nothing is stored for this device: llmprof roofline measures it");
  return page;
}

// "float32 (stored 130 GFLOP/s, now 101 GFLOP/s)": where the store did not take the new figure.
std::string better_stored(const std::vector<hw::Peak>& merged, const std::vector<hw::Peak>& fresh) {
  const auto text = [](const hw::Peak& peak) { return report::with_unit(peak.value, peak.unit); };
  constexpr int kMostNamed = 4;
  std::string out;
  int count = 0;
  for (const hw::Peak& peak : fresh) {
    const hw::Peak* stored = hw::find_peak(merged, peak.quantity, peak.type);
    if (stored == nullptr || stored->value == peak.value || ++count > kMostNamed) continue;
    out += fmt::format("{}{} (stored {}, now {})", out.empty() ? "" : ", ", peak.type, text(*stored), text(peak));
  }
  if (count > kMostNamed) out += fmt::format(" and {} more", count - kMostNamed);
  return out;
}

Result<report::RooflinePage> measured_page(const std::string& device, const bench::RooflineOptions& options,
                                           bool store) {
  LLMPROF_LET(bench::Roofline measured, bench::measure_roofline(device, options, progress_line()));
  report::RooflinePage page{.device = std::move(measured.device),
                            .rows = std::move(measured.rows),
                            .notes = std::move(measured.notes),
                            .quick = options.quick,
                            .seconds = measured.seconds};
  const std::vector<hw::Peak> peaks = peaks_of(page);
  if (!store || peaks.empty()) return page;
  // Kept when all is done: Ctrl-C before leaves the store as it was.
  const std::vector<hw::Peak> merged = hw::merged_peaks(hw::cached_peaks(page.device), peaks);
  const auto kept = hw::store_peaks(page.device, merged);
  if (!kept) page.notes.push_back("could not be kept for the next time: " + kept.error().message);
  if (const std::string better = better_stored(merged, peaks); kept && !better.empty())
    page.notes.push_back("better figures were stored before and stay, as these were measured " +
                         std::string(options.quick ? "in a short time" : "beside other programs") + ": " + better);
  return page;
}

Result<std::vector<std::string>> devices_of(const Arguments& arguments) {
  if (!arguments.on("--all")) return std::vector<std::string>{arguments.get("--device")};
  if (arguments.given("--device"))
    return Error{ErrorCode::kUsage, "--all and --device ask for different things", "give one of them"};
  std::vector<std::string> names{"cpu"};
  for (std::size_t gpu = 0; gpu < hw::probe_gpus().size(); ++gpu) names.push_back(fmt::format("cuda:{}", gpu));
  return names;
}

// "roof.svg" for one device, "roof-1.svg" for the second of several.
std::string picture_name(const std::string& file, std::size_t index) {
  if (index == 0 || file.empty()) return file;
  return fmt::format("{}-{}{}", file.substr(0, file.size() - 4), index, file.substr(file.size() - 4));
}

Result<int> run(const Arguments& arguments) {
  LLMPROF_TRY(check_plot(arguments));
  bench::RooflineOptions options{.quick = arguments.on("--quick")};
  LLMPROF_LET(options.types, types_in(arguments));
  LLMPROF_LET(const std::vector<std::string> devices, devices_of(arguments));
  base::Json json = json_head("llmprof.roofline");
  json["devices"] = base::Json::array();
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    LLMPROF_LET(const report::RooflinePage page, arguments.on("--stored")
                                                     ? stored_page(devices[i])
                                                     : measured_page(devices[i], options, !arguments.on("--no-store")));
    const report::Plot plot = report::roofline_plot(page.device.name, peaks_of(page));
    LLMPROF_TRY(write_picture(plot, picture_name(arguments.get("--plot"), i)));
    base::Json one;
    report::to_json(page, one);
    json["devices"].push_back(std::move(one));
    text += (i == 0 ? "" : "\n") + report::to_text(page);
    if (!plot.series.empty())
      text += "\n" + report::plot_text(plot, {.unicode = unicode_wanted(), .colour = colour_wanted()});
  }
  print(arguments.on("--json") ? base::to_text(json) : text);
  return 0;
}

}  // namespace
}  // namespace roofline_verb

extern const Verb kRoofline;
const Verb kRoofline{"roofline",        "measure what a device can really do", roofline_verb::kOptions, {}, false,
                     roofline_verb::run};

}  // namespace llmprof::app
