// Tables of llmprof monitor and nvidia-smi. Seeds are cut from real ones.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  for (const std::string_view format : {"telemetry", "nvidia-smi"}) {
    check_importer(format, input);
    importers::MemorySink sink;
    importers::Input content = importers::Input::of_text("input", std::string(input));
    if (!importers::find_importer(format)->parse(content, sink)) continue;
    sink.flush();
    for (const auto& row : sink.rows<trace::TelemetryRow>())
      require(std::isfinite(row.value) && row.device_id > 0 && row.ts_ns >= 0 && row.metric.id != 0);
  }
}

std::vector<std::string> seeds() {
  return {
      "timestamp, name, uuid, index, utilization.gpu [%], power.draw [W], memory.used [MiB], pstate\n"
      "2026/11/15 19:24:10.678, NVIDIA H200, GPU-1, 0, 0 %, 118.64 W, 811 MiB, P0\n"
      "2026/11/15 19:24:10.887, NVIDIA H200, GPU-1, 0, 2 %, [N/A], 813 MiB, P0\n",
      "#Date        Time         gpu    pwr  gtemp  mtemp     sm\n#YYYYMMDD    HH:MM:SS     Idx      W      C      C\n"
      " 20261115    19:24:10       0    118     30      -      0\n",
      "ts,gpu_util_pct,mem_util_pct,sm_clock_MHz,mem_clock_MHz,power_W,temp_C,mem_used_MiB,mem_total_MiB,device\n"
      "1794770650.678,99,9,1980,3201,168.04,31,951,143771,0\n1794770650.678,0,,345,,,28,4,143771,1\n"};
}

std::vector<std::string> dictionary() {
  return {"timestamp", "[N/A]",    "[Not Supported]", "0x",    " MiB", " W",  "clocks_event_reasons.active",
          "P8",        "20261115", "#gpu, ",          "1e308", "-1",   "\r\n"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
