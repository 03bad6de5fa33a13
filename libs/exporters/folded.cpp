// Folded stacks: one line per distinct stack, `a;b;c N`, as flamegraph.pl and its relatives read them.
#include <fmt/format.h>

#include <map>

#include "exporters/exporter.h"
#include "exporters/output_file.h"
#include "exporters/stacks.h"

namespace llmprof::exporters {
namespace folded {
namespace {

// The format has no escapes: what separates frames or lines becomes something else.
std::string foldable(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c == ';') c = ':';
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return text.empty() ? "(no name)" : text;
}

bool is_time(Weight weight) {
  return weight == Weight::kGpuTime || weight == Weight::kCpuTime || weight == Weight::kCpuKernelTime;
}

Result<Written> write(const Request& request) {
  Frames frames;
  std::map<std::string, std::int64_t> lines;
  LLMPROF_TRY(each_stack(request, frames, [&](const StackWeight& sum) {
    if (!is_time(sum.weight)) return;  // lines of one file have one unit
    std::string line(name_of(sum.weight).name);
    for (const std::uint32_t frame : sum.frames) line += ";" + foldable(frames.all()[frame].name);
    lines[line] += sum.value;
  }));
  LLMPROF_LET(OutputFile out, OutputFile::create(request.output));
  for (const auto& [line, value] : lines)
    if (value > 0) out.write(fmt::format("{} {}\n", line, value));
  LLMPROF_TRY(out.finish());
  return Written{{request.output},
                 static_cast<std::int64_t>(lines.size()),
                 {"values are nanoseconds; the first frame says of what: gpu_time, cpu_time, cpu_kernel_time"}};
}

}  // namespace
}  // namespace folded

extern const Exporter kFolded;
const Exporter kFolded{"folded",  "folded stacks, a;b;c N: flamegraph.pl, inferno, speedscope",
                       ".folded", folded::write,
                       false,     ".txt .folded.gz"};

}  // namespace llmprof::exporters
