// start_cost [PAIRS]: what the collector adds to a process that raises no event: start and end of /bin/true with and
// without it, in interleaved pairs. At most 1 ms, no file, no thread (the tests of libs/collect hold the latter two).

#include <cstdlib>

#include "child.h"

namespace {

using namespace llmprof::perf;

double run_ns(const char* program, const std::string& folder) {
  const std::int64_t begin = now_ns();
  const pid_t child = vfork();
  if (child == 0) {
    execl(program, program, nullptr);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  const auto took = static_cast<double>(now_ns() - begin);
  if (status != 0) std::fprintf(stderr, "start_cost: %s failed %s\n", program, folder.c_str()), std::exit(1);
  return took;
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 1000;
  const char* program = argc > 2 ? argv[2] : "/bin/true";
  const CaptureFolder folder;
  std::vector<double> alone, seen, added;
  for (int i = -20; i < pairs; ++i) {  // the first are for the page cache
    double times[2];
    for (int turn = 0; turn < 2; ++turn) {
      const bool with = (turn + i) % 2 != 0;
      set_environment(with ? folder.path() : "");
      times[with] = run_ns(program, folder.path());
    }
    if (i < 0) continue;
    alone.push_back(times[0]);
    seen.push_back(times[1]);
    added.push_back(times[1] - times[0]);
  }
  const auto files = std::distance(std::filesystem::directory_iterator(folder.path()), {});
  std::printf("%s; %s, %d interleaved pairs\n", machine().c_str(), program, pairs);
  std::printf("start to end alone %.3f ms, with the collector %.3f ms (medians)\n", percentile(alone, 0.5) / 1e6,
              percentile(seen, 0.5) / 1e6);
  std::printf("added to a process without events: %.3f ms (quartiles %.3f to %.3f; at most 1: ratio %.3f), %td files\n",
              percentile(added, 0.5) / 1e6, percentile(added, 0.25) / 1e6, percentile(added, 0.75) / 1e6,
              percentile(added, 0.5) / 1e6, files);
}
