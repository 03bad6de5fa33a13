// Rows of several files in one run. Importers here are lambdas; what they say goes through frames, as from a child.
#include "importers/assemble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "trace/run.h"
#include "trace/test_run.h"

namespace llmprof::importers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trace::Loss;

constexpr std::int64_t kDay = 86'400'000'000'000;
constexpr std::int64_t kNoon = 20'000 * kDay + kDay / 2;  // of 2024-10-04, UTC: 20000 days after 1970-01-01

Importer importer(std::string_view name, Role role) { return {name, name, role, nullptr, nullptr}; }

class Assembly {
 public:
  explicit Assembly(bool joins = false)
      : folder_(root_ / "x.llmprof"),
        writer_(std::move(*trace::RunWriter::create(folder_))),
        assembler_(writer_, joins) {}

  // What the file says; "" or what the assembler answers to it.
  std::string file(const Importer& importer, const std::function<void(FrameSink&)>& parse,
                   const std::function<void(Frame&, std::vector<std::byte>&)>& spoil = nullptr) {
    assembler_.begin_file(importer, "/data/" + std::string(importer.name) + ".file", 100);
    std::string error;
    FrameSink sink([&](Frame frame, std::span<const std::byte> payload) {
      std::vector<std::byte> copy(payload.begin(), payload.end());
      if (spoil) spoil(frame, copy);
      const auto taken = assembler_.take(frame, copy);
      if (!taken) error = taken.error().message;
      return taken.has_value();
    });
    parse(sink);
    sink.flush();
    assembler_.end_file();
    return error;
  }

  Imported finish() {
    Imported imported = assembler_.finish();
    info_ = assembler_.run_info();
    EXPECT_TRUE(writer_.finish(info_));
    auto run = trace::Run::open(folder_);
    EXPECT_TRUE(run) << run.error().message;
    run_.emplace(std::move(*run));
    const auto findings = trace::check_run(*run_);
    EXPECT_TRUE(findings && findings->empty()) << (findings ? findings->at(0).what : findings.error().message);
    return imported;
  }

  // Rows as text, values joined by spaces.
  std::vector<std::string> rows(const std::string& sql) {
    const auto table = run_->query(sql);
    EXPECT_TRUE(table) << table.error().message;
    std::vector<std::string> lines;
    for (const auto& row : table->rows) {
      std::string line;
      for (const trace::Value& value : row)
        line +=
            (line.empty() ? "" : " ") + (value.type == trace::Value::Type::kNull   ? "-"
                                         : value.type == trace::Value::Type::kText ? value.text
                                                                                   : std::to_string(value.as_int()));
      lines.push_back(line);
    }
    return lines;
  }
  const trace::RunInfo& info() const { return info_; }

 private:
  trace::TestFolder root_;
  std::string folder_;
  trace::RunWriter writer_;
  Assembler assembler_;
  trace::RunInfo info_;
  std::optional<trace::Run> run_;
};

const Importer kRank = importer("rank", Role::kTrace), kReadingsFile = importer("readings", Role::kReadings),
               kLogFile = importer("log", Role::kLog);

// A process with a thread, a GPU, and a kernel of 10 ns that begins at `begin_ns`.
void small_trace(FrameSink& sink, std::int64_t pid, std::int64_t begin_ns, const std::string& name,
                 bool has_uuid = true) {
  const trace::Id process = sink.new_id(), thread = sink.new_id(), device = sink.new_id();
  sink.add(trace::ProcessRow{.id = process, .pid = pid});
  sink.add(trace::ThreadRow{.id = thread, .process_id = process, .tid = 7});
  sink.add(trace::DeviceRow{.id = device,
                            .kind = sink.name("gpu"),
                            .name = sink.name("NVIDIA H200"),
                            .uuid = has_uuid ? sink.name("GPU-" + name) : trace::Name{},
                            .ordinal = 0});
  sink.add(trace::KernelRow{.id = sink.new_id(),
                            .begin_ns = begin_ns,
                            .end_ns = begin_ns + 10,
                            .name = sink.name(name),
                            .device_id = device,
                            .thread_id = thread});
}

TEST(AssembleTest, TwoTracesKeepTheirOwnProcessesAndShareTheClock) {
  Assembly run;
  EXPECT_EQ(run.file(kRank,
                     [](FrameSink& sink) {
                       sink.set_clock({kNoon, "of rank 0"});
                       small_trace(sink, 11, 1000, "a");
                     }),
            "");
  EXPECT_EQ(run.file(kRank,
                     [](FrameSink& sink) {
                       sink.set_clock({kNoon - 500, "of rank 1"});
                       small_trace(sink, 11, 1000, "b");
                     }),
            "");
  const Imported imported = run.finish();
  EXPECT_EQ(imported.kernels, 2);
  EXPECT_TRUE(imported.losses.empty());
  // Noon is 12 h into the day; the second file's zero is 500 ns earlier.
  const std::string noon = std::to_string(kDay / 2 + 1000), before = std::to_string(kDay / 2 + 500);
  EXPECT_THAT(run.rows("SELECT name, begin_ns FROM kernel ORDER BY name"), ElementsAre("a " + noon, "b " + before));
  EXPECT_THAT(run.rows("SELECT count(*), count(DISTINCT id) FROM process"), ElementsAre("2 2"));
  EXPECT_THAT(run.rows("SELECT count(DISTINCT id) FROM device"), ElementsAre("2"));
  EXPECT_THAT(run.rows("SELECT k.name, p.pid FROM kernel k JOIN thread t ON k.thread_id = t.id JOIN process p ON "
                       "t.process_id = p.id ORDER BY 1"),
              ElementsAre("a 11", "b 11"));
  EXPECT_THAT(run.rows("SELECT begin_ns FROM process ORDER BY id"), ElementsAre(noon, before));
  EXPECT_THAT(run.rows("SELECT wall_ns - ts_ns FROM clock_sync"), ElementsAre(std::to_string(kNoon - kDay / 2)));
  EXPECT_THAT(run.rows("SELECT id, file, format, clock, shift_ns FROM source ORDER BY id"),
              ElementsAre("1 rank.file rank of rank 0 " + std::to_string(kDay / 2),
                          "2 rank.file rank of rank 1 " + std::to_string(kDay / 2 - 500)));
  EXPECT_EQ(run.info().source, "rank");
  EXPECT_EQ(run.info().clock, "nanoseconds since midnight of 2024-10-04, UTC");
}

// Every rank calls its GPU 0, and a rank may have written several traces.
TEST(AssembleTest, FilesOfOneRankTellOfOneGpu) {
  Assembly run;
  const std::pair<const char*, const char*> files[] = {{"a", "0"}, {"b", "0"}, {"c", "1"}, {"d", "1"}, {"e", ""}};
  for (const auto& file : files) {
    run.file(kRank, [&](FrameSink& sink) {
      sink.set_facts({.tool = "", .command = "", .host = "here", .model_config = "", .rank = file.second});
      small_trace(sink, 11, 1000, file.first, false);
    });
  }
  run.file(kRank, [&](FrameSink& sink) {
    sink.set_facts({.tool = "", .command = "", .host = "another", .model_config = "", .rank = "1"});
    small_trace(sink, 11, 1000, "f", false);
  });
  run.finish();
  EXPECT_THAT(run.rows("SELECT string_agg(name, '' ORDER BY name) FROM kernel GROUP BY device_id ORDER BY 1"),
              ElementsAre("ab", "cd", "e", "f"));
  EXPECT_THAT(run.rows("SELECT count(*) FROM device"), ElementsAre("4"));
}

TEST(AssembleTest, PeaksComeFromTheCatalogue) {
  Assembly run;
  run.file(kRank, [](FrameSink& sink) { small_trace(sink, 1, 5, "a"); });
  run.finish();
  EXPECT_THAT(run.rows("SELECT (value / 1e9)::BIGINT, unit, source FROM peak WHERE quantity = 'bandwidth'"),
              ElementsAre("4800 B/s spec"));  // 4.8 TB/s, NVIDIA's data sheet
}

TEST(AssembleTest, ReadingsBelongToTheGpuAndProcessOfTheTrace) {
  Assembly run;
  run.file(kRank, [](FrameSink& sink) { small_trace(sink, 11, 1000, "a"); });
  run.file(kReadingsFile, [](FrameSink& sink) {
    const trace::Id process = sink.new_id(), device = sink.new_id(), other = sink.new_id();
    sink.add(trace::ProcessRow{.id = process, .pid = 11, .rank = 3});
    sink.add(trace::DeviceRow{.id = device, .kind = sink.name("gpu"), .driver = sink.name("570"), .ordinal = 0});
    sink.add(trace::DeviceRow{.id = other, .kind = sink.name("gpu"), .ordinal = 1});
    for (const trace::Id id : {device, other})
      sink.add(trace::TelemetryRow{.ts_ns = 1005,
                                   .device_id = id,
                                   .metric = sink.name("power"),
                                   .value = 700,
                                   .unit = sink.name("W"),
                                   .process_id = process});
    sink.add(trace::AllocationRow{.id = sink.new_id(), .begin_ns = 1001, .bytes = 64});
  });
  run.finish();
  EXPECT_THAT(run.rows("SELECT name, driver, ordinal FROM device ORDER BY id"),
              ElementsAre("NVIDIA H200 570 0", "- - 1"));
  EXPECT_THAT(run.rows("SELECT d.ordinal, p.pid FROM telemetry t JOIN device d ON t.device_id = d.id JOIN process p ON "
                       "t.process_id = p.id ORDER BY 1"),
              ElementsAre("0 11", "1 11"));
  EXPECT_THAT(run.rows("SELECT pid, rank FROM process"), ElementsAre("11 3"));
  EXPECT_THAT(run.rows("SELECT p.pid FROM allocation a JOIN process p ON a.process_id = p.id"), ElementsAre("11"));
}

TEST(AssembleTest, ANumberThatTwoRanksHaveIsNobodys) {
  Assembly run;
  for (const char* name : {"a", "b"}) run.file(kRank, [&](FrameSink& sink) { small_trace(sink, 11, 1000, name); });
  run.file(kReadingsFile, [](FrameSink& sink) {
    const trace::Id device = sink.new_id();
    sink.add(trace::DeviceRow{.id = device, .kind = sink.name("gpu"), .ordinal = 0});
    sink.add(trace::TelemetryRow{.ts_ns = 5, .device_id = device, .metric = sink.name("power")});
  });
  run.finish();
  EXPECT_THAT(run.rows("SELECT count(*) FROM device"), ElementsAre("3"));
}

TEST(AssembleTest, AFileWithoutAProcessGetsOne) {
  Assembly run;
  run.file(kRank, [](FrameSink& sink) {
    sink.set_facts({.tool = "T 1", .command = "serve --api-key abc", .host = "h", .model_config = R"({"a":1})"});
    const trace::Id thread = sink.new_id();
    sink.add(trace::ThreadRow{.id = thread, .tid = 1});
    sink.add(
        trace::RangeRow{.id = sink.new_id(), .begin_ns = 3, .end_ns = 4, .name = sink.name("r"), .thread_id = thread});
  });
  const Imported imported = run.finish();
  EXPECT_EQ(imported.files.at(0).tool, "T 1");
  EXPECT_THAT(run.rows("SELECT p.host, t.tid, r.name, r.process_id = t.process_id FROM range r JOIN thread t ON "
                       "r.thread_id = t.id JOIN process p ON t.process_id = p.id"),
              ElementsAre("h 1 r 1"));
  EXPECT_THAT(run.info().command, ElementsAre("serve --api-key ***"));
  EXPECT_EQ(run.info().models.at(0).text, R"({"a":1})");
}

TEST(AssembleTest, TimesThatCannotBeAreLeftOutAndCounted) {
  Assembly run;
  run.file(kRank, [](FrameSink& sink) {
    sink.set_clock({kNoon, "wall"});
    const trace::Id thread = sink.new_id();
    sink.add(trace::ThreadRow{.id = thread, .tid = 1});
    const auto range = [&](std::int64_t begin, std::int64_t end) {
      sink.add(trace::RangeRow{.id = sink.new_id(), .begin_ns = begin, .end_ns = end, .thread_id = thread});
    };
    range(1, 2);
    range(5, 4);
    range(1, INT64_MAX);  // overflows with the shift
    range(INT64_MIN, INT64_MAX);
    range(7, 8);
  });
  const Imported imported = run.finish();
  EXPECT_EQ(imported.ranges, 2);
  ASSERT_EQ(imported.losses.size(), 1u);
  EXPECT_EQ(imported.losses[0].loss, Loss::kBadTime);
  EXPECT_EQ(imported.losses[0].count, 3);
  EXPECT_THAT(run.rows("SELECT name, count, detail FROM loss"),
              ElementsAre(HasSubstr("bad_time 3 rank.file: rows that end before they begin")));
}

TEST(AssembleTest, AFileThatIsCutIsCountedOnce) {
  Assembly run;
  run.file(kRank, [](FrameSink& sink) {
    small_trace(sink, 1, 1, "a");
    sink.lose(Loss::kInputTruncated, 1, "no closing bracket", "byte 17");
    sink.lose(Loss::kInputTruncated, 1, "gzip data that end in the middle", "byte 9 of the file");
  });
  run.finish();
  EXPECT_THAT(run.rows("SELECT count, detail FROM loss"),
              ElementsAre("1 rank.file: no closing bracket, at byte 17; gzip data that end in the middle, at byte 9 of "
                          "the file"));
}

TEST(AssembleTest, FilesWithoutATimeOfDayCannotBePlaced) {
  Assembly run;
  run.file(kRank, [](FrameSink& sink) {
    sink.set_clock({std::nullopt, "ticks"});
    small_trace(sink, 1, 1, "a");
  });
  run.file(kRank, [](FrameSink& sink) {
    sink.set_clock({kNoon, "wall"});
    small_trace(sink, 2, 1, "b");
  });
  const Imported imported = run.finish();
  ASSERT_EQ(imported.losses.size(), 1u);
  EXPECT_EQ(imported.losses[0].loss, Loss::kNoClock);
  EXPECT_EQ(run.info().clock, "ticks (its zero means nothing)");
}

// A trace that knows one of two products, and the log of both: shapes of the log, times of the trace.
TEST(AssembleTest, CallsOfALogGetTheKernelsOfTheTrace) {
  Assembly run(true);
  run.file(kRank, [](FrameSink& sink) {
    const trace::Id process = sink.new_id(), thread = sink.new_id(), device = sink.new_id(), gemm = sink.new_id();
    sink.add(trace::ProcessRow{.id = process, .pid = 5});
    sink.add(trace::ThreadRow{.id = thread, .process_id = process, .tid = 7});
    sink.add(trace::DeviceRow{.id = device, .kind = sink.name("gpu")});
    const auto kernel = [&](const char* name, std::int64_t at, trace::OptionalId product) {
      const trace::Id id = sink.new_id();
      sink.add(trace::KernelRow{.id = id,
                                .begin_ns = at + 50,
                                .end_ns = at + 60,
                                .name = sink.name(name),
                                .device_id = device,
                                .thread_id = thread,
                                .launch_begin_ns = at,
                                .launch_end_ns = at + 5,
                                .gemm_id = product});
      return id;
    };
    const trace::Id known = kernel("nvjet_tst_128x64_64x8", 100, gemm);
    kernel("elementwise_kernel", 150, {});
    sink.add(trace::GemmRow{.id = gemm,
                            .begin_ns = 90,
                            .end_ns = 110,
                            .kernel_id = known,
                            .thread_id = thread,
                            .library = sink.name("aten"),
                            .m = 64,
                            .n = 32,
                            .k = 16});
  });
  run.file(kLogFile, [](FrameSink& sink) {
    const trace::Id process = sink.new_id(), thread = sink.new_id();
    sink.add(trace::ProcessRow{.id = process, .pid = 5});
    sink.add(trace::ThreadRow{.id = thread, .process_id = process, .tid = 7});
    for (const std::int64_t n : {32, 999}) {
      sink.add(trace::GemmRow{.id = sink.new_id(),
                              .thread_id = thread,
                              .library = sink.name("cublas"),
                              .function = sink.name("cublasGemmEx"),
                              .m = 64,
                              .n = n,
                              .k = 16,
                              .algorithm = sink.name("algo 7")});
    }
  });
  run.file(kReadingsFile, [](FrameSink&) {});  // the loss is not its
  const Imported imported = run.finish();
  EXPECT_EQ(imported.calls_joined, 1);
  EXPECT_EQ(imported.gemms, 1);
  EXPECT_THAT(run.rows("SELECT g.library, g.algorithm, g.begin_ns, g.n, k.begin_ns FROM gemm g JOIN kernel k ON "
                       "g.kernel_id = k.id AND k.gemm_id = g.id"),
              ElementsAre("cublas algo 7 90 32 150"));
  EXPECT_THAT(run.rows("SELECT count(*) FROM kernel"), ElementsAre("2"));
  EXPECT_THAT(run.rows("SELECT name, count, detail FROM loss"), ElementsAre("calls_not_joined 1 log.file"));
  EXPECT_THAT(run.rows("SELECT count(*) FROM process"), ElementsAre("1"));
  EXPECT_THAT(run.rows("SELECT count(*) FROM thread"), ElementsAre("1"));
}

// ---- a child that lies ---------------------------------------------------------------------------------------

std::string lie(const std::function<void(Frame&, std::vector<std::byte>&)>& spoil) {
  Assembly run;
  return run.file(
      kRank, [](FrameSink& sink) { small_trace(sink, 1, 1, "a"); }, spoil);
}

TEST(AssembleTest, NoFrameIsTrusted) {
  const auto kernels = [](const Frame& frame) {
    return frame.kind == FrameKind::kRows &&
           trace::tables()[static_cast<std::size_t>(frame.number)] == &trace::table_of<trace::KernelRow>();
  };
  const auto spoil_kernel = [&](auto change) {
    return lie([&](Frame& frame, std::vector<std::byte>& payload) {
      if (!kernels(frame)) return;
      trace::KernelRow row;
      std::memcpy(static_cast<void*>(&row), payload.data(), sizeof row);
      change(row);
      std::memcpy(payload.data(), &row, sizeof row);
    });
  };
  EXPECT_EQ(spoil_kernel([](trace::KernelRow&) {}), "");
  EXPECT_THAT(spoil_kernel([](trace::KernelRow& row) { row.name.id = 99; }), HasSubstr("a name that was not defined"));
  EXPECT_THAT(spoil_kernel([](trace::KernelRow& row) { row.id = -1; }), HasSubstr("an id out of range"));
  EXPECT_THAT(spoil_kernel([](trace::KernelRow& row) { row.thread_id = INT64_MAX; }), HasSubstr("an id out of range"));
  EXPECT_THAT(lie([&](Frame& frame, std::vector<std::byte>& payload) {
                if (kernels(frame))
                  payload[trace::table_of<trace::KernelRow>().find("stream")->present_offset] = std::byte{2};
              }),
              HasSubstr("a flag that is neither 0 nor 1"));
  EXPECT_THAT(lie([&](Frame& frame, std::vector<std::byte>&) { frame.count += kernels(frame) ? 1 : 0; }),
              HasSubstr("rows that are cut"));
  EXPECT_THAT(lie([&](Frame& frame, std::vector<std::byte>&) {
                if (kernels(frame)) frame.count = INT64_MAX / 4;
              }),
              HasSubstr("rows that are cut"));
  EXPECT_THAT(lie([&](Frame& frame, std::vector<std::byte>&) {
                if (kernels(frame)) frame.number = 10'000;
              }),
              HasSubstr("a table that no importer writes"));
  EXPECT_THAT(lie([](Frame& frame, std::vector<std::byte>&) {
                if (frame.kind == FrameKind::kNames) frame.number = 2;
              }),
              HasSubstr("names out of order"));
  EXPECT_THAT(lie([](Frame& frame, std::vector<std::byte>& payload) {
                if (frame.kind == FrameKind::kNames) payload.resize(payload.size() - 1);
              }),
              HasSubstr("names that are cut"));
  EXPECT_THAT(lie([](Frame& frame, std::vector<std::byte>&) {
                if (frame.kind == FrameKind::kNames) frame.kind = static_cast<FrameKind>(77);
              }),
              HasSubstr("unknown kind"));
  EXPECT_THAT(lie([](Frame& frame, std::vector<std::byte>&) {
                if (frame.kind == FrameKind::kNames) frame.kind = FrameKind::kLoss, frame.number = 5000;
              }),
              HasSubstr("a loss that is none"));
}

// Every column of a moment must be shifted: one that is forgotten would stand 50 years beside the others.
TEST(AssembleTest, EveryMomentOfEveryTableIsKnown) {
  for (std::size_t i = 0; i < trace::tables().size(); ++i) {
    const TablePlan* plan = plan_of(static_cast<std::int64_t>(i));
    if (plan == nullptr) continue;
    const trace::Table& table = plan->table();
    for (const trace::Column& column : table.columns) {
      const bool duration = table.name == "process_usage" ? column.name != "ts_ns"
                            : table.name == "sample"      ? column.name == "weight_ns"
                            : table.name == "clock_sync"  ? column.name != "ts_ns"
                            : table.name == "thread_time" ? column.name == "time_ns"
                            : table.name == "cpu_group"   ? column.name == "throttled_ns"
                            : column.name == "cost_ns"    ? true
                                                          : table.name == "summary";
      if (column.unit != "ns" || column.type != trace::ColumnType::kInt64) continue;
      EXPECT_EQ(plan->shifts(column.name), !duration) << table.name << "." << column.name;
    }
  }
}

}  // namespace
}  // namespace llmprof::importers
