#include "importers/merge_runs.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "trace/rows.h"
#include "trace/run_writer.h"

namespace llmprof::importers {
namespace {

class MergeRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "llmprof_merge_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  struct Spec {
    std::string name, host, source;
    std::int64_t wall_of_zero_ns;  // of its clock
    std::vector<trace::RequestRow> requests;
  };
  trace::Run make(const Spec& spec) {
    auto writer = trace::RunWriter::create(folder_ + "/" + spec.name + ".llmprof");
    const auto name = [&](std::string_view text) { return writer->strings().intern(text); };
    writer->add(trace::ProcessRow{.id = 1, .pid = 7, .host = name(spec.host), .begin_ns = 10});
    writer->add(trace::ThreadRow{.id = 1, .process_id = 1, .tid = 7, .begin_ns = 10});
    writer->add(trace::DeviceRow{.id = 1, .kind = name("cpu"), .name = name("a CPU"), .units = 2});
    writer->add(trace::PeakRow{.device_id = 1, .quantity = name("flops"), .value = 5e9, .unit = name("FLOP/s")});
    writer->add(trace::KernelRow{.id = 1, .begin_ns = 100, .end_ns = 150, .name = name("gemm"), .device_id = 1, .thread_id = 1});
    for (trace::RequestRow row : spec.requests) {
      row.name = name("req-" + std::to_string(row.id));
      row.source = name(spec.source);
      row.process_id = 1;
      writer->add(row);
    }
    writer->add(trace::ClockSyncRow{.ts_ns = 50, .wall_ns = spec.wall_of_zero_ns + 50, .error_ns = 1});
    EXPECT_TRUE(writer->finish({.command = {spec.name}, .environment = "{}", .source = "record"}));
    auto run = trace::Run::open(folder_ + "/" + spec.name);
    EXPECT_TRUE(run) << run.error().message;
    return std::move(*run);
  }
  // What a query of the merged run says, as text: "1 2, 3 4".
  std::string ask(const std::string& sql) {
    auto run = trace::Run::open(folder_ + "/all");
    EXPECT_TRUE(run) << run.error().message;
    const auto table = run->query(sql);
    EXPECT_TRUE(table) << table.error().message;
    std::string out;
    for (const auto& row : table->rows) {
      if (!out.empty()) out += ", ";
      for (const trace::Value& value : row)
        out += (&value == row.data() ? "" : " ") + (value.type == trace::Value::Type::kText ? value.text
                                                    : value.is_null()                       ? "-"
                                                                      : std::to_string(value.as_int()));
    }
    return out;
  }
  Merged merge(const Spec& a, const Spec& b) {
    std::vector<trace::Run> runs;
    runs.push_back(make(a));
    runs.push_back(make(b));
    auto merged = merge_runs(runs, folder_ + "/all.llmprof");
    EXPECT_TRUE(merged) << merged.error().message;
    const auto run = trace::Run::open(folder_ + "/all");
    EXPECT_TRUE(check_run(*run)->empty());
    return std::move(*merged);
  }
  std::string folder_;
};

TEST_F(MergeRuns, RunsOfOneMachineHaveOneClockAndOneDevice) {
  const Merged merged = merge({"server", "host", "server", 1'000'000, {{.id = 1, .arrival_ns = 105, .first_token_ns = 120}}},
                              {"client", "host", "client", 1'000'300,  // wall time was corrected by 300 ns between
                               {{.id = 1, .arrival_ns = 90, .sent_ns = 100, .first_token_ns = 125}, {.id = 2, .arrival_ns = 95, .sent_ns = 99}}});
  EXPECT_EQ(merged.runs[1].clock.error_ns, 0);
  EXPECT_EQ(merged.runs[1].clock.shift_ns, 0);
  EXPECT_EQ(merged.both, 1);
  EXPECT_EQ(merged.only_client, 1);
  EXPECT_EQ(merged.only_server, 0);
  EXPECT_EQ(ask("SELECT source, name, arrival_ns, sent_ns FROM request ORDER BY arrival_ns"),
            "client req-1 90 100, client req-2 95 99, server req-1 105 -");
  EXPECT_EQ(ask("SELECT count(DISTINCT id), count(*) FROM request"), "3 3");
  EXPECT_EQ(ask("SELECT (SELECT count(*) FROM device), (SELECT count(*) FROM peak), count(*) FROM kernel JOIN device ON device.id = device_id"),
            "1 1 2");
  EXPECT_EQ(ask("SELECT count(*) FROM kernel JOIN thread ON thread.id = thread_id JOIN process ON process.id = process_id"), "2");
  EXPECT_EQ(ask("SELECT file, shift_ns, clock_error_ns FROM source ORDER BY id"), "server.llmprof 0 0, client.llmprof 0 0");
}

// The client's clock is 5,000 ns behind by wall time, and wall time is 40 ns wrong: of two requests, the first was sent at
// 1,000 and arrived at 1,010 (at most 10 later), the second's token was made at 1,100 and seen at 1,104.
TEST_F(MergeRuns, RequestsCorrectTheClockOfAnotherMachine) {
  const Merged merged = merge(
      {"server", "a", "server", 1'000'000'000'000, {{.id = 1, .arrival_ns = 1010, .first_token_ns = 1050}, {.id = 2, .arrival_ns = 1060, .first_token_ns = 1100}}},
      {"client", "b", "client", 1'000'000'005'000 + 40,
       {{.id = 1, .arrival_ns = -4000, .sent_ns = -4000, .first_token_ns = -3930}, {.id = 2, .arrival_ns = -3970, .sent_ns = -3970, .first_token_ns = -3896}}});
  const Alignment& clock = merged.runs[1].clock;
  // By wall time 5,040 is added; what is sent may then be at most 10 - 40 earlier, a token at least -4 - 40 later.
  ASSERT_TRUE(clock.error_ns);
  EXPECT_EQ(clock.shift_ns, 5'003);
  EXPECT_EQ(*clock.error_ns, 7);
  EXPECT_EQ(ask("SELECT sent_ns FROM request WHERE source = 'client' AND name = 'req-1'"), "1003");
}

TEST_F(MergeRuns, TheClientMayComeFirst) {
  const Merged merged = merge(
      {"client", "b", "client", 1'000'000'000'000, {{.id = 1, .arrival_ns = 1000, .sent_ns = 1000, .first_token_ns = 1100}}},
      {"server", "a", "server", 1'000'000'005'000, {{.id = 1, .arrival_ns = -3980, .first_token_ns = -3920}}});
  // The server's times may be moved by 4,980 (it arrives when it is sent) to 5,020 (the token is seen when it is made).
  EXPECT_EQ(merged.runs[1].clock.shift_ns, 5'000);
  EXPECT_EQ(merged.runs[1].clock.error_ns, 20);
}

TEST(Within, RequestsThatContradictEachOtherSaySo) {
  const Alignment clock = within({.shift_ns = 100, .how = "by wall time"}, {.least_ns = 10, .most_ns = -10, .requests = 3});
  EXPECT_EQ(clock.shift_ns, 100);
  EXPECT_EQ(clock.error_ns, 10);
  EXPECT_NE(clock.how.find("drifted"), std::string::npos);
}

TEST(Within, OneSidedBoundsLeaveTheErrorUnknown) {
  EXPECT_FALSE(within({.shift_ns = 100}, {.most_ns = 5, .requests = 1}).error_ns);
}

TEST(Alignment, DriftGrowsFromItsBegin) {
  const Alignment clock{.shift_ns = 10, .drift_from_ns = 1000, .drift = 1e-3};
  EXPECT_EQ(clock.at(1000), 1010);
  EXPECT_EQ(clock.at(3000), 3012);
}

}  // namespace
}  // namespace llmprof::importers
