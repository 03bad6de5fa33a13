// llmprof devices: the CPU and the GPUs, with their peaks and where those come from.

#include "base/json.h"
#include "hw/device_card.h"
#include "verb.h"

namespace llmprof::app {
namespace {

constexpr Option kOptions[] = {
    {"--measure", "", "", "", "", "measure the peaks of the CPU now (about 2 s, all cores) and keep them"},
    {"--json", "", "", "", "", "print the devices as JSON"},
};

Result<std::vector<hw::Peak>> peaks_of(const hw::Device& device, bool measure) {
  if (!measure || device.kind != "cpu") return hw::cached_peaks(device);
  LLMPROF_LET(std::vector<hw::Peak> peaks, hw::measure_cpu_peaks(device, progress_line()));
  LLMPROF_TRY(hw::store_peaks(device, peaks));
  return peaks;
}

int run(const Arguments& arguments) {
  std::vector<hw::Device> devices{hw::probe_cpu()};
  for (hw::Device& gpu : hw::probe_gpus()) devices.push_back(std::move(gpu));
  base::Json json = json_head("llmprof.devices");
  json["devices"] = base::Json::array();
  std::string text;
  for (const hw::Device& device : devices) {
    const Result<std::vector<hw::Peak>> peaks = peaks_of(device, arguments.on("--measure"));
    if (!peaks) return fail(peaks.error());
    json["devices"].push_back(hw::device_json(device, *peaks));
    text += (text.empty() ? "" : "\n") + hw::device_card(device, *peaks);
  }
  print(arguments.on("--json") ? base::to_text(json) : text);
  return 0;
}

}  // namespace

extern const Verb kDevices;
const Verb kDevices{"devices", "show the devices and their peaks", kOptions, {}, false, run};

}  // namespace llmprof::app
