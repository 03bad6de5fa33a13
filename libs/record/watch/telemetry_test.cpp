// The process that reads devices: its answers, and that nobody waits for a driver that hangs.

#include "record/watch/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "hw/gpu/nvml.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = WatchEvent::Kind;
using std::chrono::milliseconds;

// One GPU. A reading takes as much CPU time as it is told.
class FakeSource : public hw::TelemetrySource {
 public:
  explicit FakeSource(std::uint64_t cpu_ns = 0) : cpu_ns_(cpu_ns) {}
  const std::vector<hw::TelemetryDevice>& devices() const override { return devices_; }
  void read(hw::ReadGroup group, std::vector<hw::Reading>& into) override {
    if (group != hw::ReadGroup::kPower) return;
    burn();
    into.push_back({hw::MetricId::kPower, 3, 0, hw::raw_now_ns(), 250});
  }

 private:
  void burn() const {
    const auto cpu_now = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
    };
    for (const std::uint64_t end = cpu_now() + cpu_ns_; cpu_now() < end;) {
    }
  }
  std::uint64_t cpu_ns_;
  std::vector<hw::TelemetryDevice> devices_{{3, "gpu", "Toy GPU", 7, 8}};
};

class HangingSource : public FakeSource {
  void read(hw::ReadGroup, std::vector<hw::Reading>&) override { ::pause(); }
};

template <class Source, class... Arguments>
TelemetryOpen opens(Arguments... arguments) {
  return [=]() -> Result<std::unique_ptr<hw::TelemetrySource>> { return {std::make_unique<Source>(arguments...)}; };
}

std::vector<WatchEvent> of_kind(const std::vector<WatchEvent>& events, Kind kind) {
  std::vector<WatchEvent> found;
  std::ranges::copy_if(events, std::back_inserter(found), [&](const WatchEvent& e) { return e.kind == kind; });
  return found;
}

// Events until `enough` of a kind came. The tests have no other limit than that of the test runner.
std::vector<WatchEvent> wait_for(WatchChild& child, Kind kind, std::size_t enough) {
  std::vector<WatchEvent> events;
  while (of_kind(events, kind).size() < enough) {
    pollfd wait{child.descriptor(), POLLIN, 0};
    ::poll(&wait, 1, -1);
    std::ranges::move(child.receive(), std::back_inserter(events));
  }
  return events;
}

TEST(TelemetryChild, TellsItsDevicesThenReadsThem) {
  auto child = start_telemetry(opens<FakeSource>(), {.power_hz = 1000});
  ASSERT_TRUE(child);
  const std::vector<WatchEvent> events = wait_for(**child, Kind::kReading, 20);
  ASSERT_EQ(events[0].kind, Kind::kDevice);
  EXPECT_EQ(events[0].text, "Toy GPU");
  EXPECT_TRUE(events[0].is_gpu);
  EXPECT_EQ(events[0].device, 3u);
  EXPECT_EQ(events[0].uuid_high, 7u);
  EXPECT_EQ(events[0].uuid_low, 8u);
  std::uint64_t before = 0;
  for (const WatchEvent& event : of_kind(events, Kind::kReading)) {
    EXPECT_EQ(event.reading.device, 3u);
    EXPECT_GE(event.reading.ts_ns, before);  // in order of time
    before = event.reading.ts_ns;
    if (event.reading.metric == hw::MetricId::kPower) {
      EXPECT_EQ(event.reading.value, 250);
    }
  }
  EXPECT_TRUE((*child)->stop(milliseconds(60'000)));
  const std::vector<WatchEvent> last = (*child)->receive();
  ASSERT_FALSE(of_kind(last, Kind::kReading).empty());  // a last one
  EXPECT_GE(of_kind(last, Kind::kReading).back().reading.ts_ns, before);
}

TEST(TelemetryChild, WithoutADeviceItSaysWhyAndIsGone) {
  const auto none = []() -> Result<std::unique_ptr<hw::TelemetrySource>> {
    return Error{ErrorCode::kNotFound, "no driver", ""};
  };
  auto child = start_telemetry(none, {});
  ASSERT_TRUE(child);
  const auto events = wait_for(**child, Kind::kNone, 1);
  EXPECT_EQ(events[0].text, "no driver");
  EXPECT_TRUE((*child)->stop(milliseconds(60'000)));
}

TEST(TelemetryChild, ADriverThatHangsIsAbandoned) {
  auto hangs = start_telemetry(opens<HangingSource>(), {});
  ASSERT_TRUE(hangs);
  wait_for(**hangs, Kind::kDevice, 1);
  EXPECT_FALSE((*hangs)->stop(milliseconds(20)));
  EXPECT_TRUE((*hangs)->stop());  // a second time does nothing
  const auto never = []() -> Result<std::unique_ptr<hw::TelemetrySource>> {
    ::sleep(3600);
    return Error{};
  };
  auto opens_never = start_telemetry(never, {});
  ASSERT_TRUE(opens_never);
  EXPECT_FALSE((*opens_never)->stop(milliseconds(20)));
}

// 20 ms of CPU time per reading at half of 30 % of a core: 7.5 readings a second are affordable, not 100.
TEST(TelemetryChild, ReadingsThatCostMuchComeLessOftenAndThatIsSaid) {
  auto child = start_telemetry(opens<FakeSource>(20'000'000), {.power_hz = 100, .state_hz = 0.001, .share = 0.30});
  ASSERT_TRUE(child);
  const auto events = wait_for(**child, Kind::kReading, 6);
  ASSERT_TRUE((*child)->stop(milliseconds(60'000)));
  const auto slowed = of_kind((*child)->receive(), Kind::kSlowed);
  ASSERT_THAT(slowed, SizeIs(1));
  EXPECT_THAT(slowed[0].text, HasSubstr("power and energy: "));
  EXPECT_THAT(slowed[0].text, HasSubstr("readings a second, wanted 1e+02"));
}

struct Folder {
  Folder() {
    std::string pattern = "/tmp/llmprof_telemetry_XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    ::unlink((path + "/recorder.log").c_str());
    ::rmdir(path.c_str());
  }
  std::string path;
};

TEST(TelemetryWatch, WithoutADeviceNothingHappens) {
  const auto none = []() -> Result<std::unique_ptr<hw::TelemetrySource>> {
    return Error{ErrorCode::kNotFound, "no driver", ""};
  };
  Folder folder;
  auto log = host::HostLog::create(folder.path + "/recorder.log");
  ASSERT_TRUE(log);
  const std::uint64_t before = log->bytes();
  TelemetryWatch watch({}, none);
  watch.start();
  watch.stop();
  watch.receive();
  watch.write(*log);
  CaptureInfo info;
  watch.finish(info);
  EXPECT_THAT(info.losses, IsEmpty());
  ASSERT_TRUE(log->flush());
  EXPECT_EQ(log->bytes(), before);
}

TEST(TelemetryWatch, SwitchedOffNothingIsStarted) {
  TelemetryWatch watch({.on = false}, opens<HangingSource>());
  watch.start();
  EXPECT_FALSE(watch.receive());
  CaptureInfo info;
  watch.finish(info);
  EXPECT_THAT(info.losses, IsEmpty());
}

TEST(TelemetryWatch, AHangingDriverIsALoss) {
  TelemetryWatch watch({}, opens<HangingSource>());
  watch.start();
  while (!watch.receive()) ::usleep(1000);  // its device is known
  CaptureInfo info;
  watch.finish(info);
  ASSERT_THAT(info.losses, SizeIs(1));
  EXPECT_EQ(info.losses[0].name, trace::Loss::kTelemetryStopped);
  EXPECT_EQ(info.losses[0].detail, "the driver did not answer at the end");
}

}  // namespace
}  // namespace llmprof::record
