#include "hw/gpu/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "hw/gpu/nvml.h"

namespace llmprof::hw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kGib = std::int64_t{1} << 30;
constexpr int kOwnPid = 1'000'000'001;  // above any pid of Linux: /proc has no name for these
constexpr int kOtherPid = 1'000'000'002;

// A GPU at 0000:3b:00.0 that `running` processes compute on.
struct FakeNvml {
  static inline unsigned running = 0;
  static inline unsigned long long reasons = 0;
  static inline int started = 0;

  static NvmlApi api() {
    running = 0, reasons = 0, started = 0;
    NvmlApi api;
    api.init = [] { return ++started, kNvmlSuccess; };
    api.shutdown = [] { return --started, kNvmlSuccess; };
    api.handle_by_bus_id = [](const char* id, NvmlDevice** device) {
      *device = reinterpret_cast<NvmlDevice*>(8);
      return std::strcmp(id, "0000:3b:00.0") == 0 ? kNvmlSuccess : 6;
    };
    return api;
  }
  static NvmlApi talkative() {
    NvmlApi nvml = api();
    nvml.error_string = [](int status) { return status == 6 ? "Not Found" : "?"; };
    nvml.processes = [](NvmlDevice*, unsigned* room, NvmlProcess* out) {
      const unsigned fits = *room;
      *room = running;
      if (running > fits) return kNvmlInsufficientSize;
      for (unsigned i = 0; i < running; ++i) out[i] = {kOwnPid + i, i == 0 ? ~0ull : i * (1ull << 30), 0, 0};
      return kNvmlSuccess;
    };
    nvml.utilization = [](NvmlDevice*, NvmlUtilization* out) { return *out = {40, 3}, kNvmlSuccess; };
    nvml.memory = [](NvmlDevice*, NvmlMemory* out) { return *out = {80ull << 30, 70ull << 30, 10ull << 30}, 0; };
    nvml.clock = [](NvmlDevice*, unsigned which, unsigned* mhz) { return *mhz = which == 1 ? 1200 : 3201, 0; };
    nvml.clock_reasons = [](NvmlDevice*, unsigned long long* bits) { return *bits = reasons, kNvmlSuccess; };
    nvml.power = [](NvmlDevice*, unsigned* mw) { return *mw = 123'400, kNvmlSuccess; };
    nvml.power_limit = [](NvmlDevice*, unsigned* mw) { return *mw = 700'000, kNvmlSuccess; };
    nvml.temperature = [](NvmlDevice*, unsigned, unsigned* degrees) { return *degrees = 41, kNvmlSuccess; };
    return nvml;
  }
};

TEST(GpuUsage, EverythingThatNvmlTells) {
  const NvmlApi nvml = FakeNvml::talkative();
  FakeNvml::running = 2;
  FakeNvml::reasons = 0x1 | 0x4 | 0x40;  // idle, power limit, hot
  const Result<GpuUsage> usage = read_gpu_usage(nvml, "0000:3b:00.0");
  ASSERT_TRUE(usage);
  ASSERT_TRUE(usage->processes);
  ASSERT_EQ(usage->processes->size(), 2u);
  EXPECT_EQ(usage->processes->at(0).pid, kOwnPid);
  EXPECT_EQ(usage->processes->at(0).memory_bytes, std::nullopt);  // all ones
  EXPECT_EQ(usage->processes->at(1).memory_bytes, kGib);
  EXPECT_EQ(usage->busy_share, 0.4);
  EXPECT_EQ(usage->memory_used_bytes, 10 * kGib);
  EXPECT_EQ(usage->memory_total_bytes, 80 * kGib);
  EXPECT_EQ(usage->sm_clock_mhz, 1200);
  EXPECT_EQ(usage->memory_clock_mhz, 3201);
  EXPECT_THAT(usage->clock_limits, ElementsAre("power limit", "too hot, slowed down by hardware"));
  EXPECT_DOUBLE_EQ(*usage->power_watts, 123.4);
  EXPECT_DOUBLE_EQ(*usage->power_limit_watts, 700);
  EXPECT_EQ(usage->temperature_celsius, 41);
  EXPECT_EQ(FakeNvml::started, 0);  // shut down again
}

TEST(GpuUsage, WhatADriverDoesNotTellStaysUnknown) {
  const Result<GpuUsage> usage = read_gpu_usage(FakeNvml::api(), "0000:3b:00.0");
  ASSERT_TRUE(usage);
  EXPECT_FALSE(usage->processes || usage->busy_share || usage->memory_used_bytes || usage->sm_clock_mhz);
  EXPECT_FALSE(usage->power_watts || usage->temperature_celsius);
  EXPECT_THAT(busy_notes(*usage, kOwnPid, true), IsEmpty());
}

TEST(GpuUsage, OlderDriversNameTheReasonsDifferently) {
  NvmlApi nvml = FakeNvml::api();
  nvml.clock_reasons_before_12_2 = [](NvmlDevice*, unsigned long long* bits) { return *bits = 0x80, kNvmlSuccess; };
  EXPECT_THAT(read_gpu_usage(nvml, "0000:3b:00.0")->clock_limits, ElementsAre("external power brake"));
}

TEST(GpuUsage, MoreProcessesThanExpected) {
  const NvmlApi nvml = FakeNvml::talkative();
  FakeNvml::running = 40;
  const Result<GpuUsage> usage = read_gpu_usage(nvml, "0000:3b:00.0");
  ASSERT_TRUE(usage && usage->processes);
  EXPECT_EQ(usage->processes->size(), 40u);
}

TEST(GpuUsage, AnotherBusIdAndABrokenDriverSayWhy) {
  NvmlApi nvml = FakeNvml::talkative();
  const Result<GpuUsage> missing = read_gpu_usage(nvml, "0000:ff:00.0");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "NVML has no GPU at 0000:ff:00.0: Not Found");
  EXPECT_EQ(FakeNvml::started, 0);
  nvml.init = [] { return 9; };
  nvml.error_string = nullptr;
  EXPECT_EQ(read_gpu_usage(nvml, "0000:3b:00.0").error().message, "NVML does not start: status 9");
}

GpuUsage used_by(std::vector<GpuProcess> processes) {
  GpuUsage usage;
  usage.processes = std::move(processes);
  return usage;
}

TEST(BusyNotes, OursAloneIsQuiet) {
  EXPECT_THAT(busy_notes(used_by({{.pid = kOwnPid, .memory_bytes = {}, .name = ""}}), kOwnPid, true), IsEmpty());
  EXPECT_THAT(busy_notes(used_by({}), kOwnPid, true), IsEmpty());
}

TEST(BusyNotes, OthersAreNamedWithTheirMemory) {
  GpuUsage usage = used_by({{.pid = kOwnPid, .memory_bytes = {}, .name = "llmprof"},
                            {.pid = kOtherPid, .memory_bytes = 3 * kGib, .name = "python3"}});
  usage.busy_share = 0.4;
  EXPECT_THAT(
      busy_notes(usage, kOwnPid, true),
      ElementsAre("another program has this GPU open (pid 1000000002 python3, 3.0 GiB); a kernel ran 40 % of the "
                  "last moments"));
}

TEST(BusyNotes, ManyOthersAreCounted) {
  const GpuProcess other{.pid = kOtherPid, .memory_bytes = {}, .name = "x"};
  const std::vector<std::string> notes = busy_notes(used_by({other, other, other, other, other}), kOwnPid, false);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("; 2 more)"));
}

// From inside a container NVML may name this process by its pid outside: one stranger is us if we hold a context.
TEST(BusyNotes, AStrangerMayBeOurselves) {
  const GpuProcess stranger{.pid = kOtherPid, .memory_bytes = {}, .name = ""};
  EXPECT_THAT(busy_notes(used_by({stranger}), kOwnPid, true), IsEmpty());
  EXPECT_EQ(busy_notes(used_by({stranger}), kOwnPid, false).size(), 1u);
  EXPECT_EQ(busy_notes(used_by({stranger, stranger}), kOwnPid, true).size(), 1u);
  const GpuProcess known{.pid = kOtherPid, .memory_bytes = {}, .name = "python3"};  // /proc knows it: not us
  EXPECT_EQ(busy_notes(used_by({known}), kOwnPid, true).size(), 1u);
}

TEST(BusyNotes, LoadAndMemoryOfProgramsThatCannotBeSeen) {
  GpuUsage usage = used_by({});
  usage.busy_share = 0.5;
  usage.memory_used_bytes = 40 * kGib;
  usage.memory_total_bytes = 80 * kGib;
  EXPECT_THAT(
      busy_notes(usage, kOwnPid, true),
      ElementsAre("this GPU was busy 50 % of the last moments, with work not visible from here",
                  "40.0 of 80.0 GiB of this GPU's memory were taken already, by programs not visible from here"));
  usage.busy_share = 0.05;
  usage.memory_used_bytes = kGib;
  EXPECT_THAT(busy_notes(usage, kOwnPid, true), IsEmpty());
}

TEST(BusyNotes, LoadIsOursWhereWeAreSeenAlone) {
  GpuUsage usage = used_by({{.pid = kOwnPid, .memory_bytes = {}, .name = "llmprof"}});
  usage.busy_share = 0.9;
  usage.memory_used_bytes = 40 * kGib;
  EXPECT_THAT(busy_notes(usage, kOwnPid, true), IsEmpty());
}

TEST(BusyNotes, ALimitedClock) {
  GpuUsage usage = used_by({});
  usage.clock_limits = {"power limit"};
  usage.sm_clock_mhz = 1200;
  EXPECT_THAT(busy_notes(usage, kOwnPid, true), ElementsAre("this GPU's clock is limited: power limit (1200 MHz now)"));
}

TEST(BusyNotes, WithoutADriverOneNoteSaysWhy) {
  const std::vector<std::string> notes = gpu_notes("ffff:ff:1f.7", false);  // no GPU is there on any machine
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("whether other programs use this GPU is not known: "));
}

}  // namespace
}  // namespace llmprof::hw
