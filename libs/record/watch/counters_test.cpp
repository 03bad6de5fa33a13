// Samples of hardware counters through a process of their own into the recorder's log, with devices made up here.

#include "record/watch/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "record/log/reader.h"

namespace llmprof::record {
namespace {

using hw::counters::PmDevice;
using hw::counters::PmDeviceInfo;
using hw::counters::PmDevices;
using hw::counters::PmRefusal;
using hw::counters::PmSampler;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Kind = WatchEvent::Kind;
using std::chrono::milliseconds;

constexpr std::uint64_t kMs = 1'000'000;

// Three samples of a millisecond at every reading, the newest of which ended just now.
struct FakeDevice : PmDevice {
  Result<void> start() override { return {}; }
  Result<void> stop() override {
    if (hangs) ::pause();
    return {};
  }
  Result<Batch> decode() override {
    if (failures > 0) {
      --failures;
      return Error{ErrorCode::kUnsupported, "broken", ""};
    }
    Batch batch;
    const auto now = static_cast<std::uint64_t>(read_clocks().wall_ns);
    for (std::uint64_t i = 3; i > 0; --i) {
      batch.samples.push_back({now - i * kMs, now - (i - 1) * kMs, {static_cast<double>(i), 0.5}});
    }
    return batch;
  }
  std::size_t most_samples() const override { return 1'000'000; }
  bool hangs = false;
  int failures = 0;
};

PmDevices one_device(bool hangs = false, int failures = 0) {
  PmDevices devices;
  PmDeviceInfo info;
  info.device = 2;
  info.name = "Toy GPU";
  info.uuid_high = 7;
  info.uuid_low = 8;
  info.metrics = {"dram__bytes.sum", "sm__active.avg"};
  info.period = milliseconds(1);
  auto device = std::make_unique<FakeDevice>();
  device->hangs = hangs;
  device->failures = failures;
  devices.samplers.push_back(std::make_unique<PmSampler>(std::move(info), std::move(device)));
  return devices;
}

constexpr CounterPace kQuick{.share = 0.9, .shortest = milliseconds(1), .longest = milliseconds(2)};
constexpr milliseconds kPatient{60'000};

std::vector<WatchEvent> of_kind(const std::vector<WatchEvent>& events, Kind kind) {
  std::vector<WatchEvent> found;
  std::ranges::copy_if(events, std::back_inserter(found), [&](const WatchEvent& e) { return e.kind == kind; });
  return found;
}

std::vector<WatchEvent> wait_for(WatchChild& child, Kind kind, std::size_t enough) {
  std::vector<WatchEvent> events;
  while (of_kind(events, kind).size() < enough) {
    pollfd wait{child.descriptor(), POLLIN, 0};
    ::poll(&wait, 1, -1);
    std::ranges::move(child.receive(), std::back_inserter(events));
  }
  return events;
}

TEST(CounterChild, TellsItsDeviceAndMetricsThenItsSamplesOnOurClock) {
  auto child = start_counters([] { return one_device(); }, kQuick);
  ASSERT_TRUE(child);
  const auto before = static_cast<std::uint64_t>(read_clocks().raw_ns);
  const auto events = wait_for(**child, Kind::kSample, 10);
  const auto after = static_cast<std::uint64_t>(read_clocks().raw_ns);
  EXPECT_EQ(events[0].kind, Kind::kDevice);
  EXPECT_EQ(events[0].text, "Toy GPU");
  EXPECT_EQ(events[0].device, 2u);
  EXPECT_EQ(events[1].text, "dram__bytes.sum");
  EXPECT_EQ(events[2].text, "sm__active.avg");
  const auto samples = of_kind(events, Kind::kSample);
  EXPECT_THAT(samples[0].values, ElementsAre(2, 0.5));  // the very first was dropped
  for (const WatchEvent& sample : samples) {
    // The fake's times are of the wall's clock; they must be ours now, up to what reading two clocks may be off.
    EXPECT_GT(sample.end_ns + kMs, before);
    EXPECT_LT(sample.end_ns, after + kMs);
    EXPECT_NEAR(static_cast<double>(sample.end_ns - sample.begin_ns), 1e6, 2e3);
  }
  EXPECT_TRUE((*child)->stop(kPatient));
  EXPECT_THAT(of_kind((*child)->receive(), Kind::kNote).back().text, HasSubstr("of CPU time"));
}

TEST(CounterChild, OneThatHangsIsAbandoned) {
  auto child = start_counters([] { return one_device(true); }, kQuick);
  ASSERT_TRUE(child);
  wait_for(**child, Kind::kSample, 1);
  EXPECT_FALSE((*child)->stop(milliseconds(20)));
  auto never = start_counters(
      [] {
        ::sleep(3600);
        return PmDevices{};
      },
      kQuick);
  ASSERT_TRUE(never);
  EXPECT_FALSE((*never)->stop(milliseconds(20)));
}

TEST(CounterChild, AReadingThatFailsIsSaidAndTheNextOnesAreTaken) {
  auto child = start_counters([] { return one_device(false, 2); }, kQuick);
  ASSERT_TRUE(child);
  const auto events = wait_for(**child, Kind::kSample, 10);
  const auto losses = of_kind(events, Kind::kLoss);
  ASSERT_THAT(losses, SizeIs(1));  // the second failure is that of the pause before beginning again
  EXPECT_EQ(losses[0].loss, trace::Loss::kCountersFailed);
  EXPECT_EQ(losses[0].text, "broken");
  EXPECT_TRUE((*child)->stop(kPatient));
  // Again and again is too much.
  auto useless = start_counters([] { return one_device(false, 1000); }, kQuick);
  ASSERT_TRUE(useless);
  const auto said = wait_for(**useless, Kind::kLoss, 4);
  EXPECT_THAT(of_kind(said, Kind::kLoss)[3].text, HasSubstr("samples of GPU 2: broken"));
  EXPECT_TRUE((*useless)->stop(kPatient));
}

TEST(CounterMessage, AWholeEventOrNone) {
  WatchEvent sample;
  sample.device = 3;
  sample.begin_ns = 5;
  sample.end_ns = 6;
  sample.values = {1, std::numeric_limits<double>::infinity()};
  WatchEvent loss;
  loss.kind = Kind::kLoss;
  loss.loss = trace::Loss::kCountersHeld;
  loss.count = 9;
  loss.text = "by somebody";
  std::string bytes;
  append(bytes, sample);
  append(bytes, loss);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    std::string_view left(bytes.data(), cut);
    WatchEvent event;
    int whole = 0;
    while (take(left, event)) ++whole;
    EXPECT_LE(whole, 1);
  }
  std::string_view left = bytes;
  WatchEvent event;
  ASSERT_TRUE(take(left, event));
  EXPECT_EQ(event.end_ns, 6u);
  EXPECT_THAT(event.values, ElementsAre(1, std::numeric_limits<double>::infinity()));
  ASSERT_TRUE(take(left, event));
  EXPECT_EQ(event.loss, trace::Loss::kCountersHeld);
  EXPECT_EQ(event.text, "by somebody");
  EXPECT_TRUE(left.empty());
}

TEST(ClockTrack, FollowsASteeredClockAndOneThatWasSet) {
  constexpr std::int64_t kS = 1'000'000'000;
  ClockTrack track;
  track.add({.raw_ns = 0, .wall_ns = 1000 * kS});
  EXPECT_EQ(track.raw_ns(1000 * kS - 5), -5);
  // The wall's clock runs 500 ppm fast: two raw seconds are 2.001 on the wall.
  track.add({.raw_ns = 2 * kS, .wall_ns = 1002 * kS + kS / 1000});
  EXPECT_NEAR(static_cast<double>(track.raw_ns(1001 * kS + kS / 2000)), 1e9, 2);
  track.add({.raw_ns = 2 * kS + 1000, .wall_ns = 1002 * kS + kS / 1000 + 9000});  // at once: its error says nothing
  EXPECT_NEAR(static_cast<double>(track.raw_ns(1001 * kS + kS / 2000)), 1e9, 1e4);
  // An hour back: times before the last pair keep its distance.
  track.add({.raw_ns = 4 * kS, .wall_ns = -2600 * kS});
  EXPECT_EQ(track.raw_ns(-2601 * kS), 3 * kS);
}

TEST(CounterPacer, ReadsLessOftenWhereItCostsMoreAndRestsWhereThatIsNotEnough) {
  CounterPacer pacer(0.10, 500 * kMs, 2000 * kMs);
  EXPECT_EQ(pacer.wait_ns(), 500 * kMs);
  pacer.took(500 * kMs, 100 * kMs);  // 20 %
  EXPECT_EQ(pacer.wait_ns(), 750 * kMs);
  EXPECT_EQ(pacer.rest_ns(), 0u);
  pacer.took(750 * kMs, 60 * kMs);  // 8 %: neither too much nor little
  EXPECT_EQ(pacer.wait_ns(), 750 * kMs);
  pacer.took(750 * kMs, 15 * kMs);  // 2 %
  EXPECT_EQ(pacer.wait_ns(), 500 * kMs);
  for (int i = 0; i < 5; ++i) pacer.took(500 * kMs, 100 * kMs);
  EXPECT_EQ(pacer.wait_ns(), 2000 * kMs);
  // 300 ms for 2 s: 10 % would be 3 s, so one of rest.
  pacer.took(2000 * kMs, 300 * kMs);
  EXPECT_EQ(pacer.rest_ns(), 1000 * kMs);
  pacer.took(2000 * kMs, 190 * kMs);
  EXPECT_EQ(pacer.rest_ns(), 0u);
}

struct Folder {
  Folder() {
    std::string pattern = "/tmp/llmprof_counters_XXXXXX";
    path = ::mkdtemp(pattern.data());
    log = path + "/recorder.log";
  }
  ~Folder() {
    ::unlink(log.c_str());
    ::rmdir(path.c_str());
  }
  std::string path, log;
};

struct Records : LogSink {
  void receive(wire::RecordKind kind, std::uint32_t, std::span<const wire::Record> records) override {
    for (const wire::Record& record : records) {
      if (kind == wire::RecordKind::kCounterWindow) windows.push_back(record.counter_window);
      if (kind == wire::RecordKind::kCounter) values.push_back(record.counter);
      if (kind == wire::RecordKind::kTelemetryDevice) devices.push_back(record.telemetry_device);
    }
  }
  void define(wire::StringId id, std::string_view text) override { names[id] = text; }
  void gap() override {}
  std::map<wire::StringId, std::string> names;
  std::vector<wire::CounterWindowRecord> windows;
  std::vector<wire::CounterRecord> values;
  std::vector<wire::TelemetryDeviceRecord> devices;
};

TEST(CounterSampler, WritesWindowsAndTheirValues) {
  CounterOptions options;
  options.set = "light";
  options.method = CounterMethod::kSampled;
  CounterSampler sampler(options, [] { return one_device(); });
  sampler.start();
  Folder folder;
  {
    auto log = host::HostLog::create(folder.log);
    ASSERT_TRUE(log);
    ::usleep(1000);
    sampler.stop();  // the last samples come at the end, whenever that is
    ASSERT_TRUE(sampler.receive());
    sampler.write(*log);
    ASSERT_TRUE(log->flush());
  }
  EXPECT_FALSE(sampler.refused());
  auto reader = LogReader::open(folder.log);
  ASSERT_TRUE(reader);
  Records records;
  ASSERT_TRUE(reader->read(records, base::no_progress));
  ASSERT_THAT(records.devices, SizeIs(1));
  EXPECT_EQ(records.devices[0].uuid_low, 8u);
  EXPECT_EQ(records.names[records.devices[0].name], "Toy GPU");
  // At least a reading of three, of which the first is dropped, and three at the end.
  ASSERT_GE(records.windows.size(), 5u);
  ASSERT_EQ(records.values.size(), 2 * records.windows.size());
  for (std::size_t i = 0; i < records.windows.size(); ++i) {
    const wire::CounterWindowRecord& window = records.windows[i];
    EXPECT_EQ(window.measurement, i + 1);
    EXPECT_EQ(window.device, records.devices[0].device);
    EXPECT_EQ(window.scope, wire::CounterScope::kSample);
    EXPECT_EQ(window.passes, 1);
    EXPECT_EQ(records.values[2 * i].measurement, i + 1);
    EXPECT_EQ(records.names[records.values[2 * i].metric], "dram__bytes.sum");
    EXPECT_EQ(records.names[records.values[2 * i + 1].metric], "sm__active.avg");
    EXPECT_EQ(records.values[2 * i + 1].value, 0.5);
  }
  CaptureInfo info;
  sampler.finish(info);
  EXPECT_TRUE(info.losses.empty());
}

CounterOpen refuses(PmRefusal refusal, std::string text) {
  return [=] {
    PmDevices devices;
    devices.problems.push_back({refusal, text});
    devices.unknown = {"nonsense__cycles.sum"};
    devices.left_out = {"l1tex__hits.sum"};
    devices.not_sampled = {"l2_bytes", "flops"};
    return devices;
  };
}

TEST(CounterSampler, WhatIsForbiddenIsSaidAndAsksForNvml) {
  CounterOptions options;
  options.set = "light";
  options.method = CounterMethod::kSampled;
  CounterSampler sampler(options, refuses(PmRefusal::kForbidden, "RmProfilingAdminOnly: 1"));
  sampler.start();
  while (!sampler.refused()) {
    sampler.receive();
    ::usleep(1000);
  }
  CaptureInfo info;
  sampler.finish(info);
  ASSERT_THAT(info.losses, SizeIs(4));
  EXPECT_EQ(info.losses[0].name, trace::Loss::kCountersForbidden);
  EXPECT_EQ(info.losses[0].detail, "RmProfilingAdminOnly: 1");
  EXPECT_EQ(info.losses[1].name, trace::Loss::kCounterUnknown);
  EXPECT_EQ(info.losses[1].detail, "nonsense__cycles.sum");
  EXPECT_EQ(info.losses[2].count, 2);
  EXPECT_EQ(info.losses[2].detail, "samples do not offer l2_bytes, flops");
  EXPECT_EQ(info.losses[3].name, trace::Loss::kCountersSkipped);
  EXPECT_THAT(info.losses[3].detail, HasSubstr("l1tex__hits.sum: needs a pass of its own"));
}

TEST(CounterSampler, NothingIsStartedWhereNothingIsToBeSampled) {
  for (const CounterMethod method : {CounterMethod::kAutomatic, CounterMethod::kRange, CounterMethod::kKernel}) {
    CounterOptions options;
    options.set = "light";
    options.method = method;
    CounterSampler sampler(options, refuses(PmRefusal::kHeld, ""));
    sampler.start();
    EXPECT_FALSE(sampler.receive());
    CaptureInfo info;
    sampler.finish(info);
    EXPECT_TRUE(info.losses.empty());
  }
}

}  // namespace
}  // namespace llmprof::record
