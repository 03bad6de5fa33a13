// Kernels, copies, products and memory of hand-made logs. Times are kBegin (1 000 000) and a bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/log/ledger.h"
#include "record/testing/cuda_log_builder.h"
#include "record/testing/recording.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kLosses = "SELECT name, count, coalesce(detail, '') FROM loss ORDER BY name, detail";
constexpr std::uint64_t kUuid = 0x0011223344556677, kUuidLow = 0x8899aabbccddeeff;

struct Process {
  explicit Process(std::uint64_t number) : log(number), cuda(log), pid(number) {
    log.process({.ts_ns = kBegin, .pid = pid, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3", "python3");
    log.thread(1, pid, "main", kBegin + 10);
    cuda.device(0, "NVIDIA H200", kUuid, kUuidLow);
  }
  const std::string& bytes() {
    log.process({.ts_ns = kBegin + 900'000, .pid = pid, .ended = 1}, "/usr/bin/python3", "");
    return log.bytes();
  }
  LogBuilder log;
  CudaLogBuilder cuda;
  std::uint64_t pid;
};

TEST(CudaIngest, AKernelHasItsLaunchShapeAndStack) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("_Z4gemmILi4EEvPf");
  const auto stack = process.cuda.stack("forward", process.cuda.stack("main"));
  process.cuda.launch(1, {.begin_ns = kBegin + 100, .end_ns = kBegin + 150, .correlation = 7, .stack = stack});
  process.cuda.kernel(
      {.begin_ns = kBegin + 200, .end_ns = kBegin + 300, .correlation = 7, .shape = shape, .stream = 13, .device = 0});
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(
      recording.rows("SELECT k.name, k.begin_ns, k.end_ns, launch_begin_ns, launch_end_ns, tid, stream, grid_x, "
                     "block_x, registers, shared_bytes, d.name, d.uuid FROM kernel k JOIN thread t ON t.id = thread_id "
                     "JOIN device d ON d.id = device_id"),
      ElementsAre("gemm<4>|1000200|1000300|1000100|1000150|77|13|132|256|40|3072|NVIDIA "
                  "H200|GPU-00112233-4455-6677-8899-aabbccddeeff"));
  EXPECT_THAT(recording.rows("SELECT depth, function, line, f.kind FROM kernel JOIN stack s USING (stack_id) "
                             "JOIN frame f ON f.id = frame_id ORDER BY depth"),
              ElementsAre("0|forward|10|python", "1|main|10|python"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
  const auto findings = check_run(recording.run());
  ASSERT_TRUE(findings);
  EXPECT_TRUE(findings->empty()) << findings->front().where << ": " << findings->front().what;
}

// Launches 1 and 2 are the same again and again; of the third and fourth time nothing but the launch is known. The
// device idles before launch 1, which begins 50 ns after its call; launch 2 waits for it, and begins 10 ns behind it.
TEST(CudaIngest, WhatNotedLaunchesRanIsEstimated) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("first"), other = process.cuda.kernel_shape("second");
  const auto product = process.cuda.gemm_shape();
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint64_t at = kBegin + 10'000 * (i + 1);
    const bool noted = i >= 2;
    process.cuda.launch(1, {.begin_ns = at, .end_ns = noted ? 0 : at + 20, .correlation = 10 * i + 1, .number = 1});
    process.cuda.launch(1,
                        {.begin_ns = at + 30, .end_ns = noted ? 0 : at + 40, .correlation = 10 * i + 2, .number = 2});
    process.cuda.gemm(1,
                      {.begin_ns = at + 25, .end_ns = at + 45, .m = 2, .n = 3, .k = 4, .batch = 1, .shape = product});
    if (noted) continue;
    const std::uint64_t begin = at + 50, first = 400 + 200 * i;  // 400 and 600 ns
    process.cuda.kernel(
        {.begin_ns = begin, .end_ns = begin + first, .correlation = 10 * i + 1, .shape = shape, .stream = 7});
    process.cuda.kernel({.begin_ns = begin + first + 10,
                         .end_ns = begin + first + 110,
                         .correlation = 10 * i + 2,
                         .shape = other,
                         .stream = 7});
  }
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(
      recording.rows("SELECT name, begin_ns - 1000000, end_ns - begin_ns, launch_end_ns - launch_begin_ns, stream, "
                     "gemm_id IS NOT NULL FROM kernel WHERE estimated ORDER BY begin_ns"),
      ElementsAre("first|30050|500|-|7|false", "second|30560|100|-|7|true", "first|40050|500|-|7|false",
                  "second|40560|100|-|7|true"));
  EXPECT_THAT(recording.rows("SELECT count(*) FROM kernel WHERE estimated IS NULL"), ElementsAre("4"));
  EXPECT_THAT(recording.rows("SELECT count(*) FROM gemm WHERE kernel_id IS NOT NULL"), ElementsAre("4"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
}

// A kernel that was recorded after all is itself, and one that is like no other is lost.
TEST(CudaIngest, OnlyWhatIsMissingIsEstimated) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("kernel");
  process.cuda.launch(1, {.begin_ns = kBegin + 100, .correlation = 1, .number = 1});
  process.cuda.launch(1, {.begin_ns = kBegin + 200, .correlation = 2, .number = 2});
  process.cuda.kernel({.begin_ns = kBegin + 150, .end_ns = kBegin + 180, .correlation = 1, .shape = shape});
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT begin_ns, estimated FROM kernel"), ElementsAre("1000150|-"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("cupti_dropped|1|of launches that were only noted"));
}

// A launch may stand behind what it launched, and the product behind both.
TEST(CudaIngest, JoinsWhateverTheOrderInTheLog) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("kernel");
  const auto product = process.cuda.gemm_shape();
  process.cuda.kernel({.begin_ns = kBegin + 200, .end_ns = kBegin + 300, .correlation = 7, .shape = shape});
  process.cuda.kernel({.begin_ns = kBegin + 300, .end_ns = kBegin + 500, .correlation = 8, .shape = shape});
  process.cuda.kernel({.begin_ns = kBegin + 500, .end_ns = kBegin + 510, .correlation = 9, .shape = shape});
  process.log.end_block();
  process.cuda.launch(1, {.begin_ns = kBegin + 100, .end_ns = kBegin + 110, .correlation = 7});
  process.cuda.launch(1, {.begin_ns = kBegin + 120, .end_ns = kBegin + 130, .correlation = 8});
  process.cuda.launch(1, {.begin_ns = kBegin + 160, .end_ns = kBegin + 170, .correlation = 9});  // behind the call
  process.cuda.gemm(
      1, {.begin_ns = kBegin + 90, .end_ns = kBegin + 140, .m = 2, .n = 3, .k = 4, .batch = 1, .shape = product});
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT launch_begin_ns, g.m FROM kernel k LEFT JOIN gemm g ON g.id = gemm_id "
                             "ORDER BY k.begin_ns"),
              ElementsAre("1000100|2", "1000120|2", "1000160|-"));
  // The main kernel is the longer of the two: 200 ns against 100.
  EXPECT_THAT(recording.rows("SELECT function, m, n, k, batch, type_a, compute_type, layout, transpose_a, transpose_b, "
                             "epilogue, algorithm, scaling, k.begin_ns FROM gemm JOIN kernel k ON k.id = kernel_id"),
              ElementsAre("cublasGemmEx|2|3|4|1|bfloat16|float32|column|t|n|relu_bias|-|-|1000300"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
}

TEST(CudaIngest, AnInnerCallIsTheOneThatLaunched) {
  Process process(77);
  const auto outer = process.cuda.gemm_shape("cublasGemmEx"), inner = process.cuda.gemm_shape("cublasLtMatmul");
  process.cuda.launch(1, {.begin_ns = kBegin + 100, .end_ns = kBegin + 110, .correlation = 7});
  process.cuda.launch(1, {.begin_ns = kBegin + 140, .end_ns = kBegin + 145, .correlation = 8});
  process.cuda.gemm(1, {.begin_ns = kBegin + 95, .end_ns = kBegin + 120, .m = 1, .n = 1, .k = 1, .shape = inner});
  process.cuda.gemm(1, {.begin_ns = kBegin + 90, .end_ns = kBegin + 150, .m = 1, .n = 1, .k = 1, .shape = outer});
  process.cuda.kernel({.begin_ns = kBegin + 200, .end_ns = kBegin + 300, .correlation = 7});
  process.cuda.kernel({.begin_ns = kBegin + 300, .end_ns = kBegin + 400, .correlation = 8});
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT function FROM kernel k JOIN gemm g ON g.id = gemm_id ORDER BY k.begin_ns"),
              ElementsAre("cublasLtMatmul", "cublasGemmEx"));
}

TEST(CudaIngest, WhatWasLaunchedUnseenIsCounted) {
  Process process(77);
  process.cuda.kernel({.begin_ns = kBegin + 200, .end_ns = kBegin + 300, .correlation = 7});
  process.cuda.copy({.begin_ns = kBegin + 300,
                     .end_ns = kBegin + 310,
                     .bytes = 8,
                     .correlation = 9,
                     .kind = wire::CopyKind::kMemset});
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT thread_id, launch_begin_ns, name FROM kernel"), ElementsAre("0|-|-"));
  EXPECT_THAT(recording.rows("SELECT thread_id, direction, bytes FROM copy"), ElementsAre("0|fill|8"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("launch_lost|2|"));
}

// Correlation ids are of a process; one GPU is one device whatever processes call it.
TEST(CudaIngest, TwoProcessesMayUseTheSameNumbers) {
  Process a(77), b(88);
  b.cuda.device(1, "NVIDIA H200", kUuid, kUuidLow + 1);
  a.cuda.launch(1, {.begin_ns = kBegin + 100, .end_ns = kBegin + 110, .correlation = 7});
  b.cuda.launch(1, {.begin_ns = kBegin + 101, .end_ns = kBegin + 111, .correlation = 7});
  a.cuda.kernel({.begin_ns = kBegin + 200, .end_ns = kBegin + 300, .correlation = 7, .device = 0});
  b.cuda.kernel({.begin_ns = kBegin + 201, .end_ns = kBegin + 300, .correlation = 7, .device = 0});
  b.cuda.kernel({.begin_ns = kBegin + 301, .end_ns = kBegin + 400, .correlation = 7, .device = 1});
  CaptureInfo info = info_of(77);
  hw::Device gpu{.kind = "gpu", .name = "NVIDIA H200", .units = 132, .driver = "580.1"};
  gpu.uuid = "GPU-00112233-4455-6677-8899-aabbccddef00";  // device 1 of process 88
  info.gpus.push_back({gpu, {{"flops", "bfloat16", 9e14, "FLOP/s", "measured", "test"}}});
  gpu.uuid = "";
  info.gpus.push_back({gpu, {}});  // what the processes call 0: the only one without a UUID
  Recording recording;
  recording.info(info).log("77.log", a.bytes()).log("88.log", b.bytes());
  EXPECT_THAT(recording.rows("SELECT tid, k.launch_begin_ns, d.uuid FROM kernel k JOIN thread t ON t.id = thread_id "
                             "JOIN device d ON d.id = device_id ORDER BY k.begin_ns"),
              ElementsAre("77|1000100|GPU-00112233-4455-6677-8899-aabbccddeeff",
                          "88|1000101|GPU-00112233-4455-6677-8899-aabbccddeeff",
                          "88|1000101|GPU-00112233-4455-6677-8899-aabbccddef00"));
  EXPECT_THAT(recording.rows("SELECT uuid, driver, (SELECT count(*) FROM peak WHERE device_id = d.id AND value = 9e14) "
                             "FROM device d WHERE kind = 'gpu' ORDER BY uuid"),
              ElementsAre("GPU-00112233-4455-6677-8899-aabbccddeeff|580.1|0",
                          "GPU-00112233-4455-6677-8899-aabbccddef00|580.1|1"));
}

TEST(CudaIngest, ImpossibleTimesAreCountedAndLeftOut) {
  Process process(77);
  process.cuda.launch(1, {.begin_ns = kBegin + 5'000'000, .end_ns = kBegin + 5'000'010, .correlation = 7});
  process.cuda.kernel({.begin_ns = kBegin + 300, .end_ns = kBegin + 200, .correlation = 1});              // ends first
  process.cuda.kernel({.begin_ns = kBegin + 300, .end_ns = 1ull << 62, .correlation = 2});                // far outside
  process.cuda.kernel({.begin_ns = kBegin + 3'000'000, .end_ns = kBegin + 6'000'000, .correlation = 7});  // 2 ms early
  process.cuda.kernel(
      {.begin_ns = kBegin + 4'500'000, .end_ns = kBegin + 6'000'000, .correlation = 7});  // clocks differ
  process.cuda.gemm(1, {.begin_ns = kBegin + 300, .end_ns = kBegin + 200});
  process.cuda.api(1, {.begin_ns = kBegin + 300, .end_ns = kBegin + 200}, "cuStreamSynchronize");
  process.cuda.launch(1, {.begin_ns = kBegin + 300, .end_ns = kBegin + 200, .correlation = 9});
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT begin_ns FROM kernel"), ElementsAre("5500000"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("bad_time|6|"));
}

TEST(CudaIngest, CopiesSayWhereFromAndWhereTo) {
  Process process(77);
  process.cuda.launch(
      1, {.begin_ns = kBegin + 100, .end_ns = kBegin + 110, .correlation = 1, .op = wire::LaunchOp::kCopy});
  process.cuda.copy({.begin_ns = kBegin + 200,
                     .end_ns = kBegin + 300,
                     .bytes = 4096,
                     .correlation = 1,
                     .stream = 7,
                     .kind = wire::CopyKind::kHostToDevice,
                     .host_memory = wire::HostMemory::kPinned});
  process.cuda.copy({.begin_ns = kBegin + 400,
                     .end_ns = kBegin + 500,
                     .bytes = 1,
                     .correlation = 1,
                     .kind = wire::CopyKind::kDeviceToDevice,
                     .host_memory = wire::HostMemory::kDevice});
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(
      recording.rows("SELECT direction, bytes, host_memory, stream, launch_begin_ns FROM copy ORDER BY begin_ns"),
      ElementsAre("host_to_device|4096|pinned|7|1000100", "device_to_device|1|-|0|1000100"));
}

// Threads' records come in any order: the free of 1000 stands before its allocation, and the address is used again.
TEST(CudaIngest, AllocationsMeetTheirFrees) {
  Process process(77);
  process.log.thread(2, 78, "worker", kBegin + 20);
  using wire::MemoryKind;
  using wire::MemoryOp;
  process.cuda.memory(2, {.ts_ns = kBegin + 300, .address = 1000, .op = MemoryOp::kFree});
  process.cuda.memory(1, {.ts_ns = kBegin + 100, .address = 1000, .bytes = 64, .op = MemoryOp::kAllocate});
  process.cuda.memory(
      1, {.ts_ns = kBegin + 400, .address = 1000, .bytes = 32, .op = MemoryOp::kAllocate, .kind = MemoryKind::kPool});
  process.cuda.memory(
      1, {.ts_ns = kBegin + 500, .address = 2000, .bytes = 16, .op = MemoryOp::kAllocate, .kind = MemoryKind::kPinned});
  process.cuda.memory(1, {.ts_ns = kBegin + 600,
                          .address = 2000,
                          .bytes = 8,
                          .op = MemoryOp::kAllocate,
                          .kind = MemoryKind::kPinned});                                    // its free was not seen
  process.cuda.memory(1, {.ts_ns = kBegin + 700, .address = 3000, .op = MemoryOp::kFree});  // of before the recording
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT a.begin_ns, a.end_ns, bytes, a.kind, device_id IS NULL, tid FROM allocation a "
                             "JOIN thread t ON t.id = thread_id ORDER BY a.begin_ns"),
              ElementsAre("1000100|1000300|64|device|false|77", "1000400|-|32|pool|false|77",
                          "1000500|1000600|16|pinned|true|77", "1000600|-|8|pinned|true|77"));
}

TEST(CudaIngest, CallsGapsAndNotes) {
  Process process(77);
  process.cuda.api(1, {.begin_ns = kBegin + 100, .end_ns = kBegin + 200, .correlation = 5, .waits = 1},
                   "cuStreamSynchronize");
  process.cuda.gap(kBegin + 300, kBegin + 400, "another profiler took the buffers");
  process.cuda.note(kBegin + 50, "cupti", "version 13.0");
  process.cuda.note(kBegin + 50, "cupti", "version 13.0");  // said again by the next log
  process.log.loss(wire::LossKind::kCuptiError, 2, (std::uint64_t{4} << 32) | 15);
  process.log.loss(wire::LossKind::kCuptiHeld, 1, process.log.name("Nsight Systems"));
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT name, begin_ns, end_ns, correlation, waits FROM api"),
              ElementsAre("cuStreamSynchronize|1000100|1000200|5|true"));
  EXPECT_THAT(recording.rows("SELECT begin_ns, end_ns, why FROM gap"),
              ElementsAre("1000300|1000400|another profiler took the buffers"));
  EXPECT_THAT(recording.rows("SELECT ts_ns, subject, text FROM note"), ElementsAre("1000050|cupti|version 13.0"));
  EXPECT_THAT(recording.rows(kLosses),
              ElementsAre("cupti_error|2|cuptiActivityEnable failed with error 15 (not initialised)",
                          "cupti_held|1|Nsight Systems"));
}

// The second log says everything again, under other numbers; launches of the first are still known.
TEST(CudaIngest, ALogMayContinueAnother) {
  Process first(77);
  const auto shape = first.cuda.kernel_shape("one");
  first.cuda.launch(
      1, {.begin_ns = kBegin + 100, .end_ns = kBegin + 110, .correlation = 1, .stack = first.cuda.stack("forward")});
  first.cuda.launch(1, {.begin_ns = kBegin + 120, .end_ns = kBegin + 130, .correlation = 2});
  first.cuda.kernel({.begin_ns = kBegin + 200, .end_ns = kBegin + 300, .correlation = 1, .shape = shape});
  LogBuilder log(77, 1, kBegin + 350, 1);
  CudaLogBuilder second(log);
  log.process({.ts_ns = kBegin, .pid = 77, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3", "python3");
  wire::Record segment = LogBuilder::make(wire::RecordKind::kSegment);
  segment.segment = {kBegin + 350, 1};
  log.add(0, {segment});
  log.thread(1, 77, "main", kBegin + 10);
  second.device(0, "NVIDIA H200", kUuid, kUuidLow);
  const auto two = second.kernel_shape("two");  // the number that "one" had
  const auto stack = second.stack("forward");
  EXPECT_EQ(two, shape);
  second.launch(1, {.begin_ns = kBegin + 360, .end_ns = kBegin + 370, .correlation = 3, .stack = stack});
  second.kernel({.begin_ns = kBegin + 400, .end_ns = kBegin + 500, .correlation = 2, .shape = two});
  second.kernel({.begin_ns = kBegin + 500, .end_ns = kBegin + 600, .correlation = 3, .shape = two});
  log.process({.ts_ns = kBegin + 900'000, .pid = 77, .ended = 1}, "/usr/bin/python3", "");
  Recording recording;
  recording.info(info_of(77)).log("77.log", first.log.bytes()).log("77.1.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, launch_begin_ns FROM kernel ORDER BY begin_ns"),
              ElementsAre("one|1000100", "two|1000120", "two|1000360"));
  EXPECT_THAT(recording.rows("SELECT count(DISTINCT stack_id), count(stack_id) FROM kernel"), ElementsAre("1|2"));
  EXPECT_THAT(recording.rows("SELECT count(*) FROM device WHERE kind = 'gpu'"), ElementsAre("1"));
}

// More executions than wait at once: those that came in order are joined all the same, and memory does not grow.
TEST(CudaIngest, MoreThanFitsIntoTheQueue) {
  Process process(77);
  const auto shape = process.cuda.kernel_shape("kernel");
  constexpr std::uint32_t kLaunches = 150'000;  // 2^16 wait
  std::vector<wire::Record> launches, kernels;
  const auto flush = [&] {
    process.log.add(1, launches);
    process.log.add(0, kernels);
    launches.clear();
    kernels.clear();
  };
  for (std::uint32_t i = 1; i <= kLaunches; ++i) {
    const std::uint64_t at_ns = kBegin + 10 * i;
    wire::Record launch = LogBuilder::make(wire::RecordKind::kLaunch);
    launch.launch = {.begin_ns = at_ns, .end_ns = at_ns + 5, .correlation = 3 * i};
    launches.push_back(launch);
    wire::Record kernel = LogBuilder::make(wire::RecordKind::kKernel);
    kernel.kernel = {.begin_ns = at_ns + 7, .end_ns = at_ns + 16, .correlation = 3 * i, .shape = shape};
    kernels.push_back(kernel);
    if (launches.size() == 1000) flush();
  }
  Recording recording;
  recording.info(info_of(77)).log("77.log", process.bytes());
  EXPECT_THAT(recording.rows("SELECT count(*), count(launch_begin_ns), min(begin_ns - launch_begin_ns), "
                             "max(begin_ns - launch_begin_ns) FROM kernel"),
              ElementsAre("150000|150000|7|7"));
}

TEST(CudaLosses, SayWhichCallFailedAndHow) {
  EXPECT_EQ(cupti_error_text((std::uint64_t{2} << 32) | 39),
            "cuptiSubscribe failed with error 39 (another profiler is subscribed)");
  EXPECT_EQ(cupti_error_text((std::uint64_t{900} << 32) | 12345), "a call of CUPTI failed with error 12345");
}

}  // namespace
}  // namespace llmprof::record
