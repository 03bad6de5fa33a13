// llmprof devices: the CPU and the GPUs, with their peaks and where those come from; the catalogue of known devices.

#include <fmt/format.h>

#include "base/json.h"
#include "hw/device_card.h"
#include "hw/resolve.h"
#include "verb.h"

namespace llmprof::app {
namespace devices_verb {
namespace {

constexpr Option kOptions[] = {
    {"--measure", "", "", "", "", "measure the main peaks of the CPU now (about 2 s, all cores) and keep them"},
    {"--all", "", "", "", "", "list the catalogue: devices that designs can be compared on"},
    {"--json", "", "", "", "", "print the devices as JSON"},
};
constexpr Positional kPositionals[] = {{"NAME", false, false}};

constexpr const char* kTableNotes =
    "Peaks of matrix products in TFLOP/s (int8: TOP/s), dense, sums in float32. GB/s: memory. ridge: FLOP\n"
    "per byte in float16, else in float32. '?': not verified. llmprof devices NAME shows every source.\n";

Result<std::vector<hw::Peak>> peaks_of(const hw::Device& device, bool measure) {
  if (!measure || device.kind != "cpu") return hw::known_peaks(device);
  LLMPROF_LET(const std::vector<hw::Peak> measured, hw::measure_cpu_peaks(device, progress_line()));
  const std::vector<hw::Peak> peaks = hw::merged_peaks(hw::cached_peaks(device), measured);
  LLMPROF_TRY(hw::store_peaks(device, peaks));
  return peaks;
}

Result<int> show_here(const Arguments& arguments) {
  base::Json json = json_head("llmprof.devices");
  json["devices"] = base::Json::array();
  std::string text;
  for (const hw::Device& device : hw::devices_here()) {
    LLMPROF_LET(const std::vector<hw::Peak> peaks, peaks_of(device, arguments.on("--measure")));
    json["devices"].push_back(hw::device_json(device, peaks));
    text += (text.empty() ? "" : "\n") + hw::device_card(device, peaks);
  }
  print(arguments.on("--json") ? base::to_text(json) : text);
  return 0;
}

Result<int> show_catalog(const Arguments& arguments) {
  if (!arguments.on("--json")) {
    print(hw::catalog_table(hw::catalog()) + "\n" + kTableNotes);
    return 0;
  }
  base::Json json = json_head("llmprof.devices");
  json["catalogue"] = base::Json::array();
  for (const hw::DeviceSpec& spec : hw::catalog()) json["catalogue"].push_back(hw::spec_json(spec));
  print(base::to_text(json));
  return 0;
}

Result<int> show_one(const Arguments& arguments) {
  LLMPROF_LET(const hw::DeviceAndPeaks found, hw::resolve_device(arguments.positionals.front()));
  if (!arguments.on("--json")) {
    std::string text;
    if (found.here) text = hw::device_card(found.device, found.peaks);
    if (found.spec != nullptr) text += (text.empty() ? "" : "\nIn the catalogue: ") + hw::spec_card(*found.spec);
    print(text);
    return 0;
  }
  base::Json json = json_head("llmprof.devices");
  json["devices"] = {hw::device_json(found.device, found.peaks)};
  json["here"] = found.here;
  json["catalogue"] = base::Json::array();
  if (found.spec != nullptr) json["catalogue"].push_back(hw::spec_json(*found.spec));
  print(base::to_text(json));
  return 0;
}

Result<int> run(const Arguments& arguments) {
  const bool named = !arguments.positionals.empty();
  const int wishes = (named ? 1 : 0) + (arguments.on("--all") ? 1 : 0) + (arguments.on("--measure") ? 1 : 0);
  if (wishes > 1) {
    return Error{ErrorCode::kUsage, "NAME, --all and --measure ask for different things", "give one of them"};
  }
  if (named) return show_one(arguments);
  return arguments.on("--all") ? show_catalog(arguments) : show_here(arguments);
}

}  // namespace
}  // namespace devices_verb

extern const Verb kDevices;
const Verb kDevices{
    "devices",        "show the devices and their peaks", devices_verb::kOptions, devices_verb::kPositionals, false,
    devices_verb::run};

}  // namespace llmprof::app
