#include "record/log/host_ingest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/file.h"
#include "host/host_log.h"
#include "hw/telemetry/metrics.h"
#include "record/log/reader.h"
#include "record/open_run.h"
#include "record/run/capture.h"
#include "record/testing/folder.h"
#include "record/testing/log_builder.h"
#include "trace/run.h"

namespace llmprof::record {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kBegin = 100'000 * kMs;
constexpr std::uint32_t kRoot = 100, kChild = 101;

// The recorder's log, in few words. Times are milliseconds after the begin of the recording.
class HostLogBuilder {
 public:
  HostLogBuilder() : log_(7, 0, kBegin) {}

  void process(std::uint64_t ms, std::uint32_t pid, const std::string& executable, std::uint64_t ticks = 1) {
    wire::ProcessRecord record{};
    record.ts_ns = at(ms);
    record.pid = pid;
    record.parent_pid = 1;
    record.start_ticks = ticks;
    if (executable.empty()) {
      wire::Record bare = LogBuilder::make(wire::RecordKind::kProcess);
      bare.process = record;
      return log_.add(0, {bare});
    }
    log_.process(record, executable, executable + std::string("\0--token\0hf_secret", 18));
  }
  void ended(std::uint64_t ms, std::uint32_t pid) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kProcess);
    record.process.ts_ns = at(ms);
    record.process.pid = pid;
    record.process.ended = 1;
    log_.add(0, {record});
  }
  void usage(std::uint64_t ms, std::uint32_t pid, std::uint64_t rss) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kUsage);
    record.usage = {.ts_ns = at(ms), .rss_bytes = rss, .user_ns = 10 * ms, .system_ns = ms, .pid = pid, .threads = 2};
    log_.add(0, {record});
  }
  void io(std::uint64_t ms, std::uint32_t pid, std::uint64_t read_bytes) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kIo);
    record.io = {.ts_ns = at(ms), .read_bytes = read_bytes, .written_bytes = 5, .voluntary_switches = 6, .pid = pid};
    record.io.peak_rss_bytes = 999;
    log_.add(0, {record});
  }
  void thread_time(std::uint64_t ms, std::uint32_t tid, wire::ThreadState state, std::uint64_t ns) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kThreadTime);
    record.thread_time = {.ts_ns = at(ms), .time_ns = ns, .pid = kRoot, .tid = tid, .state = state};
    log_.add(0, {record});
  }
  void cpu_group(std::uint64_t ms, std::uint64_t throttled, std::uint32_t quota_us) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kCpuGroup);
    record.cpu_group = {.ts_ns = at(ms), .periods = 10 * ms, .throttled = throttled, .throttled_ns = 5 * ms};
    record.cpu_group.quota_us = quota_us, record.cpu_group.period_us = 100'000, record.cpu_group.pid = kRoot;
    log_.add(0, {record});
  }
  void frame(std::uint32_t id, const std::string& function, wire::FrameKind kind = wire::FrameKind::kNative) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kFrame);
    record.frame = {.id = id, .function = log_.name(function), .file = log_.name("lib.so"), .kind = kind};
    log_.add(0, {record});
  }
  void stack(std::uint32_t id, std::uint32_t parent, std::uint32_t frame) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kStack);
    record.stack = {id, parent, frame};
    log_.add(0, {record});
  }
  void sample(std::uint64_t ms, std::uint32_t pid, std::uint32_t tid, std::uint32_t stack) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kSample);
    record.sample = {.ts_ns = at(ms), .weight_ns = 10 * kMs, .pid = pid, .tid = tid, .stack = stack};
    log_.add(0, {record});
  }
  void end_block() { log_.end_block(); }
  std::string bytes() { return log_.bytes(); }
  LogBuilder& log() { return log_; }

  static std::uint64_t at(std::uint64_t ms) { return kBegin + ms * kMs; }

 private:
  LogBuilder log_;
};

// A capture log with one range on thread 900.
std::string capture_log(std::uint64_t ms, std::uint32_t pid, const std::string& executable, std::uint64_t ticks = 1) {
  LogBuilder log(pid, ticks, HostLogBuilder::at(ms));
  wire::ProcessRecord record{};
  record.ts_ns = HostLogBuilder::at(ms);
  record.pid = pid;
  record.start_ticks = ticks;
  log.process(record, executable, "x");
  log.thread(1, 900, "main", HostLogBuilder::at(ms));
  log.push(1, HostLogBuilder::at(ms), "work");
  log.pop(1, HostLogBuilder::at(ms + 1));
  return log.bytes();
}

class Recording {
 public:
  Recording() : folder_(root_ / "x.llmprof") {
    CaptureInfo info;
    info.llmprof_version = "0.0.0";
    info.command = {"root"};
    info.executable = "/bin/root";
    info.environment = "{}";
    info.root_pid = kRoot;
    info.root_start_ticks = 1;
    info.begin = {static_cast<std::int64_t>(kBegin), 1'700'000'000'000'000'000, 50};
    info.end = ClockPair{static_cast<std::int64_t>(HostLogBuilder::at(1000)), 1'700'000'001'000'000'000, 50};
    info.exit_status = 3;
    info.cpu = {.kind = "cpu", .name = "Test CPU", .units = 2};
    EXPECT_TRUE(base::make_directories(capture_folder(folder_)));
    EXPECT_TRUE(write_capture_info(capture_folder(folder_), info));
  }
  // What the recorder saw of the program: its exec and its end.
  void life(std::int64_t begin_ns, std::int64_t end_ns) {
    auto info = read_capture_info(capture_folder(folder_));
    ASSERT_TRUE(info);
    info->root_begin_ns = begin_ns;
    info->root_end_ns = end_ns;
    EXPECT_TRUE(write_capture_info(capture_folder(folder_), *info));
  }
  std::string log(const std::string& name, const std::string& bytes) {
    return root_.write("x.llmprof/capture/" + name, bytes);
  }
  std::string host_log(const std::string& bytes) { return log(std::string(host::kHostLogName), bytes); }

  // Cells joined by '|', NULL as "-".
  std::vector<std::string> rows(const std::string& sql) {
    if (!run_) {
      auto opened = open_run(folder_, base::no_progress);
      EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
      run_ = std::make_unique<trace::Run>(std::move(*opened));
      const auto findings = trace::check_run(*run_);
      EXPECT_TRUE(findings && findings->empty()) << (findings ? findings->front().what : findings.error().message);
    }
    const auto table = run_->query(sql);
    EXPECT_TRUE(table) << (table ? "" : table.error().message);
    std::vector<std::string> lines;
    for (const auto& row : table ? table->rows : std::vector<std::vector<trace::Value>>()) {
      std::string line;
      for (const trace::Value& value : row) {
        if (!line.empty()) line += "|";
        line += value.is_null()                           ? "-"
                : value.type == trace::Value::Type::kText ? value.text
                                                          : std::to_string(value.as_int());
      }
      lines.push_back(line);
    }
    return lines;
  }

 private:
  TestFolder root_;
  std::string folder_;
  std::unique_ptr<trace::Run> run_;
};

constexpr const char* kUsage =
    "SELECT (u.ts_ns - 100000000000) // 1000000, p.pid, p.executable, u.rss_bytes, u.read_bytes, u.peak_rss_bytes "
    "FROM process_usage AS u JOIN process AS p ON p.id = u.process_id ORDER BY u.ts_ns, p.pid";

TEST(HostIngest, ReadingsBelongToProcessesWithoutALog) {
  Recording recording;
  HostLogBuilder log;
  log.process(10, kRoot, "/bin/root");
  log.usage(10, kRoot, 1000);
  log.process(20, kChild, "/bin/child", 2);
  log.usage(30, kChild, 500);
  log.usage(30, kRoot, 2000);
  log.io(31, kRoot, 4096);
  log.io(32, kChild, host::kUnreadable);
  log.ended(40, kChild);
  log.usage(50, kRoot, 0);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows(kUsage), ElementsAre("10|100|/bin/root|1000|-|-", "30|100|/bin/root|2000|4096|999",
                                                  "30|101|/bin/child|500|-|999", "50|100|/bin/root|0|-|-"));
  EXPECT_THAT(recording.rows("SELECT pid, arguments, injected, exit_status, (end_ns - 100000000000) // 1000000, log "
                             "FROM process ORDER BY pid"),
              ElementsAre("100|/bin/root --token ***|1|3|1000|-", "101|/bin/child --token ***|0|-|40|-"));
  EXPECT_THAT(recording.rows("SELECT name FROM loss"), IsEmpty());
}

TEST(HostIngest, TimesOfThreadsAndOfTheirGroup) {
  Recording recording;
  HostLogBuilder log;
  log.process(10, kRoot, "/bin/root");
  log.thread_time(20, kRoot, wire::ThreadState::kUser, 7);
  log.thread_time(20, kRoot + 5, wire::ThreadState::kRunQueue, 8);
  log.thread_time(30, kRoot, wire::ThreadState::kUnseen, 9);
  log.thread_time(30, kRoot, static_cast<wire::ThreadState>(99), 1);  // of a later version
  log.cpu_group(20, 3, 150'000);
  log.cpu_group(30, 4, 0);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT t.tid, w.state, w.time_ns FROM thread_time AS w JOIN thread AS t ON t.id = "
                             "w.thread_id ORDER BY w.ts_ns, t.tid"),
              ElementsAre("100|user|7", "105|run queue|8", "100|unseen|9"));
  EXPECT_THAT(
      recording.rows(
          "SELECT g.throttled, (g.quota_cpus * 10)::BIGINT, p.pid FROM cpu_group AS g JOIN process AS p ON p.id = "
          "g.process_id ORDER BY g.ts_ns"),
      ElementsAre("3|15|100", "4|-|100"));
  EXPECT_THAT(recording.rows("SELECT name, count FROM loss"), ElementsAre("unknown_record|1"));
}

TEST(HostIngest, ARootThatEndedAtOnceIsKnownAnyway) {
  Recording recording;
  HostLogBuilder log;
  log.process(1, kRoot, "");
  log.usage(2, kRoot, 0);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT pid, executable, arguments FROM process"), ElementsAre("100|/bin/root|root"));
}

TEST(HostIngest, OneRowForAProcessSeenFromBothSides) {
  Recording recording;
  recording.log("a.log", capture_log(60, kRoot, "/bin/root"));
  HostLogBuilder log;
  log.process(10, kRoot, "/bin/root");
  log.usage(10, kRoot, 1000);  // before its first event
  log.usage(90, kRoot, 2000);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT pid, log FROM process"), ElementsAre("100|a.log"));
  EXPECT_THAT(recording.rows("SELECT count(DISTINCT process_id), count(*) FROM process_usage"), ElementsAre("1|2"));
}

constexpr const char* kLives =
    "SELECT executable, (begin_ns - 100000000000) // 1000000, (end_ns - 100000000000) // 1000000 FROM process ORDER BY "
    "begin_ns, executable";

TEST(HostIngest, ALogIsShorterThanTheLifeOfItsProcess) {
  Recording recording;
  recording.life(HostLogBuilder::at(8), HostLogBuilder::at(950));
  recording.log("a.log", capture_log(600, kRoot, "/bin/root"));
  recording.log("b.log", capture_log(300, kChild, "/bin/child", 2));
  HostLogBuilder log;
  log.process(10, kRoot, "/bin/root");
  log.usage(10, kRoot, 1000);
  log.process(200, kChild, "/bin/child", 2);
  log.usage(210, kChild, 1000);
  log.ended(400, kChild);
  log.usage(970, kRoot, 0);  // its last numbers, read after its end
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows(kLives), ElementsAre("/bin/root|8|950", "/bin/child|200|400"));
  EXPECT_THAT(recording.rows("SELECT max(ts_ns - 100000000000) // 1000000 FROM process_usage"), ElementsAre("950"));
}

TEST(HostIngest, AnExecChainLivesFromTheFirstExecToTheEnd) {
  Recording recording;
  recording.life(HostLogBuilder::at(8), HostLogBuilder::at(950));
  recording.log("a.log", capture_log(45, kRoot, "/bin/program"));
  HostLogBuilder log;
  log.process(10, kRoot, "/bin/sh");
  log.process(50, kRoot, "/bin/program");
  log.process(80, kRoot, "/bin/last");
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows(kLives), ElementsAre("/bin/sh|8|50", "/bin/program|45|80", "/bin/last|80|950"));
}

TEST(HostIngest, TheLifeIsKnownWithoutASampler) {
  Recording recording;
  recording.life(HostLogBuilder::at(8), HostLogBuilder::at(950));
  recording.log("a.log", capture_log(600, kRoot, "/bin/root"));
  EXPECT_THAT(recording.rows(kLives), ElementsAre("/bin/root|8|950"));
}

TEST(HostIngest, TimesThatCannotBeAreLeftOut) {
  Recording recording;
  recording.life(INT64_MAX, INT64_MIN);
  recording.log("a.log", capture_log(600, kRoot, "/bin/root"));
  EXPECT_THAT(recording.rows(kLives), ElementsAre("/bin/root|600|1000"));
}

TEST(HostIngest, AnExecChainHasOneRowPerImage) {
  Recording recording;
  // sh (no events), then the program with a log, then another without. The log began before the sampler noticed.
  recording.log("a.log", capture_log(45, kRoot, "/bin/program"));
  HostLogBuilder log;
  log.process(10, kRoot, "/bin/sh");
  log.process(50, kRoot, "/bin/program");
  log.process(80, kRoot, "/bin/last");
  for (const std::uint64_t ms : {20, 47, 60, 90}) log.usage(ms, kRoot, ms);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT executable, log FROM process ORDER BY begin_ns"),
              ElementsAre("/bin/sh|-", "/bin/program|a.log", "/bin/last|-"));
  EXPECT_THAT(recording.rows("SELECT u.rss_bytes, p.executable FROM process_usage AS u JOIN process AS p ON p.id = "
                             "u.process_id ORDER BY u.ts_ns"),
              ElementsAre("20|/bin/sh", "47|/bin/program", "60|/bin/program", "90|/bin/last"));
}

TEST(HostIngest, APidUsedTwiceIsTwoProcesses) {
  Recording recording;
  HostLogBuilder log;
  log.process(10, kChild, "/bin/a", 5);
  log.usage(20, kChild, 1);
  log.ended(30, kChild);
  log.process(40, kChild, "/bin/a", 9);
  log.usage(50, kChild, 2);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT count(DISTINCT process_id) FROM process_usage"), ElementsAre("2"));
}

TEST(HostIngest, StacksAreWrittenInnermostFirstAndOnce) {
  Recording recording;
  recording.log("a.log", capture_log(5, kRoot, "/bin/root"));
  HostLogBuilder log;
  log.process(1, kRoot, "/bin/root");
  log.frame(1, "main");
  log.frame(2, "forward", wire::FrameKind::kPython);
  log.frame(3, "sgemm");
  log.stack(1, 0, 1);
  log.stack(2, 1, 2);
  log.stack(3, 2, 3);  // main > forward > sgemm
  log.sample(10, kRoot, 900, 3);
  log.sample(20, kRoot, 900, 3);
  log.sample(30, kRoot, 901, 2);  // a thread without events
  log.sample(40, kRoot, 901, 0);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT s.stack_id - (SELECT min(stack_id) FROM stack) > 0, s.depth, f.kind, f.function "
                             "FROM stack AS s JOIN frame AS f ON f.id = s.frame_id ORDER BY s.stack_id, s.depth"),
              ElementsAre("0|0|native|sgemm", "0|1|python|forward", "0|2|native|main", "1|0|python|forward",
                          "1|1|native|main"));
  EXPECT_THAT(recording.rows("SELECT t.tid, t.name, s.stack_id IS NULL, s.weight_ns FROM sample AS s JOIN thread AS t "
                             "ON t.id = s.thread_id ORDER BY s.ts_ns"),
              ElementsAre("900|main|0|10000000", "900|main|0|10000000", "901|-|0|10000000", "901|-|1|10000000"));
  EXPECT_THAT(recording.rows("SELECT count(*), count(DISTINCT process_id) FROM thread"), ElementsAre("2|1"));
}

TEST(HostIngest, WhatPointsNowhereIsCountedNotTrusted) {
  Recording recording;
  HostLogBuilder log;
  log.process(1, kRoot, "/bin/root");
  log.frame(1, "main");
  log.stack(1, 0, 1);
  log.stack(2, 99, 1);  // unknown caller
  log.stack(3, 0, 99);  // unknown frame
  log.stack(4, 4, 1);   // calls itself
  log.sample(10, kRoot, 900, 1);
  for (const std::uint32_t stack : {2, 3, 4, 77}) log.sample(20, kRoot, 900, stack);
  log.sample(30, 555, 555, 1);     // a process that nobody saw
  log.usage(9'000'000, kRoot, 1);  // hours after the end
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT count(*), count(stack_id) FROM sample"), ElementsAre("6|2"));
  EXPECT_THAT(recording.rows("SELECT pid, executable FROM process ORDER BY pid"),
              ElementsAre("100|/bin/root", "555|-"));
  EXPECT_THAT(recording.rows("SELECT name, count, detail FROM loss ORDER BY name"),
              ElementsAre("bad_time|1|recorder.log", "lost_name|4|recorder.log: stacks of samples"));
}

TEST(HostIngest, AStackWithoutEndIsNotBelieved) {
  Recording recording;
  HostLogBuilder log;
  log.process(1, kRoot, "/bin/root");
  log.frame(1, "again");
  for (std::uint32_t i = 1; i <= 3000; ++i) log.stack(i, i - 1, 1);
  log.sample(10, kRoot, 900, 2048);
  log.sample(20, kRoot, 900, 2049);
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT count(*), max(depth) FROM stack"), ElementsAre("2048|2047"));
  EXPECT_THAT(recording.rows("SELECT count(*), count(stack_id) FROM sample"), ElementsAre("2|1"));
}

// Records of any content, ids and pids from a few so that they meet: the run stays consistent, whatever they say.
TEST(HostIngest, AnyRecordsMakeAConsistentRun) {
  Recording recording;
  LogBuilder log(7, 0, kBegin);
  std::mt19937_64 random(1);
  constexpr wire::RecordKind kKinds[] = {
      wire::RecordKind::kProcess, wire::RecordKind::kThread, wire::RecordKind::kUsage,
      wire::RecordKind::kIo,      wire::RecordKind::kFrame,  wire::RecordKind::kStack,
      wire::RecordKind::kSample,  wire::RecordKind::kRange,  wire::RecordKind::kCost};
  for (int i = 0; i < 20'000; ++i) {
    wire::Record record = LogBuilder::make(kKinds[random() % std::size(kKinds)]);
    const wire::FieldList fields = wire::fields_of(static_cast<std::uint64_t>(record.kind));
    for (std::size_t f = 0; f < fields.count; ++f) {
      const bool small = random() % 4 != 0;
      const std::uint64_t value = small ? random() % 20 : random() >> (random() % 64);
      const std::uint8_t bits = static_cast<std::uint8_t>(8 * fields.fields[f].width);
      wire::store_field(record, fields.fields[f], bits == 64 ? value : value & ((1ull << bits) - 1));
    }
    const bool timed = record.kind != wire::RecordKind::kFrame && record.kind != wire::RecordKind::kStack;
    if (timed && random() % 8 != 0) wire::store_field(record, fields.fields[0], HostLogBuilder::at(random() % 1000));
    log.add(0, {record});
  }
  recording.host_log(log.bytes());
  EXPECT_THAT(recording.rows("SELECT count(*) > 100 FROM sample"), ElementsAre("1"));
  EXPECT_THAT(recording.rows("SELECT count(*) > 100 FROM process_usage"), ElementsAre("1"));
}

TEST(HostIngest, OfATornLogThePrefixIsKept) {
  Recording recording;
  HostLogBuilder log;
  log.process(1, kRoot, "/bin/root");
  log.usage(10, kRoot, 1);
  log.end_block();
  const std::size_t whole = log.bytes().size();
  log.usage(20, kRoot, 2);
  const std::string path = recording.host_log(log.bytes().substr(0, whole + 30));
  const auto check = check_log(path);
  ASSERT_TRUE(check) << check.error().message;
  EXPECT_FALSE(check->whole());
  EXPECT_THAT(check->records, ElementsAre(std::pair<std::string, std::int64_t>("process", 1),
                                          std::pair<std::string, std::int64_t>("usage", 1)));
  EXPECT_THAT(recording.rows("SELECT rss_bytes FROM process_usage"), ElementsAre("1"));
  EXPECT_THAT(recording.rows("SELECT name, count, detail FROM loss"), ElementsAre("torn_tail|30|recorder.log"));
}

// Readings of a GPU, of the CPU and of a process's memory; those of a stranger's process are not the run's.
TEST(HostIngest, ReadingsAreOfDevices) {
  Recording recording;
  HostLogBuilder host;
  host.process(1, kRoot, "/bin/root");
  LogBuilder& log = host.log();
  const auto device = [&](std::uint32_t number, std::uint64_t uuid, const std::string& name) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kTelemetryDevice);
    record.telemetry_device = {uuid, uuid, log.name(name), number};
    log.add(0, {record});
  };
  const auto reading = [&](std::uint32_t number, const std::string& metric, double value, std::uint32_t pid = 0) {
    wire::Record record = LogBuilder::make(wire::RecordKind::kTelemetry);
    record.telemetry = {HostLogBuilder::at(5), value, log.name(metric), number, pid};
    log.add(0, {record});
  };
  device(0, 7, "NVIDIA H200");
  device(9, 0, "Test CPU");
  const std::string power(hw::info_of(hw::MetricId::kPower).name),
      memory(hw::info_of(hw::MetricId::kProcessMemory).name);
  const std::string cpu(hw::info_of(hw::MetricId::kCpuUtilization).name);
  reading(0, power, 350);
  reading(0, memory, 1024, kRoot);
  reading(0, memory, 2048, 4711);
  reading(9, cpu, 12);
  reading(3, power, 1);  // no such device
  reading(0, "no_such_metric", 1);
  wire::Record note = LogBuilder::make(wire::RecordKind::kNote);
  note.note = {HostLogBuilder::at(6), log.name("telemetry"), log.name("slowed down")};
  log.add(0, {note});
  recording.host_log(host.bytes());
  EXPECT_THAT(
      recording.rows("SELECT d.kind, uuid, value::BIGINT, pid FROM telemetry t JOIN device d ON d.id = device_id LEFT "
                     "JOIN process p ON p.id = t.process_id ORDER BY value DESC"),
      ElementsAre("gpu|GPU-00000000-0000-0007-0000-000000000007|1024|100",
                  "gpu|GPU-00000000-0000-0007-0000-000000000007|350|-", "cpu|-|12|-"));
  EXPECT_THAT(recording.rows("SELECT process_id, subject, text FROM note"), ElementsAre("-|telemetry|slowed down"));
  EXPECT_THAT(recording.rows("SELECT name, count FROM loss"), ElementsAre("unknown_record|2"));
}

TEST(HostIngest, AForeignFileIsALossNotAnError) {
  Recording recording;
  recording.host_log("this is no log");
  EXPECT_THAT(recording.rows("SELECT name FROM loss"), ElementsAre("log_unreadable"));
  EXPECT_THAT(recording.rows("SELECT pid, injected FROM process"), ElementsAre("100|1"));  // the root is known anyway
}

}  // namespace
}  // namespace llmprof::record
