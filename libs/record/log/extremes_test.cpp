// Numbers at the ends of their range: times at which a clock might wrap, and counts that no process can reach.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "record/log/ledger.h"
#include "record/open_run.h"
#include "record/run/capture.h"
#include "record/testing/cuda_log_builder.h"
#include "record/testing/folder.h"
#include "record/testing/log_builder.h"
#include "trace/run.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;

// One recording of one log, opened; the integers of a query in one list.
class Recording {
 public:
  Recording(const std::string& log, const CaptureInfo& info) : folder_(root_ / "x.llmprof") {
    EXPECT_TRUE(base::make_directories(capture_folder(folder_)));
    EXPECT_TRUE(write_capture_info(capture_folder(folder_), info));
    root_.write("x.llmprof/capture/a.log", log);
  }
  std::vector<std::int64_t> numbers(const std::string& sql) {
    const auto run = open_run(folder_, base::no_progress);
    EXPECT_TRUE(run) << (run ? "" : run.error().message);
    if (!run) return {};
    const auto table = run->query(sql);
    EXPECT_TRUE(table) << (table ? "" : table.error().message);
    if (!table) return {};
    std::vector<std::int64_t> values;
    for (const auto& row : table->rows) {
      for (const trace::Value& value : row) values.push_back(value.integer);
    }
    return values;
  }

 private:
  TestFolder root_;
  std::string folder_;
};

CaptureInfo info_at(std::int64_t begin_ns) {
  CaptureInfo info;
  info.root_pid = 77;
  info.root_start_ticks = 1;
  info.begin = {begin_ns, 1'700'000'000'000'000'000, 50};
  return info;
}

// A range from 1000 ns before `top` to `top`. 2^47: the bits left beside a 16-bit tag; 2^53: the last integer of a
// double; 2^63 - 1: the last of a signed 64-bit number, 292 years.
TEST(Extremes, TimesDoNotWrap) {
  for (const std::int64_t top : {std::int64_t{1} << 47, std::int64_t{1} << 53, INT64_MAX}) {
    const auto begin = static_cast<std::uint64_t>(top) - 5000;
    LogBuilder log(77, 1, begin);
    log.process({.ts_ns = begin, .pid = 77, .start_ticks = 1}, "/bin/x", "x");
    log.thread(1, 77, "main", begin);
    log.push(1, static_cast<std::uint64_t>(top) - 1000, "late");
    log.gemm(1, "cblas_sgemm",
             {.begin_ns = static_cast<std::uint64_t>(top) - 600,
              .end_ns = static_cast<std::uint64_t>(top) - 100,
              .m = 1,
              .n = 1,
              .k = 1,
              .batch = 1});
    log.pop(1, static_cast<std::uint64_t>(top));
    log.process({.ts_ns = static_cast<std::uint64_t>(top), .pid = 77, .ended = 1}, "/bin/x", "x");
    Recording recording(log.bytes(), info_at(top - 5000));
    EXPECT_THAT(recording.numbers("SELECT begin_ns, end_ns, end_ns - begin_ns FROM range"),
                ElementsAre(top - 1000, top, 1000));
    EXPECT_THAT(recording.numbers("SELECT begin_ns, end_ns FROM kernel"), ElementsAre(top - 600, top - 100));
    EXPECT_THAT(recording.numbers("SELECT count(*) FROM loss"), ElementsAre(0));
  }
}

// record.json and the header of the log may be a stranger's.
TEST(Extremes, WindowsOfHostileClocks) {
  for (const std::int64_t begin : {INT64_MIN, INT64_MIN + 1, std::int64_t{-1}, INT64_MAX}) {
    for (const std::uint64_t header : {std::uint64_t{0}, std::uint64_t{1} << 63, UINT64_MAX}) {
      LogBuilder log(77, 1, header);
      log.push(1, 5, "x");
      log.pop(1, 6);
      CaptureInfo info = info_at(begin);
      if (begin != -1) info.end = info.begin;
      Recording recording(log.bytes(), info);
      EXPECT_THAT(recording.numbers("SELECT count(*) FROM range WHERE end_ns < begin_ns"), ElementsAre(0));
    }
  }
}

// Times near the end of time, and numbers that no process has.
TEST(Extremes, GpuWork) {
  const auto top = static_cast<std::uint64_t>(INT64_MAX);
  LogBuilder log(77, 1, top - 5000);
  CudaLogBuilder cuda(log);
  cuda.device(UINT32_MAX, "x", UINT64_MAX, UINT64_MAX);
  cuda.launch(1, {.begin_ns = top - 900, .end_ns = top, .correlation = UINT32_MAX, .graph = UINT32_MAX});
  cuda.gemm(1, {.begin_ns = top - 1000, .end_ns = top, .m = INT64_MIN, .n = INT64_MAX, .k = -1, .batch = UINT32_MAX});
  cuda.node(1, {.ts_ns = top - 900, .node = UINT64_MAX, .cloned_from = UINT64_MAX, .graph = UINT32_MAX});
  cuda.kernel({.begin_ns = top - 100,
               .end_ns = top,
               .graph_node = UINT64_MAX,
               .correlation = UINT32_MAX,
               .shape = UINT32_MAX,
               .stream = UINT32_MAX,
               .graph = UINT32_MAX,
               .device = UINT16_MAX});
  cuda.kernel({.begin_ns = UINT64_MAX - 1, .end_ns = UINT64_MAX, .correlation = UINT32_MAX});
  cuda.copy({.begin_ns = top - 100,
             .end_ns = top,
             .bytes = UINT64_MAX,
             .correlation = UINT32_MAX,
             .kind = wire::CopyKind{255},
             .host_memory = wire::HostMemory{255}});
  cuda.memory(1, {.ts_ns = top,
                  .address = UINT64_MAX,
                  .bytes = UINT64_MAX,
                  .op = wire::MemoryOp::kAllocate,
                  .kind = wire::MemoryKind{255}});
  cuda.gap(top - 10, UINT64_MAX, "x");
  Recording recording(log.bytes(), info_at(INT64_MAX - 5000));
  EXPECT_THAT(recording.numbers("SELECT end_ns - begin_ns, launch_end_ns - launch_begin_ns FROM kernel"),
              ElementsAre(100, 900));
  EXPECT_THAT(recording.numbers("SELECT bytes FROM copy UNION ALL SELECT bytes FROM allocation"),
              ElementsAre(INT64_MAX / 2, INT64_MAX / 2));
  EXPECT_THAT(recording.numbers("SELECT end_ns FROM gap"), ElementsAre(INT64_MAX));
  EXPECT_THAT(recording.numbers("SELECT count FROM loss WHERE name = 'bad_time'"), ElementsAre(1));
}

// 3 x 2^62 does not fit 63 bits.
TEST(Extremes, CountsOfLossesStopAtTheLargestNumber) {
  LogBuilder log(77);
  for (int i = 0; i < 3; ++i) log.loss(wire::LossKind::kBufferFull, UINT64_MAX);
  Recording recording(log.bytes(), info_at(1'000'000));
  EXPECT_THAT(recording.numbers("SELECT count FROM loss WHERE name = 'buffer_full'"), ElementsAre(INT64_MAX));
}

}  // namespace
}  // namespace llmprof::record
