// hook_cost: what the collector adds to one annotation and to one BLAS call, in a program that does nothing else.
//   push+pop seen by the collector   at most two clock reads + 40 ns
//   push+pop with nobody listening   at most 5 ns
//   BLAS call through the hook       at most 100 ns more than without
// The program runs itself once per role and round, in turn (so that a slow phase of the machine hits all roles), and
// prints the median of the rounds and their spread. The BLAS is a function that returns at once.

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "collect/nvtx_abi.h"
#include "llmprof/annotate.h"

extern "C" void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                            int);

namespace {

namespace nvtx = llmprof::collect::nvtx;

constexpr int kBatches = 60;
constexpr int kBatch = 2000;    // pairs: far below what the pool holds
constexpr int kPauseUs = 4000;  // lets the writer catch up, so that it does not share the core with the loop
constexpr int kRounds = 9;

double now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Median over batches of the mean cost of one call of `work`.
template <class Work>
double cost_ns(Work work) {
  std::vector<double> batches;
  for (int i = 0; i < 200; ++i) work();
  for (int batch = 0; batch < kBatches; ++batch) {
    usleep(kPauseUs);
    for (int i = 0; i < 50; ++i) work();  // warm after the pause
    const double begin = now_ns();
    for (int i = 0; i < kBatch; ++i) {
      work();
      asm volatile("" ::: "memory");
    }
    batches.push_back((now_ns() - begin) / kBatch);
  }
  return median(batches);
}

// A client as nvtx3 makes it: one indirect call per annotation.
nvtx::Function core[nvtx::kCoreSize];
nvtx::Function* core_table[nvtx::kCoreSize];

int get_table(nvtx::Module module, nvtx::FunctionTable* table, unsigned int* size) {
  for (unsigned i = 0; i < nvtx::kCoreSize; ++i) core_table[i] = &core[i];
  *table = core_table;
  *size = module == nvtx::kCore ? unsigned{nvtx::kCoreSize} : 0;
  return module == nvtx::kCore;
}
const void* get_export_table(std::uint32_t) {
  static const nvtx::CallbackTable callbacks{sizeof(callbacks), get_table};
  return &callbacks;
}

double seen() {
  void* library = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
  const auto entry = library != nullptr ? dlsym(library, "InitializeInjectionNvtx2") : nullptr;
  if (entry == nullptr || reinterpret_cast<int (*)(nvtx::GetExportTable)>(entry)(get_export_table) != 1) return -1;
  const auto push = reinterpret_cast<int (*)(const char*)>(core[nvtx::kRangePushA]);
  const auto pop = reinterpret_cast<int (*)()>(core[nvtx::kRangePop]);
  return cost_ns([&] {
    push("layers.0.mlp.up_proj");
    pop();
  });
}

double annotation() {
  return cost_ns([] {
    llmprof_module_push("layers.0.mlp.up_proj");
    asm volatile("" ::: "memory");
    llmprof_pop();
  });
}

double blas_call() {
  float value = 0;
  return cost_ns([&] { cblas_sgemm(101, 111, 111, 4, 4, 4, 1, &value, 4, &value, 4, 0, &value, 4); });
}

double clock_read() {
  return cost_ns([] { now_ns(); });
}

struct Role {
  const char* name;
  double (*measure)();
  bool listening, preloaded;
};
constexpr std::array<Role, 6> kRoles{{
    {"one clock read", clock_read, false, false},
    {"push+pop seen by the collector", seen, true, false},
    {"push+pop of annotate.h, seen", annotation, true, false},
    {"push+pop of annotate.h, nobody listening", annotation, false, false},
    {"BLAS call alone", blas_call, false, false},
    {"BLAS call through the hook", blas_call, true, true},
}};

// Runs one role in a process of its own; what it prints is its figure.
double measure_apart(std::size_t role, const std::string& libraries, const std::string& folder) {
  int out[2];
  if (pipe(out) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    unsetenv("LD_PRELOAD");
    unsetenv("NVTX_INJECTION64_PATH");
    unsetenv("LLMPROF_CAPTURE_DIR");
    if (kRoles[role].listening) setenv("LLMPROF_CAPTURE_DIR", folder.c_str(), 1);
    if (kRoles[role].listening) setenv("NVTX_INJECTION64_PATH", (libraries + "/libllmprof_inject.so").c_str(), 1);
    if (kRoles[role].preloaded) setenv("LD_PRELOAD", (libraries + "/libllmprof_blas.so").c_str(), 1);
    execl("/proc/self/exe", "hook_cost", std::to_string(role).c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  char text[64] = {};
  const ssize_t got = read(out[0], text, sizeof(text) - 1);
  close(out[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return got > 0 && status == 0 ? std::atof(text) : -1;
}

std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const double ns = kRoles.at(static_cast<std::size_t>(std::atoi(argv[1]))).measure();
    std::printf("%.3f\n", ns);
    return ns >= 0 ? 0 : 1;
  }
  const auto here = std::filesystem::canonical("/proc/self/exe").parent_path();
  const std::string libraries = (here.parent_path() / "lib/llmprof").string();
  std::string folder = (std::filesystem::temp_directory_path() / "llmprof-hook-cost-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  std::array<std::vector<double>, kRoles.size()> figures;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t role = 0; role < kRoles.size(); ++role)
      figures[role].push_back(measure_apart(role, libraries, folder));
  }
  std::filesystem::remove_all(folder);
  std::printf("%s; median, least and most of %d interleaved rounds\n\n", machine().c_str(), kRounds);
  std::array<double, kRoles.size()> typical;
  for (std::size_t role = 0; role < kRoles.size(); ++role) {
    auto& values = figures[role];
    std::sort(values.begin(), values.end());
    typical[role] = values[values.size() / 2];
    if (values.front() < 0) return std::printf("%s: could not be measured\n", kRoles[role].name), 1;
    std::printf("%-42s %7.1f ns   (%.1f to %.1f)\n", kRoles[role].name, typical[role], values.front(), values.back());
  }
  std::printf("\n%-42s %7.1f ns   (at most 40)\n", "push+pop beyond two clock reads", typical[1] - 2 * typical[0]);
  std::printf("%-42s %7.1f ns   (at most 5)\n", "push+pop with nobody listening", typical[3]);
  std::printf("%-42s %7.1f ns   (at most 100)\n", "BLAS hook per call", typical[5] - typical[4]);
}
