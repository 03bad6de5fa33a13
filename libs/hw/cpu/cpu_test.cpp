#include "hw/cpu/cpu.h"

#include <gtest/gtest.h>

#include "hw/device.h"
#include "hw/testing/fake_machine.h"

namespace llmprof::hw {
namespace {

using Cpus = std::vector<int>;

TEST(SystemFiles, CpuLists) {
  EXPECT_EQ(parse_cpu_list("0-3,8\n"), (Cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), Cpus{5});
  EXPECT_EQ(parse_cpu_list("3,1-3"), (Cpus{1, 2, 3}));
  EXPECT_EQ(parse_cpu_list(""), Cpus{});
  EXPECT_EQ(parse_cpu_list("a-b,-1,7-"), Cpus{});
  EXPECT_EQ(parse_cpu_list("0-99999999999").size(), 65537u);  // bounded
}

TEST(ProbeCpu, DescribesTheMachine) {
  FakeMachine machine;
  machine.four_cpus();
  const Device device = probe_cpu(machine.root());
  EXPECT_EQ(device.kind, "cpu");
  EXPECT_EQ(device.name, "Fake CPU 9000");
  EXPECT_EQ(device.chip, "x86-64-v3");
  EXPECT_EQ(device.units, 4);
  EXPECT_EQ(device.memory_bytes, 16'000'000ll * 1024);
  EXPECT_EQ(device.cache_bytes, 2 * (16 << 20));  // two L3 caches, each shared by two CPUs
  EXPECT_EQ(device.clock_mhz, 2300);              // no cpufreq: the highest of cpuinfo
  EXPECT_EQ(device.driver, "");
}

TEST(ProbeCpu, AffinityLimitsCoresAndCache) {
  FakeMachine machine;
  machine.four_cpus().write("proc/self/status", "Cpus_allowed_list:\t2,3,64\n");
  const Device device = probe_cpu(machine.root());
  EXPECT_EQ(device.units, 2);
  EXPECT_EQ(device.cache_bytes, 16 << 20);
}

TEST(ProbeCpu, CgroupVersion2) {
  FakeMachine machine;
  machine.four_cpus().write("proc/self/cgroup", "0::/a/b\n");
  machine.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n").write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  machine.write("sys/fs/cgroup/a/b/memory.max", "max\n").write("sys/fs/cgroup/a/memory.max", "1000000000\n");
  const Device device = probe_cpu(machine.root());
  EXPECT_EQ(device.units, 2);  // 1.5 CPUs: two threads are needed to use them
  EXPECT_EQ(device.memory_bytes, 1'000'000'000);
}

TEST(ProbeCpu, CgroupVersion1) {
  FakeMachine machine;
  machine.four_cpus().write("proc/self/cgroup", "4:memory:/m\n1:cpu,cpuacct:/c\n0::/\n");
  machine.write("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "300000")
      .write("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000");
  machine.write("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712");  // "no limit" in version 1
  const Device device = probe_cpu(machine.root());
  EXPECT_EQ(device.units, 3);
  EXPECT_EQ(device.memory_bytes, 16'000'000ll * 1024);
}

TEST(ProbeCpu, AContainerSeesItsLimitsAtTheMount) {
  FakeMachine machine;  // the group's path is the host's and does not exist inside
  machine.four_cpus()
      .write("proc/self/cgroup", "0::/kubepods/pod1/x\n")
      .write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(probe_cpu(machine.root()).units, 1);
}

TEST(ProbeCpu, QuotaUnlimitedOrDamagedIsNoLimit) {
  for (const char* quota : {"max 100000", "-1 100000", "0 100000", "100000", "x y", ""}) {
    FakeMachine machine;
    machine.four_cpus()
        .write("proc/self/cgroup", "0::/\nnonsense\n0::relative\n")
        .write("sys/fs/cgroup/cpu.max", quota);
    EXPECT_EQ(probe_cpu(machine.root()).units, 4) << quota;
  }
}

TEST(ProbeCpu, ClockAndGovernor) {
  FakeMachine machine;
  machine.four_cpus().write("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "3500000\n");
  machine.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
  const Cpu cpu = read_cpu(SystemFiles(machine.root()));
  EXPECT_EQ(cpu.max_mhz, 3500);
  EXPECT_EQ(cpu.governor, "powersave");
  EXPECT_EQ(cpu.cores, 2);
  EXPECT_EQ(cpu.threads_per_core, 2);
  EXPECT_EQ(cpu.sockets, 1);
}

TEST(ProbeCpu, InstructionSetLevels) {
  const std::string v2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3";
  const std::string v3 = v2 + " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
  const std::string v4 = v3 + " avx512f avx512bw avx512cd avx512dq avx512vl";
  for (const auto& [flags, level] : {std::pair<std::string, std::string>{"fpu sse2", "x86-64"},
                                     {v2, "x86-64-v2"},
                                     {v3, "x86-64-v3"},
                                     {v4, "x86-64-v4"},
                                     {v3 + " avx512f", "x86-64-v3"}}) {
    FakeMachine machine;
    machine.write("proc/cpuinfo", "processor : 0\nflags : " + flags + "\n");
    EXPECT_EQ(probe_cpu(machine.root()).chip, level);
  }
  FakeMachine arm;
  arm.write("proc/cpuinfo", "processor : 0\nFeatures : fp asimd\n");
  EXPECT_EQ(probe_cpu(arm.root()).chip, "aarch64");
}

TEST(ProbeCpu, WithoutSysTheProcessorsOfCpuinfoCount) {
  FakeMachine machine;
  machine.write("proc/cpuinfo", "processor : 0\nflags : sse2\n\nprocessor : 1\nflags : sse2\n\nprocessor : 2\n");
  EXPECT_EQ(probe_cpu(machine.root()).units, 3);
}

TEST(ProbeCpu, AnEmptyMachineIsStillACpu) {
  FakeMachine machine;
  const Device device = probe_cpu(machine.root());
  EXPECT_EQ(device.units, 1);
  EXPECT_EQ(device.cache_bytes, 0);
  EXPECT_EQ(device.name, "CPU");
  EXPECT_FALSE(device.clock_mhz);
}

TEST(ProbeCpu, ThisMachine) {
  const Device device = probe_cpu();
  EXPECT_GE(device.units, 1);
  EXPECT_GT(device.memory_bytes, 0);
}

TEST(ProbeGpus, NeverFails) {
  for (const Device& device : probe_gpus()) {
    EXPECT_EQ(device.kind, "gpu");
    EXPECT_FALSE(device.driver.empty());
  }
}

}  // namespace
}  // namespace llmprof::hw
