// kill_loss [KILLS]: how much a SIGKILL costs. A program raises an event every 10 us; it is killed at a random moment,
// and the time between the last event in its log and the kill is what was lost. At most 1 s is promised.

#include <signal.h>

#include <cstdlib>
#include <random>

#include "child.h"

namespace {

using namespace llmprof;
using namespace llmprof::perf;

std::int64_t last_event_ns(const std::string& folder) {
  std::uint64_t last = 0;
  std::vector<wire::Record> records(wire::kMaxSectionRecords);
  each_block(folder, [&](const wire::Block& block) {
    wire::SectionReader sections(block);
    for (wire::Section section; sections.next(&section);) {
      if (section.kind != static_cast<std::uint64_t>(wire::RecordKind::kRange)) continue;
      if (!wire::decode_records(section, records.data())) continue;
      for (std::uint32_t i = 0; i < section.count; ++i) last = std::max(last, records[i].range.ts_ns);
    }
  });
  return static_cast<std::int64_t>(last);
}

// Seconds of data lost; negative: not even a log.
double kill_once(int after_ms) {
  const CaptureFolder folder;
  const std::string program = (here() / "annotated_loop").string();
  const pid_t child = fork();
  if (child == 0) {
    set_environment(folder.path());
    execl(program.c_str(), "annotated_loop", "1000000000", "10000", nullptr);
    _exit(127);
  }
  usleep(static_cast<useconds_t>(after_ms) * 1000);
  const std::int64_t killed_ns = now_ns();
  kill(child, SIGKILL);
  int status = -1;
  waitpid(child, &status, 0);
  const std::int64_t last_ns = last_event_ns(folder.path());
  return last_ns == 0 ? -1 : static_cast<double>(killed_ns - last_ns) / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const int kills = argc > 1 ? std::atoi(argv[1]) : 50;
  std::mt19937 random(7);
  std::vector<double> lost;
  int nothing = 0;
  for (int i = 0; i < kills; ++i) {
    const double seconds = kill_once(300 + static_cast<int>(random() % 1700));
    if (seconds < 0) {
      ++nothing;
    } else {
      lost.push_back(seconds);
    }
  }
  std::printf("%s; %d kills 0.3 to 2 s after the start\n", machine().c_str(), kills);
  if (lost.empty()) return std::printf("no log survived\n"), 1;
  std::printf(
      "lost by SIGKILL: %.0f ms of data in the middle, %.0f ms at most (at most 1000: ratio %.3f); %d without any "
      "log\n",
      1e3 * percentile(lost, 0.5), 1e3 * percentile(lost, 1), percentile(lost, 1), nothing);
}
