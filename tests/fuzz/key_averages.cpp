// The table that torch.profiler prints: what is accepted has names, calls and times that can be calculated with.

#include <cmath>

#include "fuzz.h"
#include "importers/key_averages/table.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  const auto table = importers::parse_key_averages(input, "input");
  if (!table) {
    require(table.error().message.starts_with("input:") && !table.error().hint.empty());
    return;
  }
  require(!table->rows.empty() && table->rows.size() <= importers::kMaxMeasuredRows);
  for (const importers::MeasuredRow& row : table->rows) {
    require(row.calls >= 0 && !row.name.empty());
    for (const auto& ns : {row.self_cpu_ns, row.cpu_ns, row.self_device_ns, row.device_ns})
      require(!ns || (std::isfinite(*ns) && *ns >= 0));
  }
}

std::vector<std::string> seeds() {
  const std::string line = "----------------  ------------  ------------  ------------  ------------  ------------  \n";
  const std::string head =
      line + "            Name    Self CPU %      Self CPU     Self CUDA    CUDA total    # of Calls  \n" + line;
  return {head + "    aten::linear         0.89%     131.999ms       0.000us        3.846s         21357  \n" + line +
              "Self CPU time total: 14.759s\nSelf CUDA time total: 5.590s\n",
          "Name  CPU total  CPU Mem  # of Calls\n a  b  1.5us  -15.85 Kb  3\n"};
}

std::vector<std::string> dictionary() {
  return {"Name  ", "# of Calls", "Self CPU", "CUDA total", "Self CUDA", "Self CPU time total: ",
          "us",     "ms",         "1e999s",   "--"};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
