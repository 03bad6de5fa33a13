#pragma once
// For tests: a folder that holds a fake /proc and /sys, deleted at the end.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace llmprof::hw {

class FakeMachine {
 public:
  FakeMachine() {
    std::string pattern = (std::filesystem::temp_directory_path() / "llmprof_hw_XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  ~FakeMachine() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  const std::string& root() const { return root_; }

  FakeMachine& write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return *this;
  }

  // Four CPUs, two cores with two threads each; L3 of 16 MiB per core; AVX2.
  FakeMachine& four_cpus() {
    const std::string flags =
        "flags : fpu cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave "
        "hypervisor\n";
    std::string cpuinfo;
    for (int cpu = 0; cpu < 4; ++cpu) {
      cpuinfo += "processor\t: " + std::to_string(cpu) + "\nmodel name\t: Fake CPU 9000\ncpu MHz\t\t: 2" +
                 std::to_string(cpu) + "00.5\n" + flags + "\n";
      const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu);
      const std::string pair = cpu < 2 ? "0-1" : "2-3";
      write(folder + "/topology/thread_siblings_list", pair + "\n")
          .write(folder + "/topology/physical_package_id", "0\n");
      cache(folder, 0, 1, "Data", "32K", pair).cache(folder, 1, 1, "Instruction", "32K", pair);
      cache(folder, 2, 2, "Unified", "1024K", pair).cache(folder, 3, 3, "Unified", "16384K", pair);
    }
    write("proc/cpuinfo", cpuinfo).write("sys/devices/system/cpu/online", "0-3\n");
    write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3\n");
    return write("proc/meminfo", "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n");
  }

 private:
  FakeMachine& cache(const std::string& cpu, int index, int level, const char* type, const char* size,
                     const std::string& shared) {
    const std::string folder = cpu + "/cache/index" + std::to_string(index);
    write(folder + "/level", std::to_string(level)).write(folder + "/type", type);
    return write(folder + "/size", size).write(folder + "/shared_cpu_list", shared);
  }

  std::string root_;
};

}  // namespace llmprof::hw
