#include "hw/telemetry/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "hw/gpu/nvml.h"
#include "hw/in_child.h"
#include "hw/testing/fake_machine.h"

namespace llmprof::hw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

NvmlDevice* device(unsigned number) { return reinterpret_cast<NvmlDevice*>(std::uintptr_t{16} + number); }

// A driver with one GPU; every answer can be replaced.
struct FakeDriver {
  static inline unsigned gpus, mig, field_calls, lost_after, gpm_samples;
  static inline int power_status;

  static void reset() {
    gpus = 1;
    mig = field_calls = gpm_samples = 0;
    lost_after = ~0u;
    power_status = kNvmlSuccess;
  }

  static NvmlApi least() {
    reset();
    NvmlApi nvml;
    nvml.init = [] { return kNvmlSuccess; };
    nvml.count = [](unsigned* count) { return *count = gpus, kNvmlSuccess; };
    nvml.handle = [](unsigned index, NvmlDevice** handle) { return *handle = device(index), kNvmlSuccess; };
    nvml.error_string = [](int status) { return status == kNvmlGpuIsLost ? "GPU is lost" : "Unknown Error"; };
    return nvml;
  }

  static NvmlApi full() {
    NvmlApi nvml = least();
    nvml.name = [](NvmlDevice*, char* text, unsigned) { return std::strcpy(text, "Toy H200"), kNvmlSuccess; };
    nvml.uuid = [](NvmlDevice*, char* text, unsigned) {
      return std::strcpy(text, "GPU-00112233-4455-6677-8899-aabbccddeeff"), kNvmlSuccess;
    };
    nvml.mig_mode = [](NvmlDevice*, unsigned* now, unsigned* pending) { return *now = *pending = mig, kNvmlSuccess; };
    nvml.fields = [](NvmlDevice*, int count, NvmlFieldValue* fields) {
      if (++field_calls > lost_after) return kNvmlGpuIsLost;
      for (int i = 0; i < count; ++i) {
        NvmlFieldValue& field = fields[i];
        field.status = kNvmlSuccess;
        if (field.field == kFieldPower) field.type = 1, field.number = 412'500, field.status = power_status;  // mW
        if (field.field == kFieldEnergy) field.type = 3, field.large = 9'000'000'123;                         // mJ
        if (field.field == info_of(MetricId::kMemoryTemperature).field) field.type = 1, field.number = 61;
      }
      return kNvmlSuccess;
    };
    nvml.power = [](NvmlDevice*, unsigned* milliwatts) { return *milliwatts = 300'000, kNvmlSuccess; };
    nvml.power_limit = [](NvmlDevice*, unsigned* milliwatts) { return *milliwatts = 700'000, kNvmlSuccess; };
    nvml.clock = [](NvmlDevice*, unsigned which, unsigned* mhz) {
      return *mhz = which == kNvmlClockSm ? 1755 : 3201, kNvmlSuccess;
    };
    nvml.temperature = [](NvmlDevice*, unsigned, unsigned* celsius) { return *celsius = 54, kNvmlSuccess; };
    nvml.utilization = [](NvmlDevice*, NvmlUtilization* used) { return *used = {97, 38}, kNvmlSuccess; };
    nvml.memory = [](NvmlDevice*, NvmlMemory* memory) { return *memory = {1000, 400, 600}, kNvmlSuccess; };
    nvml.performance_state = [](NvmlDevice*, unsigned* state) { return *state = 0, kNvmlSuccess; };
    nvml.clock_reasons = [](NvmlDevice*, unsigned long long* bits) { return *bits = 0x4, kNvmlSuccess; };
    nvml.link_generation = [](NvmlDevice*, unsigned* value) { return *value = 5, kNvmlSuccess; };
    nvml.link_width = [](NvmlDevice*, unsigned* value) { return *value = 16, kNvmlSuccess; };
    nvml.link_traffic = [](NvmlDevice*, unsigned which, unsigned* kb) {
      return *kb = which == 0 ? 2 : 3, kNvmlSuccess;
    };
    nvml.processes = [](NvmlDevice*, unsigned* count, NvmlProcess* found) {
      *count = 2;
      found[0] = {41, 500, 0, 0};
      found[1] = {42, ~0ull, 0, 0};  // its memory is not told
      return kNvmlSuccess;
    };
    return nvml;
  }
};

std::map<std::string, double> read_all(TelemetrySource& source, ReadGroup group) {
  std::vector<Reading> readings;
  source.read(group, readings);
  std::map<std::string, double> values;
  for (const Reading& reading : readings) {
    EXPECT_GT(reading.ts_ns, 0u);
    EXPECT_TRUE(values.emplace(info_of(reading.metric).name, reading.value).second) << "twice in one reading";
  }
  return values;
}

TEST(Metrics, HaveNamesOfTheirOwnAndAreFoundByThem) {
  std::set<std::string_view> names;
  for (const Metric& metric : metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_FALSE(metric.meaning.empty()) << metric.name;
    EXPECT_EQ(find_metric(metric.name), &metric);
  }
  EXPECT_EQ(find_metric("nothing"), nullptr);
  EXPECT_EQ(info_of(MetricId::kSamplerCpu).name, "sampler_cpu_s");  // the last: none is missing in between
}

TEST(Uuid, SixteenBytesOrNothing) {
  std::uint64_t high = 0, low = 0;
  EXPECT_TRUE(parse_uuid("GPU-00112233-4455-6677-8899-aabbccddeeff", high, low));
  EXPECT_EQ(high, 0x0011223344556677u);
  EXPECT_EQ(low, 0x8899aabbccddeeffu);
  for (const char* bad : {"", "GPU-", "GPU-0011", "GPU-00112233-4455-6677-8899-aabbccddeeff0", "MIG-x"}) {
    EXPECT_FALSE(parse_uuid(bad, high, low)) << bad;
  }
}

TEST(NvmlSource, UnitsAreOurs) {
  const auto source = nvml_source(FakeDriver::full());
  ASSERT_TRUE(source);
  ASSERT_EQ((*source)->devices().size(), 1u);
  const TelemetryDevice& gpu = (*source)->devices()[0];
  EXPECT_EQ(gpu.name, "Toy H200");
  EXPECT_EQ(gpu.kind, "gpu");
  EXPECT_EQ(gpu.uuid_high, 0x0011223344556677u);
  EXPECT_THAT(read_all(**source, ReadGroup::kPower),
              UnorderedElementsAre(Pair("power_w", 412.5), Pair("energy_j", 9'000'000.123)));
  EXPECT_EQ(FakeDriver::field_calls, 1u);  // both in one call
  EXPECT_THAT(read_all(**source, ReadGroup::kState),
              UnorderedElementsAre(
                  Pair("sm_clock_mhz", 1755), Pair("memory_clock_mhz", 3201), Pair("temperature_c", 54),
                  Pair("memory_temperature_c", 61), Pair("gpu_utilization", 97), Pair("memory_utilization", 38),
                  Pair("memory_used_bytes", 600), Pair("memory_total_bytes", 1000), Pair("performance_state", 0),
                  Pair("clock_limits", 4), Pair("pcie_generation", 5), Pair("pcie_width", 16)));
  EXPECT_THAT(read_all(**source, ReadGroup::kActivity),
              UnorderedElementsAre(Pair("pcie_sent_bytes_per_s", 2048), Pair("pcie_received_bytes_per_s", 3072)));
  EXPECT_THAT(read_all(**source, ReadGroup::kLimits), UnorderedElementsAre(Pair("power_limit_w", 700)));
  std::vector<Reading> processes;
  (*source)->read(ReadGroup::kProcesses, processes);
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].pid, 41u);
  EXPECT_EQ(processes[0].value, 500);
  EXPECT_THAT((*source)->take_notes(), IsEmpty());
}

TEST(NvmlSource, EveryCallIsTimed) {
  const auto source = nvml_source(FakeDriver::full());
  ASSERT_TRUE(source);
  read_all(**source, ReadGroup::kPower);
  read_all(**source, ReadGroup::kPower);
  const std::vector<CallCost> costs = (*source)->costs();
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_EQ(costs[0].call, "GetFieldValues");
  EXPECT_EQ(costs[0].calls, 2u);
}

// 3 ms of CPU time for power and energy together: power is asked for every fifth time only.
TEST(NvmlSource, WherePowerIsDearItIsAskedForLessOften) {
  NvmlApi nvml = FakeDriver::full();
  nvml.fields = [](NvmlDevice*, int count, NvmlFieldValue* fields) {
    const auto cpu_ns = [] {
      timespec time{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return time.tv_sec * 1'000'000'000 + time.tv_nsec;
    };
    for (int i = 0; i < count; ++i) fields[i].type = 1, fields[i].number = 1000, fields[i].status = kNvmlSuccess;
    for (const auto end = cpu_ns() + (count == 2 ? 3'000'000 : 0); cpu_ns() < end;) {
    }
    return kNvmlSuccess;
  };
  const auto source = nvml_source(nvml);
  std::vector<std::size_t> readings;
  for (int i = 0; i < 12; ++i) readings.push_back(read_all(**source, ReadGroup::kPower).size());
  EXPECT_THAT(readings, ElementsAre(2, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2));
}

TEST(NvmlSource, OldDriversTellLess) {
  const auto bare = nvml_source(FakeDriver::least());
  ASSERT_TRUE(bare);
  for (std::size_t group = 0; group < kReadGroups; ++group) {
    EXPECT_THAT(read_all(**bare, static_cast<ReadGroup>(group)), IsEmpty());
  }
  NvmlApi nvml = FakeDriver::full();
  FakeDriver::power_status = kNvmlNotSupported;  // the field, not the call
  const auto source = nvml_source(nvml);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(read_all(**source, ReadGroup::kPower),
                UnorderedElementsAre(Pair("power_w", 300), Pair("energy_j", 9'000'000.123)));
  }
  nvml = FakeDriver::full();
  nvml.fields = nullptr;
  nvml.energy = [](NvmlDevice*, unsigned long long* millijoules) { return *millijoules = 5000, kNvmlSuccess; };
  EXPECT_THAT(read_all(**nvml_source(nvml), ReadGroup::kPower),
              UnorderedElementsAre(Pair("power_w", 300), Pair("energy_j", 5)));
}

TEST(NvmlSource, WhatIsNotSupportedIsAskedOnce) {
  NvmlApi nvml = FakeDriver::least();
  static int asked;
  asked = 0;
  nvml.temperature = [](NvmlDevice*, unsigned, unsigned*) { return ++asked, kNvmlNotSupported; };
  const auto source = nvml_source(nvml);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(read_all(**source, ReadGroup::kState), IsEmpty());
  EXPECT_EQ(asked, 1);
  EXPECT_THAT((*source)->take_notes(), IsEmpty());  // nobody misses what this GPU does not have
}

TEST(NvmlSource, WhatKeepsFailingIsGivenUpAndSaid) {
  NvmlApi nvml = FakeDriver::least();
  static int asked;
  asked = 0;
  nvml.temperature = [](NvmlDevice*, unsigned, unsigned*) { return ++asked, 999; };
  const auto source = nvml_source(nvml);
  for (int i = 0; i < 9; ++i) EXPECT_THAT(read_all(**source, ReadGroup::kState), IsEmpty());
  EXPECT_EQ(asked, 5);
  EXPECT_THAT((*source)->take_notes(), ElementsAre("nvmlDeviceGetTemperature of GPU 0 is asked no more, it failed 5 "
                                                   "times in a row: Unknown Error"));
  EXPECT_THAT((*source)->take_notes(), IsEmpty());  // once
}

TEST(NvmlSource, ALostGpuIsSaidOnceAndLeftAlone) {
  const auto source = nvml_source(FakeDriver::full());
  FakeDriver::lost_after = 1;
  EXPECT_EQ(read_all(**source, ReadGroup::kPower).size(), 2u);
  EXPECT_THAT(read_all(**source, ReadGroup::kPower), IsEmpty());
  EXPECT_THAT(read_all(**source, ReadGroup::kState), IsEmpty());
  EXPECT_THAT(read_all(**source, ReadGroup::kProcesses), IsEmpty());
  EXPECT_EQ(FakeDriver::field_calls, 2u);
  EXPECT_THAT((*source)->take_notes(), ElementsAre("GPU 0 is read no more: GPU is lost"));
}

TEST(NvmlSource, DividedGpusAreNotReadAndThatIsSaid) {
  const NvmlApi nvml = FakeDriver::full();
  FakeDriver::mig = 1;
  const auto source = nvml_source(nvml);
  EXPECT_THAT((*source)->devices(), IsEmpty());
  EXPECT_THAT((*source)->take_notes(), ElementsAre(HasSubstr("GPU 0 is divided into MIG instances")));
}

TEST(NvmlSource, NoDriverNoGpuSaysWhy) {
  NvmlApi nvml = FakeDriver::least();
  FakeDriver::gpus = 0;
  EXPECT_EQ(nvml_source(nvml).error().message, "NVML shows no GPU");
  nvml.init = [] { return 9; };
  nvml.error_string = nullptr;
  EXPECT_EQ(nvml_source(nvml).error().message, "NVML does not start: NVML status 9");
}

NvmlApi with_gpm() {
  NvmlApi nvml = FakeDriver::least();
  nvml.gpm_support = [](NvmlDevice*, NvmlGpmSupport* support) {
    return support->supported = support->version == 1 ? 1 : 0, kNvmlSuccess;
  };
  nvml.gpm_allocate = [](void** sample) {
    static int buffers[8];
    static int next = 0;
    return *sample = &buffers[next++ % 8], kNvmlSuccess;
  };
  nvml.gpm_sample = [](NvmlDevice*, void* sample) {
    *static_cast<int*>(sample) = static_cast<int>(++FakeDriver::gpm_samples);
    return kNvmlSuccess;
  };
  nvml.gpm_metrics = [](NvmlGpmMetrics* metrics) {
    EXPECT_EQ(metrics->version, 1u);
    EXPECT_EQ(*static_cast<int*>(metrics->second) - *static_cast<int*>(metrics->first), 1);  // older one first
    for (unsigned i = 0; i < metrics->count; ++i) {
      NvmlGpmMetric& metric = metrics->metrics[i];
      metric.value = metric.id == 12 ? NAN : metric.id;
      metric.status = metric.id == 11 ? kNvmlNotSupported : kNvmlSuccess;
    }
    return kNvmlSuccess;
  };
  return nvml;
}

TEST(NvmlSource, ActivityIsBetweenTwoSamplesThatAreFarEnoughApart) {
  const auto source = nvml_source(with_gpm());
  EXPECT_THAT(read_all(**source, ReadGroup::kActivity), IsEmpty());  // the first sample
  EXPECT_THAT(read_all(**source, ReadGroup::kActivity), IsEmpty());  // too soon
  EXPECT_EQ(FakeDriver::gpm_samples, 1u);
  ::usleep(101'000);
  // Each metric is its id here; 11 is not supported and 12 not a number; MiB/s are 2^20 B/s.
  constexpr double kMib = 1 << 20;
  const auto expected = UnorderedElementsAre(
      Pair("sm_active", 2), Pair("sm_occupancy", 3), Pair("tensor_active", 5), Pair("dram_active", 10),
      Pair("fp16_active", 13), Pair("pcie_sent_bytes_per_s", 20 * kMib), Pair("pcie_received_bytes_per_s", 21 * kMib),
      Pair("nvlink_received_bytes_per_s", 60 * kMib), Pair("nvlink_sent_bytes_per_s", 61 * kMib));
  EXPECT_THAT(read_all(**source, ReadGroup::kActivity), expected);
  ::usleep(101'000);
  EXPECT_THAT(read_all(**source, ReadGroup::kActivity), expected);
}

TEST(InChild, AnswersOrIsLeftAlone) {
  EXPECT_EQ(in_child([] { return std::string("a\nb"); }, std::chrono::minutes(1)).value(), "a\nb");
  EXPECT_EQ(in_child([] { return std::string(); }, std::chrono::minutes(1)).value(), "");
  const auto hangs = in_child([] { return ::pause(), std::string("never"); }, std::chrono::milliseconds(20));
  EXPECT_EQ(hangs.error().message, "no answer in time");
  const auto dies = in_child([] { return ::_exit(1), std::string("never"); }, std::chrono::minutes(1));
  EXPECT_EQ(dies.error().message, "it died");
}

TEST(CpuSource, ReadsWhatThereIs) {
  FakeMachine machine;
  machine.four_cpus().write("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\n");
  const auto source = open_cpu_source(machine.root());
  EXPECT_EQ(source->devices()[0].name, "Fake CPU 9000");
  // 40 of the next 100 ticks were busy: 30 user and 10 system; 60 idle or waiting.
  machine.write("proc/stat", "cpu  130 0 110 850 10 0 0 0 0 0\n");
  // Clocks of the fake machine: 2000.5, 2100.5, 2200.5 and 2300.5 MHz.
  EXPECT_THAT(read_all(*source, ReadGroup::kState),
              UnorderedElementsAre(Pair("cpu_utilization", 40), Pair("cpu_clock_mhz", 2150.5),
                                   Pair("memory_used_bytes", 8'000'000 * 1024.0),
                                   Pair("memory_total_bytes", 16'000'000 * 1024.0)));
  EXPECT_THAT(read_all(*source, ReadGroup::kPower), IsEmpty());
  EXPECT_THAT(source->take_notes(), IsEmpty());
}

TEST(CpuSource, EnergyCountersWrapAround) {
  FakeMachine machine;
  const std::string folder = "sys/class/powercap/intel-rapl:0";
  machine.four_cpus().write(folder + "/name", "package-0\n").write(folder + "/max_energy_range_uj", "10000000\n");
  machine.write(folder + "/energy_uj", "9000000\n");
  const auto source = open_cpu_source(machine.root());
  EXPECT_THAT(read_all(*source, ReadGroup::kPower), UnorderedElementsAre(Pair("energy_j", 0)));
  machine.write(folder + "/energy_uj", "500000\n");  // 1 J to the end of the range and 0.5 J after it
  EXPECT_DOUBLE_EQ(read_all(*source, ReadGroup::kPower)["energy_j"], 1.5);
  machine.write(folder + "/energy_uj", "700000\n");
  const auto values = read_all(*source, ReadGroup::kPower);
  EXPECT_DOUBLE_EQ(values.at("energy_j"), 1.7);
  EXPECT_GT(values.at("power_w"), 0);
}

TEST(CpuSource, EnergyForRootOnlyIsSaid) {
  FakeMachine machine;
  machine.four_cpus().write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
  EXPECT_THAT(open_cpu_source(machine.root())->take_notes(), ElementsAre(HasSubstr("may be read by root only")));
}

}  // namespace
}  // namespace llmprof::hw
