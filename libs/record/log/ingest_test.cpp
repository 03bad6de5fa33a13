#include "record/run/ingest.h"

#include <gmock/gmock.h>
#include <llmprof/annotate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "record/log/names.h"
#include "record/open_run.h"
#include "record/run/capture.h"
#include "record/testing/folder.h"
#include "record/testing/log_builder.h"
#include "record/testing/recording.h"
#include "trace/run.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wire::RangeOp;

void begin_process(LogBuilder& log, std::uint64_t pid) {
  log.process({.ts_ns = kBegin, .pid = pid, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3",
              std::string("python3\0--api-key=hunter2\0serve.py\0", 34));
  log.thread(1, pid, "main", kBegin + 10);
}
void end_process(LogBuilder& log, std::uint64_t pid) {
  log.process({.ts_ns = kBegin + 900'000, .pid = pid, .ended = 1}, "/usr/bin/python3", "");
}

TEST(Ingest, PairsPushAndPopPerThreadAndDomain) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.thread(2, 78, "worker", kBegin + 20);
  log.domain(5, "llmprof");
  log.category(5, 2, "stage");
  log.push(1, kBegin + 100, "decode",
           {.payload = 42, .category = 2, .domain = 5, .payload_type = wire::PayloadType::kUnsigned});
  log.push(1, kBegin + 200, "inner", {.category = 9});
  log.push(2, kBegin + 210, "other thread");
  log.range(1, RangeOp::kMark, kBegin + 250, "token",
            {.payload = __builtin_bit_cast(std::uint64_t, 1.5), .payload_type = wire::PayloadType::kDouble});
  log.pop(1, kBegin + 300);     // default domain: "inner"
  log.pop(1, kBegin + 400, 5);  // "decode"
  log.pop(2, kBegin + 500);
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT r.name, r.kind, r.begin_ns, r.end_ns, p.name, r.depth, r.domain, r.category, "
                             "r.payload, r.payload_double, r.closed, t.tid FROM range r LEFT JOIN range p "
                             "ON p.id = r.parent_id JOIN thread t ON t.id = r.thread_id ORDER BY r.begin_ns"),
              ElementsAre("decode|push_pop|1000100|1000400|-|0|llmprof|stage|42|-|true|77",
                          "inner|push_pop|1000200|1000300|decode|1|-|9|-|-|true|77",
                          "other thread|push_pop|1000210|1000500|-|0|-|-|-|-|true|78",
                          "token|mark|1000250|1000250|inner|2|-|-|-|1.500000|true|77"));
  EXPECT_THAT(recording.rows(kLosses), IsEmpty());
  EXPECT_FALSE(base::is_directory(capture_folder(recording.folder())));
}

TEST(Ingest, MakesRequestsOfTheMarksOfAnEngine) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.thread(2, 78, "api", kBegin + 20);
  log.domain(5, "llmprof");
  log.category(5, 2, "step");
  log.category(5, 8, "request");
  const auto mark = [&](std::uint32_t thread, std::uint64_t ts_ns, const char* id, std::uint32_t event,
                        std::uint32_t tokens, std::uint32_t context) {
    log.range(thread, RangeOp::kMark, ts_ns, id,
              {.payload = llmprof_request_payload(event, tokens, context),
               .category = 8,
               .domain = 5,
               .payload_type = wire::PayloadType::kUnsigned});
  };
  // The engine's thread first: the other one, which took the requests in, is stored later.
  log.push(1, kBegin + 200, "mixed", {.category = 2, .domain = 5});
  mark(1, kBegin + 210, "r1", LLMPROF_REQUEST_SCHEDULED, 16, 0);
  mark(1, kBegin + 220, "r1", LLMPROF_REQUEST_MEMBER, 84, 100);
  mark(1, kBegin + 230, "", LLMPROF_ENGINE_PADDED, 96, 0);
  log.pop(1, kBegin + 300, 5);
  mark(1, kBegin + 310, "r1", LLMPROF_REQUEST_OUTPUT, 1, 0);
  mark(1, kBegin + 315, "r1", LLMPROF_REQUEST_PREEMPTED, 0, 0);
  mark(1, kBegin + 320, "r1", LLMPROF_REQUEST_SCHEDULED, 96, 0);
  mark(1, kBegin + 330, "r1", LLMPROF_REQUEST_OUTPUT, 2, 0);
  mark(1, kBegin + 340, "r1", LLMPROF_REQUEST_FINISHED, LLMPROF_LENGTH, 3);
  mark(1, kBegin + 350, "r2", 99, 0, 0);  // of a newer version
  mark(2, kBegin + 100, "r1", LLMPROF_REQUEST_QUEUED, 100, 3);
  mark(2, kBegin + 360, "r3", LLMPROF_REQUEST_OUTPUT, 1, 0);  // it was queued before the recording
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, source, arrival_ns, arrival_seen, scheduled_ns, first_token_ns, "
                             "last_token_ns, end_ns, prompt_tokens, output_tokens, cached_tokens, preemptions, status "
                             "FROM request ORDER BY arrival_ns"),
              ElementsAre("r1|server|1000100|true|1000210|1000310|1000330|1000340|100|3|16|1|length",
                          "r3|server|1000360|false|-|1000360|1000360|-|0|1|0|0|-"));
  EXPECT_THAT(recording.rows("SELECT event, tokens, context, q.name, r.name FROM request_event e LEFT JOIN request q "
                             "ON q.id = e.request_id LEFT JOIN range r ON r.id = e.range_id WHERE e.range_id IS NOT NULL "
                             "ORDER BY e.ts_ns"),
              ElementsAre("scheduled|16|0|r1|mixed", "member|84|100|r1|mixed", "padded|96|0|-|mixed"));
}

TEST(Ingest, PairsStartAndEndAcrossThreadsInAnyOrderOfStorage) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.thread(2, 78, "worker", kBegin + 20);
  log.range(2, RangeOp::kEnd, kBegin + 300, "", {.correlation = 7});  // stored before its start
  log.range(1, RangeOp::kStart, kBegin + 100, "request", {.correlation = 7});
  log.range(1, RangeOp::kStart, kBegin + 110, "later", {.correlation = 8});
  log.range(2, RangeOp::kEnd, kBegin + 400, "", {.correlation = 8});
  log.range(2, RangeOp::kEnd, kBegin + 500, "", {.correlation = 99});  // nobody's
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT r.name, kind, r.begin_ns, r.end_ns, tid FROM range r JOIN thread t "
                             "ON t.id = thread_id ORDER BY r.begin_ns"),
              ElementsAre("request|start_end|1000100|1000300|77", "later|start_end|1000110|1000400|77"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("unbalanced_pop|1|"));
}

TEST(Ingest, ClosesOpenRangesAtTheLastEvent) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.push(1, kBegin + 100, "outer");
  log.push(1, kBegin + 200, "inner");
  log.range(1, RangeOp::kStart, kBegin + 300, "started", {.correlation = 1});
  log.pop(1, kBegin + 400);
  log.range(1, RangeOp::kMark, kBegin + 700, "last");
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, end_ns, closed FROM range ORDER BY begin_ns"),
              ElementsAre("outer|1000700|false", "inner|1000400|true", "started|1000700|false", "last|1000700|true"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("abnormal_end|1|", "open_range|2|"));
}

TEST(Ingest, NeverPairsAcrossAGap) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.push(1, kBegin + 100, "before");
  log.end_block();
  log.drop(true);
  log.pop(1, kBegin + 150);
  log.push(1, kBegin + 160, "lost");
  log.drop(false);
  log.skip_block();
  log.push(1, kBegin + 300, "after");
  log.pop(1, kBegin + 400);
  log.pop(1, kBegin + 500);  // closes the push that was lost: it must not close "before"
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, end_ns, closed FROM range ORDER BY begin_ns"),
              ElementsAre("before|1000100|false", "after|1000400|true"));
  EXPECT_THAT(recording.rows("SELECT name, count FROM loss ORDER BY name"),
              ElementsAre("missing_block|1", "open_range|1", "unbalanced_pop|1"));
}

TEST(Ingest, ACollectorThatCouldNotStartIsALoss) {
  Recording recording;
  recording.info(info_of(77));
  const std::string link = capture_folder(recording.folder()) + "/host-78-1-0.off";
  ASSERT_EQ(::symlink("24 log", link.c_str()), 0);
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("collector_off|1|Too many open files: log"));
}

TEST(Ingest, DroppedEventsDoNotShiftTheNesting) {
  LogBuilder log(77);
  begin_process(log, 77);
  const auto dropped = [&](auto&& event) {
    log.drop(true);
    event();
    log.drop(false);
  };
  log.push(1, kBegin + 100, "outer");
  dropped([&] { log.push(1, kBegin + 110, "lost"); });
  log.push(1, kBegin + 120, "inside the lost one");
  log.pop(1, kBegin + 130);
  log.pop(1, kBegin + 140);  // of "lost": must not close "outer"
  log.push(1, kBegin + 200, "loses its pop");
  log.range(1, RangeOp::kMark, kBegin + 210, "seen last");
  dropped([&] { log.pop(1, kBegin + 220); });
  log.push(1, kBegin + 300, "next");
  dropped([&] { log.pop(1, kBegin + 310); });
  log.pop(1, kBegin + 400);  // of "outer"
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, end_ns - 1000000, depth, closed FROM range ORDER BY begin_ns"),
              ElementsAre("outer|400|0|false", "inside the lost one|130|1|true", "loses its pop|210|1|false",
                          "seen last|210|2|true", "next|300|1|false"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("open_range|3|", "unbalanced_pop|1|"));
}

// A pop and the next push at the same level are both lost: levels cannot tell, but the count of dropped records can.
TEST(Ingest, RangesWithAGapInsideAreNotCertain) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.push(1, kBegin + 100, "before the gap");
  log.drop(true);
  log.pop(1, kBegin + 110);
  log.push(1, kBegin + 120, "lost");
  log.drop(false);
  log.pop(1, kBegin + 200);  // of "lost"
  log.push(1, kBegin + 300, "after");
  log.pop(1, kBegin + 310);
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, end_ns - 1000000, closed FROM range ORDER BY begin_ns"),
              ElementsAre("before the gap|200|false", "after|310|true"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("open_range|1|"));
}

TEST(Ingest, ThreadsGetTheNamesTheyWereGiven) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.thread(2, 78, "python3", kBegin + 20);
  log.thread(2, 78, "self-named", kBegin + 30);
  log.thread(3, 79, "python3", kBegin + 20);
  log.thread(0, 79, "named by another", kBegin + 40);
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT tid, name FROM thread ORDER BY tid"),
              ElementsAre("77|main", "78|self-named", "79|named by another"));
}

TEST(Ingest, BlasCallsAreKernelsOfTheCpu) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.gemm(1, "scipy_cblas_sgemm64_",
           {.begin_ns = kBegin + 100,
            .end_ns = kBegin + 350,
            .m = 8,
            .n = 512,
            .k = 128,
            .batch = 1,
            .type = wire::ElementType::kFloat32,
            .layout = wire::Layout::kRowMajor,
            .trans_b = wire::Transpose::kYes});
  log.gemm(1, "dgemv_",
           {.begin_ns = kBegin + 400,
            .end_ns = kBegin + 450,
            .m = 16,
            .n = 1,
            .k = 32,
            .batch = 1,
            .type = wire::ElementType::kFloat64});
  log.gemm(1, "sgemm_",
           {.begin_ns = kBegin + 500, .end_ns = kBegin + 499, .m = 1, .n = 1, .k = 1, .batch = 1});  // backwards
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(
      recording.rows("SELECT k.name, d.kind, d.name, k.begin_ns, k.end_ns, g.function, g.library, m, n, k, batch, "
                     "type_a, layout, transpose_a, transpose_b, g.begin_ns = k.begin_ns FROM kernel k "
                     "JOIN device d ON d.id = device_id JOIN gemm g ON g.kernel_id = k.id ORDER BY k.begin_ns"),
      ElementsAre("sgemm|cpu|Test CPU|1000100|1000350|scipy_cblas_sgemm64_|/usr/lib/libopenblas.so.0|"
                  "8|512|128|1|float32|row|n|t|true",
                  "dgemv|cpu|Test CPU|1000400|1000450|dgemv_|/usr/lib/libopenblas.so.0|"
                  "16|1|32|1|float64|column|n|n|true"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("bad_time|1|"));
  EXPECT_THAT(recording.rows("SELECT quantity, type, value, source FROM peak"),
              ElementsAre("flops|float32|100000000000.000000|measured"));
}

TEST(Ingest, GpusComeWithTheirPeaks) {
  CaptureInfo info = info_of(77);
  info.gpus.push_back({{.kind = "gpu", .name = "Tesla T4", .units = 40, .driver = "575.1"},
                       {{"flops", "float16", 65e12, "FLOP/s", "spec", "dense, datasheet"},
                        {"bandwidth", "read", 320e9, "B/s", "spec", "datasheet"}}});
  Recording recording;
  recording.info(info);
  EXPECT_THAT(recording.rows("SELECT d.kind, d.name, d.units, d.driver, p.type, (p.value / 1e9)::BIGINT, p.source "
                             "FROM device d JOIN peak p ON p.device_id = d.id ORDER BY d.id, p.value"),
              ElementsAre("cpu|Test CPU|2|-|float32|100|measured", "gpu|Tesla T4|40|575.1|read|320|spec",
                          "gpu|Tesla T4|40|575.1|float16|65000|spec"));
}

TEST(Ingest, BadTimesAreCountedAndCostNoOtherRange) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.push(1, kBegin + 100, "outer");
  log.push(1, std::uint64_t{1} << 62, "far begin");
  log.pop(1, kBegin + 150);
  log.push(1, kBegin + 200, "far end");
  log.pop(1, std::uint64_t{1} << 62);
  log.pop(1, kBegin + 400);
  log.range(1, RangeOp::kMark, std::uint64_t{1} << 62, "far mark");
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, begin_ns, end_ns, depth, closed FROM range ORDER BY id"),
              ElementsAre("outer|1000100|1000400|0|true", "far begin|1000100|1000100|1|false",
                          "far end|1000200|1000200|1|false"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("bad_time|3|"));
}

TEST(Ingest, LostNamesAndUnknownThingsAreLosses) {
  LogBuilder log(77);
  begin_process(log, 77);
  wire::Record record = LogBuilder::make(wire::RecordKind::kRange);
  record.range = {.ts_ns = kBegin + 100, .name = 123, .domain = 8, .op = RangeOp::kMark};
  log.add(1, {record, record});  // the same undefined name twice counts once
  record.range.op = static_cast<RangeOp>(77);
  log.add(1, {record});
  log.loss(wire::LossKind::kBufferFull, 40);
  log.loss(wire::LossKind::kBufferFull, 2);
  log.loss(wire::LossKind::kBlasNotHooked, 1, log.name("/opt/libmkl_rt.so"));
  log.loss(static_cast<wire::LossKind>(999), 1);
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT DISTINCT name, domain FROM range"),
              ElementsAre("<lost name 123>|<lost domain 8>"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("blas_not_hooked|1|/opt/libmkl_rt.so", "buffer_full|42|",
                                                   "lost_name|2|", "unknown_record|2|"));
  EXPECT_THAT(recording.rows("SELECT DISTINCT meaning = '' OR severity = '' OR unit = '' FROM loss"),
              ElementsAre("false"));
}

TEST(Ingest, EveryProcessImageIsARow) {
  LogBuilder parent(77), image1(90, 5, kBegin + 10), image2(90, 5, kBegin + 500);
  begin_process(parent, 77);
  parent.push(1, kBegin + 100, "parent");
  parent.pop(1, kBegin + 200);
  end_process(parent, 77);
  begin_process(image1, 90);  // execs: no end record, but a second log of the same process
  image1.push(1, kBegin + 300, "first image");
  begin_process(image2, 90);
  image2.push(1, kBegin + 600, "second image");
  image2.pop(1, kBegin + 700);
  end_process(image2, 90);
  Recording recording;
  recording.info(info_of(77)).log("a", image2.bytes()).log("b", image1.bytes()).log("c", parent.bytes());
  EXPECT_THAT(
      recording.rows("SELECT pid, injected, exit_status, log, (SELECT count(*) FROM range r WHERE r.process_id = p.id) "
                     "FROM process p ORDER BY log"),
      ElementsAre("90|true|-|a|1", "90|true|-|b|1", "77|true|3|c|1"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("abnormal_end|1|", "open_range|1|"));
  EXPECT_THAT(recording.rows("SELECT count(*) FROM (SELECT id FROM range UNION ALL SELECT id FROM thread UNION ALL "
                             "SELECT id FROM process UNION ALL SELECT id FROM device) GROUP BY id HAVING count(*) > 1"),
              IsEmpty());
}

TEST(Ingest, SecretsStayOutOfTheRun) {
  LogBuilder log(77);
  begin_process(log, 77);
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT arguments, executable, host FROM process"),
              ElementsAre("python3 --api-key=*** serve.py|/usr/bin/python3|host1"));
  EXPECT_EQ(recording.run().info().command, (std::vector<std::string>{"python3", "serve.py"}));
}

TEST(Ingest, AProgramWithoutEventsIsStillARun) {
  Recording recording;
  CaptureInfo info = info_of(77);
  info.injectable = false;
  info.losses = {{trace::Loss::kNotInjected, 1, "/bin/x is statically linked"}};
  recording.info(info);
  EXPECT_THAT(recording.rows("SELECT pid, injected, exit_status, arguments FROM process"),
              ElementsAre("77|false|3|python3 serve.py"));
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("not_injected|1|/bin/x is statically linked"));
  EXPECT_THAT(recording.rows("SELECT ts_ns, wall_ns FROM clock_sync ORDER BY ts_ns"),
              ElementsAre("1000000|1700000000000000000", "2000000|1700000000001000000"));
}

TEST(Ingest, UnreadableLogsAndTornTailsAreLosses) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.end_block();
  log.push(1, kBegin + 100, "torn");
  const std::string whole = log.bytes();
  Recording recording;
  recording.info(info_of(77)).log("77.log", whole.substr(0, whole.size() - 3)).log("bad.log", "nonsense");
  EXPECT_THAT(recording.rows("SELECT name, severity FROM loss ORDER BY name"),
              ElementsAre("abnormal_end|info", "log_unreadable|data_loss", "torn_tail|data_loss"));
}

TEST(Ingest, WithoutRecordJsonTheLogsAreReadAllTheSame) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.push(1, kBegin + 100, "a");
  log.pop(1, kBegin + 200);
  end_process(log, 77);
  Recording recording;
  recording.log("77.log", log.bytes());
  EXPECT_THAT(recording.rows("SELECT name, end_ns - begin_ns FROM range"), ElementsAre("a|100"));
}

TEST(Ingest, CanBeDoneAgainAfterAnInterrupt) {
  LogBuilder log(77);
  begin_process(log, 77);
  log.push(1, kBegin + 100, "a");
  log.pop(1, kBegin + 200);
  end_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  const auto stopped = ingest(recording.folder(), {}, [](const base::ProgressUpdate&) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_TRUE(base::is_directory(capture_folder(recording.folder())));
  EXPECT_FALSE(base::is_file(recording.folder() + "/run.json"));
  EXPECT_FALSE(base::is_directory(recording.folder() + "/tables"));
  // Killed instead: half-written tables stay behind and must not disturb.
  ASSERT_TRUE(base::make_directories(recording.folder() + "/tables"));
  ASSERT_TRUE(base::write_file(recording.folder() + "/tables/range.parquet", "half"));
  EXPECT_THAT(recording.rows("SELECT name FROM range"), ElementsAre("a"));
}

TEST(Ingest, KeepsTheCaptureWhenAsked) {
  LogBuilder log(77);
  begin_process(log, 77);
  Recording recording;
  recording.info(info_of(77)).log("77.log", log.bytes());
  ASSERT_TRUE(ingest(recording.folder(), {.keep_capture = true}, base::no_progress));
  EXPECT_TRUE(base::is_file(capture_folder(recording.folder()) + "/77.log"));
  EXPECT_THAT(recording.rows("SELECT count(*) FROM process"), ElementsAre("1"));
}

// A busy machine may take its time to remove a process that has said its end.
TEST(Ingest, AProcessThatSaidItsEndIsNotStillRunning) {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  LogBuilder log(pid, static_cast<std::uint64_t>(start_ticks(::getpid())));
  begin_process(log, pid);
  end_process(log, pid);
  Recording recording;
  recording.info(info_of(77)).log("ended.log", log.bytes());
  EXPECT_THAT(recording.rows(kLosses), ElementsAre());
}

TEST(Ingest, ALivingProcessIsReportedAsStillRunning) {
  const std::int64_t ticks = start_ticks(::getpid());
  ASSERT_NE(ticks, 0);
  LogBuilder log(static_cast<std::uint64_t>(::getpid()), static_cast<std::uint64_t>(ticks));
  begin_process(log, static_cast<std::uint64_t>(::getpid()));
  const std::string bytes = log.bytes() + "BL";  // in the middle of writing: no torn tail
  Recording recording;
  recording.info(info_of(77)).log("live.log", bytes);
  EXPECT_THAT(recording.rows(kLosses), ElementsAre("still_running|1|"));
}

TEST(OpenRun, WaitsForTheProgramOfAKilledRecorder) {
  CaptureInfo info = info_of(::getpid());
  info.root_start_ticks = start_ticks(::getpid());
  info.end.reset();
  Recording recording;
  recording.info(info);
  const auto refused = open_run(recording.folder(), base::no_progress);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("still running"), std::string::npos);
  info.root_start_ticks += 1;  // another process by now
  recording.info(info);
  EXPECT_TRUE(open_run(recording.folder(), base::no_progress));
}

TEST(OpenRun, RefusesARecordingInProgress) {
  Recording recording;
  recording.info(info_of(77));
  {
    const auto lock = CaptureLock::take(capture_folder(recording.folder()));
    ASSERT_TRUE(lock);
    const auto refused = open_run(recording.folder(), base::no_progress);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  }
  EXPECT_TRUE(open_run(recording.folder(), base::no_progress));
}

TEST(LogNames, BlasRoutineOfEverySpelling) {
  for (const char* spelling : {"cblas_sgemm", "sgemm_", "sgemm", "cblas_sgemm64_", "scipy_cblas_sgemm64_", "sgemm_64_",
                               "sgemm_64", "cblas_sgemm_64", "scipy_sgemm_64_"}) {
    EXPECT_EQ(blas_routine(spelling), "sgemm") << spelling;
  }
  EXPECT_EQ(blas_routine("cblas_dgemm_batch"), "dgemm_batch");
  EXPECT_EQ(blas_routine("<lost name 3>"), "<lost name 3>");
}

TEST(CaptureInfo, SurvivesTheFile) {
  const TestFolder folder;
  CaptureInfo info = info_of(77);
  info.losses = {{trace::Loss::kExistingInjection, 1, "LD_PRELOAD=/x.so"}};
  info.cpu.clock_mhz = 2450.5;
  ASSERT_TRUE(write_capture_info(folder.path(), info));
  const auto read = read_capture_info(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->command, info.command);
  EXPECT_EQ(read->root_pid, 77);
  EXPECT_EQ(read->end->raw_ns, info.end->raw_ns);
  EXPECT_EQ(read->exit_status, 3);
  EXPECT_EQ(read->cpu.name, "Test CPU");
  EXPECT_EQ(read->cpu.clock_mhz, 2450.5);
  ASSERT_EQ(read->peaks.size(), 1u);
  EXPECT_EQ(read->peaks[0].value, 1e11);
  ASSERT_EQ(read->losses.size(), 1u);
  EXPECT_EQ(read->losses[0].name, trace::Loss::kExistingInjection);
  folder.write("record.json", "[1]");
  EXPECT_EQ(read_capture_info(folder.path()).error().code, ErrorCode::kCorruptInput);
  folder.write("record.json", R"({"command": 5, "peaks": [1, {}], "begin": "x", "losses": [{"name": "made up"}]})");
  EXPECT_TRUE(read_capture_info(folder.path()));  // members of the wrong type read as absent
}

}  // namespace
}  // namespace llmprof::record
