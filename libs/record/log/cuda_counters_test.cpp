// Counters and stalls of hand-made logs. Times are kBegin (1 000 000) and a bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "host/host_log.h"
#include "record/log/cuda_counters.h"
#include "record/log/ledger.h"
#include "record/testing/cuda_log_builder.h"
#include "record/testing/recording.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wire::CounterScope;

constexpr const char* kWindows =
    "SELECT w.id = w.counter_window_id, scope, method, w.begin_ns, w.end_ns, pid, tid, d.name, w.name, pass, passes, "
    "cost_ns FROM counter_window w LEFT JOIN process p ON p.id = w.process_id LEFT JOIN thread t ON t.id = w.thread_id "
    "JOIN device d ON d.id = w.device_id ORDER BY w.begin_ns";
constexpr const char* kValues =
    "SELECT c.scope, metric, value, unit, c.method, c.passes, w.name, w.pass FROM counter c "
    "JOIN counter_window w ON w.id = c.scope_id ORDER BY c.id";

struct Process {
  explicit Process(std::uint64_t number) : log(number), cuda(log), pid(number) {
    log.process({.ts_ns = kBegin, .pid = pid, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3", "python3");
    log.thread(1, pid, "main", kBegin + 10);
    cuda.device(0, "NVIDIA H200", 1, 2);
  }
  const std::string& bytes() {
    log.process({.ts_ns = kBegin + 900'000, .pid = pid, .ended = 1}, "/usr/bin/python3", "");
    return log.bytes();
  }
  wire::CounterWindowRecord window(std::uint32_t measurement, std::uint64_t at, CounterScope scope,
                                   std::uint32_t correlation = 0) {
    return {.begin_ns = kBegin + at,
            .end_ns = kBegin + at + 50,
            .cost_ns = 7,
            .measurement = measurement,
            .correlation = correlation,
            .scope = scope,
            .pass = 0,
            .passes = 1};
  }
  void kernel(std::uint32_t correlation, std::uint64_t at, wire::DefinitionId shape) {
    cuda.launch(1, {.begin_ns = kBegin + at, .end_ns = kBegin + at + 5, .correlation = correlation});
    cuda.kernel({.begin_ns = kBegin + at + 10, .end_ns = kBegin + at + 30, .correlation = correlation, .shape = shape});
  }
  LogBuilder log;
  CudaLogBuilder cuda;
  std::uint64_t pid;
};

struct Read : Recording {
  explicit Read(Process& process) { info(info_of(77)).log("77.log", process.bytes()); }
  void check() {
    const auto findings = check_run(run());
    ASSERT_TRUE(findings);
    for (const auto& finding : *findings) ADD_FAILURE() << finding.where << ": " << finding.what;
  }
};

TEST(CudaCounters, ARangeIsItsWindowsAndValues) {
  Process process(77);
  auto window = process.window(3, 100, CounterScope::kRange);
  window.passes = 2;
  process.cuda.counter_window(1, window, "decode");
  window.begin_ns += 200, window.end_ns += 200, window.pass = 1;
  process.cuda.counter_window(1, window, "decode");
  process.cuda.counter(1, kBegin + 400, 3, "dram__bytes_read.sum", 4096);
  process.cuda.counter(1, kBegin + 400, 3, "sm__warps_active.avg.pct_of_peak_sustained_active", 12.5);
  Read read(process);
  EXPECT_THAT(read.rows(kWindows), ElementsAre("true|range|range|1000100|1000150|77|77|NVIDIA H200|decode|0|2|7",
                                               "false|range|range|1000300|1000350|77|77|NVIDIA H200|decode|1|2|7"));
  EXPECT_THAT(read.rows("SELECT DISTINCT counter_window_id = (SELECT id FROM counter_window WHERE pass = 0) FROM "
                        "counter_window"),
              ElementsAre("true"));
  EXPECT_THAT(read.rows(kValues),
              ElementsAre("range|dram__bytes_read.sum|4096.000000|bytes|range|2|decode|0",
                          "range|sm__warps_active.avg.pct_of_peak_sustained_active|12.500000|%|range|2|decode|0"));
  EXPECT_THAT(read.rows(kLosses), IsEmpty());
  read.check();
}

// The window stands before its kernel or behind it; the second measurement shares its values over two launches.
TEST(CudaCounters, AKernelIsFoundWhereverItStands) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("_Z4gemmILi4EEvPf");
  process.cuda.counter_window(1, process.window(1, 100, CounterScope::kKernel, 7), "_Z4gemmILi4EEvPf");
  process.cuda.counter(1, kBegin + 160, 1, "gpu__time_duration.sum", 2000);
  process.log.end_block();
  process.kernel(7, 110, shape);
  process.kernel(8, 210, shape);
  process.kernel(9, 310, shape);
  process.log.end_block();
  auto window = process.window(2, 200, CounterScope::kKernel, 8);
  window.passes = 2;
  process.cuda.counter_window(1, window, "_Z4gemmILi4EEvPf");
  window.begin_ns += 100, window.end_ns += 100, window.correlation = 9, window.pass = 1;
  process.cuda.counter_window(1, window, "_Z4gemmILi4EEvPf");
  process.cuda.counter(1, kBegin + 400, 2, "gpu__time_duration.sum", 3000);
  Read read(process);
  EXPECT_THAT(read.rows("SELECT w.name, w.pass, k.name, k.begin_ns FROM counter_window w JOIN kernel k ON k.id = "
                        "w.kernel_id ORDER BY w.begin_ns"),
              ElementsAre("gemm<4>|0|gemm<4>|1000120", "gemm<4>|0|gemm<4>|1000220", "gemm<4>|1|gemm<4>|1000320"));
  EXPECT_THAT(read.rows("SELECT scope, value, unit, method, passes, k.begin_ns FROM counter c JOIN kernel k ON k.id = "
                        "c.scope_id ORDER BY c.id"),
              ElementsAre("kernel|2000.000000|ns|kernel|1|1000120", "kernel|3000.000000|ns|kernel|2|1000220"));
  EXPECT_THAT(read.rows(kLosses), IsEmpty());
  read.check();
}

// CUPTI executes it with the correlation of the launch that is measured, or of none.
TEST(CudaCounters, TheKernelOfTheProfilerIsNotTheProgramsOwn) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("gemm");
  const auto own = process.cuda.kernel_shape("WaitNs", 1, 1);
  const auto namesake = process.cuda.kernel_shape("WaitNs", 132, 256);
  process.cuda.counter_window(1, process.window(1, 100, CounterScope::kKernel, 7), "gemm");
  process.cuda.counter(1, kBegin + 160, 1, "gpu__time_duration.sum", 2000);
  process.kernel(7, 110, shape);
  process.kernel(7, 150, own);
  process.cuda.kernel({.begin_ns = kBegin + 300, .end_ns = kBegin + 380, .correlation = 99, .shape = own});
  process.kernel(8, 400, namesake);
  Read read(process);
  EXPECT_THAT(read.rows("SELECT name, grid_x FROM kernel ORDER BY begin_ns"), ElementsAre("gemm|132", "WaitNs|132"));
  EXPECT_THAT(read.rows("SELECT k.name FROM counter c JOIN kernel k ON k.id = c.scope_id"), ElementsAre("gemm"));
  EXPECT_THAT(read.rows(kLosses), IsEmpty());
}

TEST(CudaCounters, AGraphIsFoundAsAWholeAndByItsNodes) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("kernel");
  process.cuda.counter_window(1, process.window(1, 100, CounterScope::kGraph, 7));
  process.cuda.counter(1, kBegin + 160, 1, "dram__bytes_write.sum", 64);
  process.cuda.counter_window(1, process.window(2, 200, CounterScope::kGraph, 8));
  process.cuda.counter(1, kBegin + 260, 2, "dram__bytes_write.sum", 128);
  for (const std::uint32_t correlation : {7u, 8u}) {
    process.cuda.launch(1, {.begin_ns = kBegin + 100 * (correlation - 6ull),
                            .end_ns = kBegin + 100 * (correlation - 6ull) + 5,
                            .correlation = correlation,
                            .graph = 4,
                            .op = wire::LaunchOp::kGraph});
  }
  process.cuda.graph_launch({.begin_ns = kBegin + 110, .end_ns = kBegin + 140, .correlation = 7, .graph = 4});
  process.cuda.node(1, {.ts_ns = kBegin + 50, .node = 5, .graph = 4, .kind = wire::GraphNodeKind::kKernel});
  process.cuda.kernel({.begin_ns = kBegin + 210,
                       .end_ns = kBegin + 240,
                       .graph_node = 5,
                       .correlation = 8,
                       .shape = shape,
                       .graph = 4});
  Read read(process);
  EXPECT_THAT(read.rows("SELECT w.scope, w.kernel_id, g.begin_ns, value FROM counter_window w JOIN graph_launch g ON "
                        "g.id = w.graph_launch_id JOIN counter c ON c.scope_id = w.id ORDER BY w.begin_ns"),
              ElementsAre("graph|-|1000110|64.000000", "graph|-|1000210|128.000000"));
  EXPECT_THAT(read.rows(kLosses), IsEmpty());
  read.check();
}

TEST(CudaCounters, WhatIsMissingIsCounted) {
  Process process(77);
  process.cuda.counter_window(1, process.window(1, 100, CounterScope::kRange), "no values");
  process.cuda.counter(1, kBegin + 160, 2, "dram__bytes_read.sum", 1);  // no window
  process.cuda.counter_window(1, process.window(3, 200, CounterScope::kKernel, 7), "kernel");
  process.cuda.counter(1, kBegin + 260, 3, "dram__bytes_read.sum",
                       1);  // the kernel was not recorded: its window has its name
  process.cuda.counter(1, kBegin + 260, 3, "dram__bytes_write.sum", 1);
  process.cuda.counter_window(1, process.window(4, 300, CounterScope::kRange), "step");
  process.cuda.counter(1, kBegin + 360, 4, "smsp__x.sum", std::numeric_limits<double>::quiet_NaN());
  process.cuda.counter(1, kBegin + 360, 4, "gpu__time_duration.sum", 50);
  Read read(process);
  EXPECT_THAT(read.rows(kValues), ElementsAre("kernel|dram__bytes_read.sum|1.000000|bytes|kernel|1|kernel|0",
                                              "kernel|dram__bytes_write.sum|1.000000|bytes|kernel|1|kernel|0",
                                              "range|gpu__time_duration.sum|50.000000|ns|range|1|step|0"));
  EXPECT_THAT(read.rows("SELECT name, kernel_id FROM counter_window ORDER BY begin_ns"),
              ElementsAre("no values|-", "kernel|-", "step|-"));
  EXPECT_THAT(read.rows(kLosses),
              ElementsAre("counters_skipped|1|no values: no values: its measurement was not completed",
                          "counters_skipped|1|smsp__x.sum: the device gave no value",
                          "counters_skipped|1|values whose window is missing"));
  read.check();
}

// Numbers that repeat, passes beyond their count, scopes nobody knows, values by the thousand, times of another year.
TEST(CudaCounters, NonsenseIsCounted) {
  Process process(77);
  auto window = process.window(1, 100, CounterScope::kRange);
  process.cuda.counter_window(1, window, "step");
  process.cuda.counter_window(1, window, "step again");  // pass 0 of measurement 1 is known
  window.pass = 3;
  process.cuda.counter_window(1, window, "pass 3 of 1");
  window = process.window(UINT32_MAX, 100, static_cast<CounterScope>(9));
  process.cuda.counter_window(1, window, "scope 9");
  window = process.window(2, 100, CounterScope::kRange);
  window.end_ns = UINT64_MAX;
  process.cuda.counter_window(1, window, "never ends");
  process.cuda.counter(1, kBegin, 2, "dram__bytes_read.sum", 1);  // of a window that was not kept
  for (int i = 0; i < 4100; ++i) process.cuda.counter(1, kBegin + 160, 1, "dram__bytes_read.sum", i);
  Read read(process);
  EXPECT_THAT(read.rows("SELECT name FROM counter_window"), ElementsAre("step"));
  EXPECT_THAT(read.rows("SELECT count(*), max(value) FROM counter"), ElementsAre("4096|4095.000000"));
  // Three windows, and 4100 - 4096 values.
  EXPECT_THAT(read.rows(kLosses), ElementsAre("bad_time|1|", "unknown_record|7|"));
  read.check();
}

TEST(CudaCounters, OnlyTheEndIsKeptWithLast) {
  Process process(77);
  process.cuda.counter_window(1, process.window(1, 100, CounterScope::kRange), "early");
  process.cuda.counter(1, kBegin + 160, 1, "dram__bytes_read.sum", 1);
  process.cuda.counter_window(1, process.window(2, 800'000, CounterScope::kRange), "late");
  process.cuda.counter(1, kBegin + 800'060, 2, "dram__bytes_read.sum", 2);
  process.cuda.stall({.ts_ns = kBegin + 200, .samples = 5}, "_Z3foov", "wait");
  process.cuda.stall({.ts_ns = kBegin + 800'000, .samples = 6}, "_Z3foov", "wait");
  Recording recording;
  CaptureInfo info = info_of(77);
  info.last_ns = 500'000;  // of 1 000 000
  recording.info(info).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows(kValues), ElementsAre("range|dram__bytes_read.sum|2.000000|bytes|range|1|late|0"));
  EXPECT_THAT(recording.rows("SELECT samples FROM stall"), ElementsAre("6"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("outside_window|2|"));
}

TEST(CudaStalls, OneRowAPlaceAndReason) {
  Process process(77);
  const wire::StallRecord place{.ts_ns = kBegin + 100, .samples = 5, .cubin = 1ull << 63, .pc_offset = 64};
  process.cuda.stall(place, "_Z4gemmILi4EEvPf", "long_scoreboard", "gemm.cu");
  auto again = place;
  again.samples = 7, again.line = 12;
  process.cuda.stall(again, "_Z4gemmILi4EEvPf", "long_scoreboard", "gemm.cu");
  again.issued = 1;
  process.cuda.stall(again, "_Z4gemmILi4EEvPf", "long_scoreboard");
  again.pc_offset = 80, again.samples = UINT64_MAX;
  process.cuda.stall(again, "_Z4gemmILi4EEvPf", "wait");
  again.samples = 0;
  process.cuda.stall(again, "_Z4gemmILi4EEvPf", "barrier");
  Read read(process);
  EXPECT_THAT(
      read.rows("SELECT s.kernel, cubin, offset_bytes, reason, issued, samples, file, line, pid, d.name FROM stall s "
                "JOIN process p ON p.id = process_id JOIN device d ON d.id = device_id ORDER BY s.id"),
      ElementsAre("gemm<4>|-9223372036854775808|64|long_scoreboard|false|12|gemm.cu|12|77|NVIDIA H200",
                  "gemm<4>|-9223372036854775808|64|long_scoreboard|true|7|-|-|77|NVIDIA H200",
                  "gemm<4>|-9223372036854775808|80|wait|true|2305843009213693951|-|-|77|NVIDIA H200"));
  EXPECT_THAT(read.rows(kLosses), IsEmpty());
  read.check();
}

TEST(HostIngest, SamplesOfADeviceAreWindows) {
  LogBuilder log(1);
  wire::Record device = LogBuilder::make(wire::RecordKind::kTelemetryDevice);
  device.telemetry_device = {1, 2, log.name("NVIDIA H200"), 4};
  log.add(0, {device});
  CudaLogBuilder cuda(log);
  for (std::uint32_t i = 1; i <= 2; ++i) {
    cuda.counter_window(0, {.begin_ns = kBegin + 100ull * i,
                            .end_ns = kBegin + 100ull * i + 100,
                            .measurement = i,
                            .device = 4,
                            .scope = CounterScope::kSample,
                            .passes = 1});
    cuda.counter(0, kBegin + 300, i, "dram__bytes_read.sum", 10.0 * i);
  }
  cuda.counter_window(0, {.begin_ns = kBegin,
                          .end_ns = kBegin + 1,
                          .measurement = 3,
                          .device = 5,
                          .scope = CounterScope::kSample,
                          .passes = 1});  // a device nobody named
  cuda.counter_window(0, {.begin_ns = kBegin,
                          .end_ns = kBegin + 1,
                          .measurement = 4,
                          .device = 4,
                          .scope = CounterScope::kRange,
                          .passes = 1});  // not the recorder's to say
  Process process(77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes()).log(std::string(host::kHostLogName), log.bytes());
  EXPECT_THAT(recording.rows(kWindows), ElementsAre("true|sample|sampled|1000100|1000200|-|-|NVIDIA H200|-|0|1|0",
                                                    "true|sample|sampled|1000200|1000300|-|-|NVIDIA H200|-|0|1|0"));
  EXPECT_THAT(recording.rows(kValues), ElementsAre("sample|dram__bytes_read.sum|10.000000|bytes|sampled|1|-|0",
                                                   "sample|dram__bytes_read.sum|20.000000|bytes|sampled|1|-|0"));
  EXPECT_THAT(recording.rows("SELECT name, count FROM loss"), ElementsAre("unknown_record|2"));
}

TEST(CudaLosses, OfCountersSayWhatAndWhy) {
  Process process(77);
  process.log.loss(wire::LossKind::kCountersForbidden, 1, process.log.name("RmProfilingAdminOnly is 1"));
  process.log.loss(wire::LossKind::kCounterUnknown, 2, process.log.name("fe__nothing.sum"));
  process.log.loss(wire::LossKind::kCountersFailed, 3, 999 | 1000ull << 32);
  Read read(process);
  EXPECT_THAT(read.rows("SELECT name, count, unit, detail FROM loss ORDER BY name"),
              ElementsAre("counter_unknown|2|metrics|fe__nothing.sum",
                          "counters_failed|3|calls|a call of CUPTI's profilers failed with error 999 (unknown)",
                          "counters_forbidden|1|processes|RmProfilingAdminOnly is 1"));
}

// The numbers are those of libs/wire/cupti_calls.h.
TEST(CudaLosses, CallsOfProfilersHaveNames) {
  EXPECT_EQ(profiler_error_text(999 | 16ull << 32), "cuptiRangeProfilerPushRange failed with error 999 (unknown)");
  EXPECT_EQ(profiler_error_text(8 | 22ull << 32),
            "cuptiRangeProfilerCounterDataGetRangeInfo failed with error 8 (out of memory)");
  EXPECT_EQ(profiler_error_text(12 | 23ull << 32), "no memory for counters: Cannot allocate memory");
  EXPECT_EQ(profiler_error_text(64ull << 32), "CUPTI has no PC sampling: a function is missing");
  EXPECT_EQ(profiler_error_text(26 | 70ull << 32), "cuptiPCSamplingStart failed with error 26 (hardware busy)");
  EXPECT_EQ(profiler_error_text(1 | 40ull << 32),
            "a call of CUPTI's profilers failed with error 1 (invalid parameter)");
}

TEST(MetricUnit, IsWhatTheNameSays) {
  EXPECT_EQ(metric_unit("dram__bytes_read.sum"), "bytes");
  EXPECT_EQ(metric_unit("dram__bytes_read.sum.per_second"), "bytes/s");
  EXPECT_EQ(metric_unit("dram__bytes_read.sum.pct_of_peak_sustained_elapsed"), "%");
  EXPECT_EQ(metric_unit("lts__t_sector_hit_rate.pct"), "%");
  EXPECT_EQ(metric_unit("gpu__time_duration.sum"), "ns");
  EXPECT_EQ(metric_unit("sm__cycles_elapsed.avg.per_second"), "cycles/s");
  EXPECT_EQ(metric_unit("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), "instructions");
  EXPECT_EQ(metric_unit("sm__ops_path_tensor_src_fp8.sum"), "operations");
  EXPECT_EQ(metric_unit("lts__t_sectors_op_read.sum"), "sectors");
  EXPECT_EQ(metric_unit("sm__inst_executed.avg.per_cycle_active"), "");
  EXPECT_EQ(metric_unit("anything"), "");
}

}  // namespace
}  // namespace llmprof::record
