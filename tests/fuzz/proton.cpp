// Profiles of Triton Proton, and the printed tables of torch.profiler through their importer.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("proton", input);
  check_importer("key-averages", input);
}

std::vector<std::string> seeds() {
  return {
      R"j([{"children": [{"children": [], "frame": {"name": "add", "type": "function"}, "metrics": {"bytes": 50331648,
"count": 4, "device_id": "0", "device_type": "CUDA", "flops32": 4194304, "time (ns)": 12160}}], "frame": {"name": "ROOT",
"type": "function"}, "metrics": {"count": 0, "time (ns)": 0}}, {"CUDA": {"0": {"arch": "90", "bus_width": 6016,
"clock_rate": 1980000, "num_sms": 132}}}])j",
      "Name  Self CPU  Self CUDA  CUDA Mem  # of Calls  Input Shapes  Total KFLOPs\n"
      " aten::mm  1.5us  2.0ms  -15.85 Kb  3  [[2, 3]]  12.5\nSelf CPU time total: 14.759s\n"};
}

std::vector<std::string> dictionary() {
  return {"\"children\": [", "\"frame\": {", "\"metrics\": {", "\"time (ns)\": ", "\"device_id\"", "1e308", "-1"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
