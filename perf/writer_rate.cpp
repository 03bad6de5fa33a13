// writer_rate [MILLIONS]: how many events one core writes. A thread raises events as fast as it can while the
// collector's writer thread encodes and appends them; the figure is events in the log per second of the writer's own
// CPU time (kernel time of its write calls included), so it does not depend on what else the machine does.

#include <dirent.h>
#include <string.h>

#include <cstdlib>

#include "child.h"
#include "llmprof/annotate.h"

namespace {

using namespace llmprof::perf;

constexpr int kRounds = 5;

// CPU time of the thread called llmprof-writer, in ns; 0: there is none.
long long writer_cpu_ns() {
  long long result = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "llmprof-writer") std::ifstream(task.path() / "schedstat") >> result;
  }
  return result;
}

int raise_events(long long events) {
  const long long begin = now_ns();
  for (long long i = 0; i < events / 2; ++i) {
    llmprof_module_push("layers.0.mlp.up_proj");
    llmprof_pop();
  }
  const long long raised_ns = now_ns() - begin;
  usleep(600000);  // three flushes: everything is written
  std::printf("%lld %lld\n", writer_cpu_ns(), raised_ns);
  return 0;
}

struct Round {
  double cpu_ns = 0, raised_ns = 0, records = 0;
};

Round measure(const std::string& events) {
  const CaptureFolder folder;
  int out[2];
  if (pipe(out) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    set_environment(folder.path());
    execl("/proc/self/exe", "writer_rate", "raise", events.c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  Round round;
  std::FILE* answer = fdopen(out[0], "r");
  const int read = std::fscanf(answer, "%lf %lf", &round.cpu_ns, &round.raised_ns);
  std::fclose(answer);
  int status = -1;
  waitpid(child, &status, 0);
  if (read != 2 || status != 0 || round.cpu_ns == 0) std::fprintf(stderr, "writer_rate: no figure\n"), std::exit(1);
  each_block(folder.path(), [&](const llmprof::wire::Block& block) { round.records += block.records; });
  return round;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "raise") == 0) return raise_events(std::atoll(argv[2]));
  const double millions = argc > 1 ? std::atof(argv[1]) : 10;
  const auto events = static_cast<long long>(millions * 1e6);
  std::vector<double> rates, written;
  for (int i = 0; i < kRounds; ++i) {
    const Round round = measure(std::to_string(events));
    rates.push_back(round.records / round.cpu_ns * 1e3);
    written.push_back(round.records / static_cast<double>(events));
  }
  std::printf("%s; %d rounds of %g M events\n", machine().c_str(), kRounds, millions);
  std::printf("writer: %.2f M events per second of its CPU time (%.2f to %.2f; at least 5: ratio %.2f)\n",
              percentile(rates, 0.5), percentile(rates, 0), percentile(rates, 1), percentile(rates, 0.5) / 5);
  std::printf("written of the raised events: %.2f %% in the worst round (the others were counted as dropped)\n",
              100 * percentile(written, 0));
}
