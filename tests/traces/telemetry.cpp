// A GPU whose power, clocks and memory were read. What the golden files expect, derived by hand, times in ms:
//
//   prefill   one step 200…600: 400 ms, too short for its energy
//   decode    20 steps of 2 sequences, 1000…3000 without a gap: 2 s, 40 tokens
//   power     100 W until 1000, 300 W until 3000, 100 W until 3500; the counter is read every 100 ms and starts at 5000
//   J
//             decode 2 s * 300 W = 600 J, 15 J/token. An edge may be wrong by half of 100 ms at 300 - 100 W: 10 J; two
//             edges: 14.1 J, 0.354 J/token. In all 100 + 600 + 50 = 750 J in 3.5 s: mean 214 W
//   clock     2000 MHz at 500, 1900 at 1500, 1500 at 2500, 300 at 3400; the device's highest is 2000.
//             prefill has the first, decode the next two: mean 1700, lowest 1500, half of them below 1800
//   limits    idle at 500, none at 1500, power limit at 2500: half of decode's readings
//   heat      40, 50, 60 and 55 degrees at the same times
//   activity  read at 1000, 2000 and 3000: SM 5, 80, 90 %; tensor 1, 20, 30 %; DRAM 2, 60, 70 %. The first has nothing
//             before it; the others lie in decode: 85, 25 and 65 %
//   memory    by the driver 0.1, 0.6, 0.7, 0.1 GB; of the process 0.5 GB at 1500
//   allocated 200 MB at 100 before any range, never freed; 100 MB in prefill 300…700; 300 MB in decode 1050…2950, from
//             model.py:12; pinned memory does not count. Peak 500 MB at 1050
//   reader    0.035 s of CPU time by 3400; readings from 0 to 3500: 1.0 % of a core
#include "builder.h"
#include "traces.h"

namespace llmprof::traces {
namespace {

constexpr std::int64_t kGpu = 2;
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kMegabyte = 1'000'000;

class TelemetryBuilder : public Builder {
 public:
  explicit TelemetryBuilder(trace::RunWriter& writer) : Builder(writer, 3500 * kMs), writer_(writer) {
    trace::DeviceRow gpu{.id = kGpu, .kind = name("gpu"), .name = name("Toy GPU"), .units = 4};
    gpu.memory_bytes = 1000 * kMegabyte;
    gpu.clock_mhz = 2000;
    writer_.add(gpu);
  }

  void read(std::int64_t ms, std::string_view metric, double value, std::string_view unit) {
    writer_.add(trace::TelemetryRow{
        .ts_ns = ms * kMs, .device_id = kGpu, .metric = name(metric), .value = value, .unit = name(unit)});
  }

  void read_process(std::int64_t ms, double bytes) {
    trace::TelemetryRow row{
        .ts_ns = ms * kMs, .device_id = kGpu, .metric = name("process_memory_bytes"), .value = bytes};
    row.unit = name("B");
    row.process_id = 1;
    writer_.add(row);
  }

  void allocate(std::int64_t begin_ms, std::optional<std::int64_t> end_ms, std::int64_t megabytes,
                std::string_view kind, std::optional<std::int64_t> stack = {}) {
    trace::AllocationRow row{.id = next_++, .begin_ns = begin_ms * kMs, .bytes = megabytes * kMegabyte};
    if (end_ms) row.end_ns = *end_ms * kMs;
    if (stack) row.stack_id = *stack;
    row.device_id = kGpu;
    row.kind = name(kind);
    row.process_id = 1;
    row.thread_id = 1;
    writer_.add(row);
  }

  void stack() {
    writer_.add(
        trace::FrameRow{.id = 1, .kind = name("native"), .function = name("cudaMalloc"), .file = name("libcudart.so")});
    writer_.add(trace::FrameRow{
        .id = 2, .kind = name("python"), .function = name("forward"), .file = name("model.py"), .line = 12});
    writer_.add(trace::StackRow{.stack_id = 1, .depth = 0, .frame_id = 1});
    writer_.add(trace::StackRow{.stack_id = 1, .depth = 1, .frame_id = 2});
  }

  void gpu_kernel(std::int64_t begin_ms, std::int64_t end_ms) {
    writer_.add(trace::KernelRow{.id = next_++,
                                 .begin_ns = begin_ms * kMs,
                                 .end_ns = end_ms * kMs,
                                 .name = name("void at::native::add(float*)"),
                                 .device_id = kGpu,
                                 .stream = 7,
                                 .thread_id = 1,
                                 .launch_begin_ns = begin_ms * kMs - 1000,
                                 .launch_end_ns = begin_ms * kMs - 500});
  }

 private:
  trace::RunWriter& writer_;
  std::int64_t next_ = 1000;
};

void read_power(TelemetryBuilder& run) {
  double joules = 5000;
  for (std::int64_t ms = 0; ms <= 3500; ms += 100) {
    const double watts = ms > 1000 && ms <= 3000 ? 300 : 100;  // since the reading before
    if (ms > 0) joules += watts * 0.1;
    run.read(ms, "energy_j", joules, "J");
    run.read(ms, "power_w", watts, "W");
  }
  run.read(0, "power_limit_w", 350, "W");
}

struct State {
  std::int64_t ms;
  double mhz, limits, celsius, gigabytes;
};

void read_state(TelemetryBuilder& run) {
  for (const State& state : {State{500, 2000, 1, 40, 0.1}, State{1500, 1900, 0, 50, 0.6}, State{2500, 1500, 4, 60, 0.7},
                             State{3400, 300, 1, 55, 0.1}}) {
    run.read(state.ms, "sm_clock_mhz", state.mhz, "MHz");
    run.read(state.ms, "memory_clock_mhz", 3000, "MHz");
    run.read(state.ms, "clock_limits", state.limits, "bits");
    run.read(state.ms, "temperature_c", state.celsius, "°C");
    run.read(state.ms, "memory_used_bytes", state.gigabytes * 1e9, "B");
    run.read(state.ms, "sampler_cpu_s", 0.01 * static_cast<double>(state.ms + 100) * 1e-3, "s");
  }
  run.read_process(1500, 0.5e9);
  for (const auto& [ms, sm, tensor, dram] :
       {std::tuple(1000, 5, 1, 2), std::tuple(2000, 80, 20, 60), std::tuple(3000, 90, 30, 70)}) {
    run.read(ms, "sm_active", sm, "%");
    run.read(ms, "tensor_active", tensor, "%");
    run.read(ms, "dram_active", dram, "%");
  }
}

}  // namespace

Result<void> write_telemetry(const std::string& folder) {
  LLMPROF_LET(trace::RunWriter writer, trace::RunWriter::create(folder));
  TelemetryBuilder run(writer);
  run.thread(1);
  run.range("step", "prefill", 200 * kMs, 600 * kMs, 2 | 8 << 16);
  for (std::int64_t i = 0; i < 20; ++i) {
    const std::int64_t begin = 1000 + 100 * i;
    run.range("step", "decode", begin * kMs, (begin + 100) * kMs, 2 | 1 << 16 | (8 + i) << 40);
  }
  run.gpu_kernel(300, 400);
  run.gpu_kernel(1010, 1090);
  read_power(run);
  read_state(run);
  run.stack();
  run.allocate(100, {}, 200, "device");
  run.allocate(300, 700, 100, "device");
  run.allocate(900, 3000, 400, "pinned");
  run.allocate(1050, 2950, 300, "device", 1);
  return writer.finish(run_info({"toy", "telemetry"}));
}

}  // namespace llmprof::traces
