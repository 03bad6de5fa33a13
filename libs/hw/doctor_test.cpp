#include "hw/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "hw/testing/fake_machine.h"
#include "hw/in_child.h"

namespace llmprof::hw {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

const Finding& find(const std::vector<Finding>& findings, std::string_view check) {
  static const Finding kNone;
  for (const Finding& finding : findings) {
    if (finding.check == check) return finding;
  }
  ADD_FAILURE() << "no check " << check;
  return kNone;
}

TEST(Doctor, EveryFindingThatIsNotOkHasARemedy) {
  FakeMachine machine;
  machine.four_cpus();
  const auto findings = examine({.root = machine.root(), .library_folder = machine.root(), .folder = machine.root()});
  EXPECT_EQ(findings.size(), 16u);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.found.empty()) << finding.check;
    EXPECT_EQ(finding.remedy.empty(), finding.status == Status::kOk) << finding.check;
  }
}

TEST(Doctor, MissingOrDamagedLibrariesMeanNoRecording) {
  FakeMachine machine;
  machine.four_cpus().write("libllmprof_blas.so", "not a library");
  const auto findings = examine({.root = machine.root(), .library_folder = machine.root(), .folder = machine.root()});
  EXPECT_EQ(find(findings, "collector").status, Status::kFail);
  EXPECT_EQ(find(findings, "blas hook").status, Status::kFail);
  EXPECT_THAT(find(findings, "blas hook").found, HasSubstr("libllmprof_blas.so"));
  EXPECT_EQ(find(findings, "duckdb").status, Status::kFail);
  EXPECT_FALSE(can_record(findings));
}

TEST(Doctor, OnlyFailuresPreventRecording) {
  EXPECT_TRUE(can_record({{"a", Status::kOk, "", ""}, {"b", Status::kWarn, "", ""}, {"c", Status::kAbsent, "", ""}}));
  EXPECT_FALSE(can_record({{"a", Status::kOk, "", ""}, {"b", Status::kFail, "", ""}}));
}

TEST(Doctor, ProbesLibrariesInAChild) {
  EXPECT_TRUE(probe_library("libc.so.6").loaded);
  const LibraryProbe asked = probe_library("libc.so.6", [](void*) { return std::string("hello"); });
  EXPECT_EQ(asked.detail, "hello");
  const LibraryProbe crashed = probe_library("libc.so.6", [](void*) -> std::string { ::_exit(3); });
  EXPECT_FALSE(crashed.loaded);
  EXPECT_THAT(crashed.detail, HasSubstr("crashed"));
  EXPECT_THAT(probe_library("/nowhere/x.so").detail, HasSubstr("/nowhere/x.so"));
}

TEST(Doctor, TheFolderMustBeWritable) {
  FakeMachine machine;
  EXPECT_EQ(check_folder(machine.root()).status, Status::kOk);
  EXPECT_EQ(check_folder(machine.root() + "/missing").status, Status::kFail);
  EXPECT_EQ(check_disk(machine.root() + "/missing").status, Status::kWarn);
}

TEST(Doctor, Driver) {
  FakeMachine machine;
  const SystemFiles files(machine.root());
  EXPECT_EQ(check_driver(files).status, Status::kAbsent);
  machine.write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1\nGCC version: x\n");
  EXPECT_EQ(check_driver(files).status, Status::kWarn);
  machine.write("dev/nvidiactl", "");
  EXPECT_EQ(check_driver(files).status, Status::kOk);
  EXPECT_THAT(check_driver(files).found, HasSubstr("570.1"));
}

TEST(Doctor, CounterPermission) {
  FakeMachine machine;
  const SystemFiles files(machine.root());
  EXPECT_EQ(check_counters(files).status, Status::kAbsent);
  machine.write("proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n");
  EXPECT_EQ(check_counters(files).status, Status::kWarn);
  machine.write("proc/self/status", "CapEff:\t0000000000200000\n");  // bit 21: CAP_SYS_ADMIN
  EXPECT_EQ(check_counters(files).status, Status::kOk);
  machine.write("proc/self/status", "CapEff:\t0000000000100000\n");
  EXPECT_EQ(check_counters(files).status, Status::kWarn);
  machine.write("proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n");
  EXPECT_EQ(check_counters(files).status, Status::kOk);
}

TEST(Doctor, PerfEvents) {
  FakeMachine machine;
  const SystemFiles files(machine.root());
  EXPECT_EQ(check_perf_events(files).status, Status::kAbsent);
  machine.write("proc/sys/kernel/perf_event_paranoid", "2\n");
  EXPECT_EQ(check_perf_events(files).status, Status::kOk);
  machine.write("proc/sys/kernel/perf_event_paranoid", "4\n");
  EXPECT_EQ(check_perf_events(files).status, Status::kWarn);
  machine.write("proc/self/status", "CapEff:\t0000004000000000\n");  // bit 38: CAP_PERFMON
  EXPECT_EQ(check_perf_events(files).status, Status::kOk);
}

TEST(Doctor, ReportsInjectionsOfOthers) {
  FakeMachine machine;
  machine.write("proc/self/environ", "A=1\0LD_PRELOAD=/lib/other.so\0NVTX_INJECTION64_PATH=/n.so\0"s);
  const auto findings = examine({.root = machine.root(), .library_folder = machine.root(), .folder = machine.root()});
  const Finding& finding = find(findings, "other injections");
  EXPECT_EQ(finding.status, Status::kWarn);
  EXPECT_EQ(finding.found, "LD_PRELOAD=/lib/other.so, NVTX_INJECTION64_PATH=/n.so");
}

}  // namespace
}  // namespace llmprof::hw
