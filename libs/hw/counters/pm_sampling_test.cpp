// Samples of a device without end: what is dropped, when sampling begins again, what an overflow teaches.

#include "hw/counters/pm_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "hw/counters/chip_host.h"

namespace llmprof::hw::counters {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kPeriodNs = 1000;

// A clock of samples: each decode brings those of the time since, the first after a start being ten times as long.
struct FakeDevice : PmDevice {
  explicit FakeDevice(std::size_t fits) : most(fits) {}
  Result<void> start() override {
    ++starts;
    running = true;
    held = 0;
    now_ns += 7000;  // starting takes its time
    return {};
  }
  Result<void> stop() override {
    ++stops;
    running = false;
    return {};
  }
  Result<Batch> decode() override {
    if (fails) return Error{ErrorCode::kUnsupported, "broken", ""};
    Batch batch;
    for (; ready > 0 && batch.samples.size() < at_once; --ready, ++held) {
      const std::uint64_t length_ns = held == 0 ? 10 * kPeriodNs : kPeriodNs;
      if (held < room) batch.samples.push_back({now_ns, now_ns + length_ns, {static_cast<double>(held)}});
      now_ns += length_ns;
    }
    batch.more = ready > 0;
    batch.overflow = held > room;
    return batch;
  }
  std::size_t most_samples() const override { return most; }

  std::size_t most, room = 1'000'000, at_once = 1000, ready = 0, held = 0;
  std::uint64_t now_ns = 1'000'000;
  int starts = 0, stops = 0;
  bool running = false, fails = false;
};

struct Fixture {
  explicit Fixture(std::size_t most) {
    auto owned = std::make_unique<FakeDevice>(most);
    device = owned.get();
    PmDeviceInfo info;
    info.period = std::chrono::nanoseconds(kPeriodNs);
    sampler = std::make_unique<PmSampler>(std::move(info), std::move(owned));
    EXPECT_TRUE(sampler->start());
  }
  std::vector<PmSample> poll(std::size_t ready, bool last = false) {
    device->ready = ready;
    auto samples = sampler->poll(last);
    EXPECT_TRUE(samples);
    return samples ? *samples : std::vector<PmSample>{};
  }
  FakeDevice* device;
  std::unique_ptr<PmSampler> sampler;
};

TEST(PmSampler, TheFirstSampleIsDroppedAndSeveralTurnsAreOne) {
  Fixture all(10'000);
  all.device->at_once = 4;
  const auto samples = all.poll(10);
  ASSERT_THAT(samples, SizeIs(9));
  EXPECT_THAT(samples[0].values, ElementsAre(1));
  // 1,000,000 and the start's 7,000, then the long first sample.
  EXPECT_EQ(samples[0].begin_ns, 1'017'000u);
  EXPECT_EQ(samples[8].end_ns, 1'026'000u);
  EXPECT_EQ(all.sampler->tally().samples, 9u);
}

TEST(PmSampler, BeginsAgainBeforeTheBufferCanBeFull) {
  Fixture all(1000);
  EXPECT_EQ(all.sampler->longest_apart(), std::chrono::nanoseconds(500 * kPeriodNs));
  all.poll(400);
  EXPECT_EQ(all.device->starts, 1);
  all.poll(400);  // 800: with another 400 it would be over 1000
  EXPECT_EQ(all.device->starts, 2);
  EXPECT_EQ(all.device->stops, 1);
  const auto after = all.poll(5);
  ASSERT_THAT(after, SizeIs(4));  // again without the first
  EXPECT_EQ(all.sampler->tally().restarts, 1u);
  EXPECT_EQ(all.sampler->tally().gap_ns, 17'000u);  // the start and the sample that was dropped
  EXPECT_EQ(all.sampler->tally().overflows, 0u);
}

TEST(PmSampler, AnOverflowIsCountedAndTeachesHowMuchFits) {
  Fixture all(1000);
  all.device->room = 300;
  all.poll(400);
  EXPECT_EQ(all.sampler->tally().overflows, 1u);
  EXPECT_EQ(all.sampler->tally().samples, 299u);
  EXPECT_EQ(all.device->starts, 2);
  // 300 samples came: from now on at most 150, read by halves.
  EXPECT_EQ(all.sampler->longest_apart(), std::chrono::nanoseconds(75 * kPeriodNs));
  all.poll(80);
  EXPECT_EQ(all.device->starts, 3);
}

TEST(PmSampler, APauseKeepsWhatItFoundAndTheLastPollEnds) {
  Fixture all(1000);
  all.device->ready = 10;
  all.sampler->pause();
  EXPECT_FALSE(all.device->running);
  EXPECT_THAT(all.poll(0), SizeIs(9));
  EXPECT_TRUE(all.sampler->start());
  EXPECT_THAT(all.poll(5, true), SizeIs(4));
  EXPECT_FALSE(all.device->running);
  EXPECT_THAT(all.poll(5, true), IsEmpty());
}

TEST(PmSampler, AFailureIsHandedOn) {
  Fixture all(1000);
  all.device->fails = true;
  const auto samples = all.sampler->poll();
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().message, "broken");
}

TEST(PmRefusal, SaysWhatAnErrorOfCuptiMeans) {
  EXPECT_EQ(refusal_of({"x", 35}), PmRefusal::kForbidden);  // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
  EXPECT_EQ(refusal_of({"x", 40}), PmRefusal::kForbidden);  // ..._VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
  EXPECT_EQ(refusal_of({"x", 26}), PmRefusal::kHeld);       // ..._HARDWARE_BUSY
  EXPECT_EQ(refusal_of({"x", 27}), PmRefusal::kUnsupported);
  EXPECT_EQ(refusal_of({"x", 43}), PmRefusal::kUnsupported);  // ..._MIG_DEVICE_NOT_SUPPORTED
  EXPECT_EQ(refusal_of({"x", 999}), PmRefusal::kFailed);
}

class CounterAccess : public testing::Test {
 protected:
  CounterAccess() { root_ = ::mkdtemp(pattern_.data()); }
  ~CounterAccess() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string pattern_ = "/tmp/llmprof_access_XXXXXX";
  std::string root_;
};

TEST_F(CounterAccess, NamesTheSettingAndTheRightsOfTheProcess) {
  EXPECT_THAT(restriction(SystemFiles(root_)), HasSubstr("params cannot be read here"));
  write("proc/driver/nvidia/params", "RmNonsense: 3\nRmProfilingAdminOnly: 1\n");
  write("proc/self/status", "CapEff:\t0000000000000000\n");
  EXPECT_EQ(restriction(SystemFiles(root_)),
            "RmProfilingAdminOnly: 1 in /proc/driver/nvidia/params; this process is not privileged");
  write("proc/self/status", "CapEff:\t0000000000200000\n");  // CAP_SYS_ADMIN is bit 21
  EXPECT_THAT(restriction(SystemFiles(root_)), HasSubstr("; this process is privileged"));
}

TEST_F(CounterAccess, NamesWhoIsKnownToHoldCounters) {
  write("proc/17/comm", "bash\n");
  EXPECT_EQ(likely_holders(SystemFiles(root_)), "");
  write("proc/4711/comm", "nv-hostengine\n");
  EXPECT_EQ(likely_holders(SystemFiles(root_)), "nv-hostengine (pid 4711)");
}

}  // namespace
}  // namespace llmprof::hw::counters
