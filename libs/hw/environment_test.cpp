#include "hw/environment.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "hw/testing/fake_machine.h"

namespace llmprof::hw {
namespace {

using namespace std::string_literals;

TEST(EnvironmentCard, SaysWhatTheMachineIs) {
  FakeMachine machine;
  machine.four_cpus()
      .write("proc/sys/kernel/osrelease", "6.1.0-test\n")
      .write("etc/os-release", "ID=x\nPRETTY_NAME=\"Fake Linux 1\"\n");
  machine.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
      .write("sys/devices/system/node/node0/x", "");
  machine.write(".dockerenv", "").write("sys/devices/system/cpu/cpufreq/boost", "1\n");
  const base::Json card = environment_card(machine.root());
  EXPECT_EQ(card["cpu"]["name"], "Fake CPU 9000");
  EXPECT_EQ(card["cpu"]["cores"], 2);
  EXPECT_EQ(card["cpu"]["cpus"], 4);
  EXPECT_EQ(card["cpu"]["threads_per_core"], 2);
  EXPECT_EQ(card["cpu"]["usable_cpus"], 4);
  EXPECT_EQ(card["cpu"]["turbo"], true);
  EXPECT_EQ(card["cpu"]["caches"].size(), 4u);
  EXPECT_EQ(card["cpu"]["caches"][3]["bytes"], 16 << 20);
  EXPECT_EQ(card["cpu"]["caches"][3]["instances"], 2);
  EXPECT_TRUE(card["cpu"]["governor"].is_null());
  EXPECT_EQ(card["memory"]["bytes"], 16'384'000'000);
  EXPECT_EQ(card["memory"]["huge_pages"], "madvise");
  EXPECT_EQ(card["memory"]["numa_nodes"], 1);
  EXPECT_EQ(card["system"]["kernel"], "6.1.0-test");
  EXPECT_EQ(card["system"]["distribution"], "Fake Linux 1");
  EXPECT_EQ(card["system"]["container"], "docker");
  EXPECT_EQ(card["system"]["hypervisor"], "unknown kind");
  EXPECT_TRUE(card["gpus"].is_array());
  EXPECT_FALSE(card["versions"]["llmprof"].get<std::string>().empty());
}

TEST(EnvironmentCard, VariablesThatMatterAndNoSecrets) {
  FakeMachine machine;
  machine.four_cpus().write(
      "proc/self/environ",
      "HOME=/home/anna\0OMP_NUM_THREADS=2\0HF_TOKEN=hf_abc\0SECRET_PLAN=x\0HF_HOME=/home/anna/hf\0"
      "LLMPROF_X=https://a:b@c/\0LD_PRELOAD=/x.so\0nonsense\0"s);
  const base::Json variables = environment_card(machine.root())["variables"];
  EXPECT_EQ(variables, (base::Json{{"OMP_NUM_THREADS", "2"},
                                   {"HF_TOKEN", "***"},
                                   {"HF_HOME", "~/hf"},
                                   {"LLMPROF_X", "https://***@c/"},
                                   {"LD_PRELOAD", "/x.so"}}));
}

TEST(EnvironmentCard, AnEmptyMachineMakesACard) {
  FakeMachine machine;
  const base::Json card = environment_card(machine.root());
  EXPECT_EQ(card["cpu"]["usable_cpus"], 1);
  EXPECT_TRUE(card["system"]["kernel"].is_null());
  EXPECT_TRUE(card["variables"].empty());
}

TEST(EnvironmentCard, ThisMachine) {
  const base::Json card = environment_card();
  EXPECT_FALSE(card["system"]["kernel"].is_null());
  EXPECT_GT(card["memory"]["bytes"], 0);
}

}  // namespace
}  // namespace llmprof::hw
