#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <numeric>
#include <random>

#include "analyze/steps/life.h"
#include "analyze/summary.h"
#include "trace/test_run.h"

namespace llmprof::analyze {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::int64_t kMs = 1'000'000;

std::int64_t sum(const std::vector<LifePainter::Painted>& phases) {
  std::int64_t ns = 0;
  for (const LifePainter::Painted& phase : phases) ns += phase.time_ns;
  return ns;
}

TEST(LifePainter, WhatHasAPhaseKeepsIt) {
  LifePainter painter(100, 200);
  EXPECT_THAT(painter.paint({{0, 110, 0}, {120, 150, 1}, {140, 160, 2}, {190, 300, 0}}), ElementsAre(10, 30, 10, 10));
  EXPECT_THAT(painter.paint({{105, 195, 3}}), ElementsAre(40));
  EXPECT_THAT(painter.free(), SizeIs(0));
  EXPECT_EQ(sum(painter.phases()), 100);
  EXPECT_EQ(painter.phases()[3].first_ns, 110);
}

TEST(LifePainter, APieceOverSeveralGapsFillsThemAll) {
  LifePainter painter(0, 100);
  painter.paint({{10, 20, 0}, {30, 40, 0}, {50, 60, 0}});
  EXPECT_THAT(painter.paint({{0, 35, 1}, {5, 8, 2}, {34, 55, 2}, {56, 58, 3}}), ElementsAre(20, 0, 10, 0));
  EXPECT_THAT(painter.free(), SizeIs(1));
  EXPECT_EQ(painter.free()[0].begin_ns, 60);
}

// Whatever is painted in whatever order: no time is lost and none counts twice.
TEST(LifePainter, PhasesAddUpToTheLife) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    LifePainter painter(1000, 3000);
    std::vector<int> owner(2000, -1);
    for (std::size_t layer = 0; layer < 4; ++layer) {
      std::vector<LifePiece> pieces;
      for (unsigned i = 0; i < random() % 20; ++i) {
        const auto begin = static_cast<std::int64_t>(random() % 2400) + 800;
        pieces.push_back({begin, begin + static_cast<std::int64_t>(random() % 300), layer * 2 + random() % 2});
      }
      std::ranges::stable_sort(pieces, {}, &LifePiece::begin_ns);
      for (const LifePiece& piece : pieces) {
        for (std::int64_t t = std::max<std::int64_t>(piece.begin_ns, 1000);
             t < std::min<std::int64_t>(piece.end_ns, 3000); ++t) {
          int& at = owner[static_cast<std::size_t>(t - 1000)];
          if (at < 0) at = static_cast<int>(piece.phase);
        }
      }
      painter.paint(pieces);
    }
    for (std::size_t phase = 0; phase < painter.phases().size(); ++phase) {
      EXPECT_EQ(painter.phases()[phase].time_ns, std::ranges::count(owner, static_cast<int>(phase)));
    }
    std::int64_t left = 0;
    for (const LifePiece& gap : painter.free()) left += gap.end_ns - gap.begin_ns;
    EXPECT_EQ(sum(painter.phases()) + left, 2000);
  }
}

// A recorded program: exec at 0, exit at `end_ms`, readings every 20 ms.
class Program {
 public:
  explicit Program(std::int64_t end_ms, std::int64_t collector_end_ms = 0)
      : writer_(std::move(*trace::RunWriter::create(folder_ / "x.llmprof"))) {
    writer_.add(trace::ProcessRow{.id = 1,
                                  .pid = 77,
                                  .executable = name("/usr/bin/python3"),
                                  .arguments = name("python3 x.py"),
                                  .begin_ns = 0,
                                  .end_ns = end_ms * kMs,
                                  .exit_status = 137,
                                  .injected = true});
    writer_.add(trace::ThreadRow{.id = 2, .process_id = 1, .tid = 77});
    writer_.add(trace::ThreadRow{.id = 3, .process_id = 1, .tid = 78});
    writer_.add(trace::DeviceRow{.id = 4, .kind = name("cpu"), .name = name("Abacus"), .units = 1});
    for (std::int64_t ms = 5; ms <= end_ms; ms += 20)
      writer_.add(trace::ProcessUsageRow{.ts_ns = ms * kMs, .process_id = 1, .rss_bytes = 1});
    if (collector_end_ms > 0) writer_.add(trace::CollectorCostRow{.ts_ns = collector_end_ms * kMs, .process_id = 1});
  }
  trace::Name name(std::string_view text) { return writer_.strings().intern(text); }
  trace::RunWriter& writer() { return writer_; }

  struct Frame {
    std::string function, file, kind = "python";
  };
  // Samples every 10 ms, the innermost frame first.
  void samples(std::int64_t from_ms, std::int64_t to_ms, const std::vector<Frame>& stack, trace::Id thread = 2,
               bool truncated = false) {
    const trace::Id stack_id = ++id_;
    for (std::size_t i = 0; i < stack.size(); ++i) {
      writer_.add(trace::FrameRow{
          .id = ++id_, .kind = name(stack[i].kind), .function = name(stack[i].function), .file = name(stack[i].file)});
      writer_.add(trace::StackRow{.stack_id = stack_id, .depth = static_cast<std::int32_t>(i), .frame_id = id_});
    }
    for (std::int64_t ms = from_ms + 10; ms <= to_ms; ms += 10)
      writer_.add(trace::SampleRow{.id = ++id_,
                                   .ts_ns = ms * kMs,
                                   .thread_id = thread,
                                   .stack_id = stack_id,
                                   .truncated = truncated,
                                   .weight_ns = 10 * kMs});
  }
  void range(std::int64_t from_ms, std::int64_t to_ms, const std::string& text) {
    writer_.add(trace::RangeRow{.id = ++id_,
                                .begin_ns = from_ms * kMs,
                                .end_ns = to_ms * kMs,
                                .name = name(text),
                                .kind = name("push_pop"),
                                .process_id = 1,
                                .thread_id = 2});
  }
  Life life() {
    EXPECT_TRUE(writer_.finish({}));
    auto run = trace::Run::open(folder_ / "x.llmprof");
    EXPECT_TRUE(run);
    auto summary = summarise(*run, {});
    EXPECT_TRUE(summary) << (summary ? "" : summary.error().message);
    std::int64_t all = 0;
    for (const LifePhase& phase : summary->life.phases) all += phase.time_ns;
    EXPECT_EQ(all, summary->life.time_ns());
    return summary->life;
  }

 private:
  trace::TestFolder folder_;
  trace::RunWriter writer_;
  trace::Id id_ = 100;
};

// "imports 100", in ms.
std::vector<std::string> times(const Life& life) {
  std::vector<std::string> out;
  for (const LifePhase& phase : life.phases) out.push_back(phase.name + " " + std::to_string(phase.time_ns / kMs));
  return out;
}

const Program::Frame kImporting{"_call_with_frames_removed", "<frozen importlib._bootstrap>"};
const Program::Frame kScript{"<module>", "/home/x.py"};

TEST(Life, PhasesTileItFromExecToExit) {
  Program program(1000, 900);
  program.samples(
      20, 300,
      {{"f", "/lib/site-packages/torch/a.py"}, {"<module>", "/lib/site-packages/torch/a.py"}, kImporting, kScript});
  program.samples(300, 400, {{"load_file", "/lib/site-packages/safetensors/torch.py"}, kScript});
  program.range(400, 500, "decode");
  program.range(500, 600, "decode");
  program.samples(610, 700, {{"report", "/home/x.py"}, kScript});
  const Life life = program.life();
  EXPECT_THAT(times(life), ElementsAre("start 20", "imports 280", "weights 100", "decode 200", "host_work 90",
                                       "exit 100", "idle 210"));
  EXPECT_EQ(life.phases[1].evidence, "28 samples; torch 100 %");
  EXPECT_THAT(life.phases[4].evidence, HasSubstr("report"));
  EXPECT_TRUE(life.root && life.ended && life.sampled);
  EXPECT_EQ(life.exit_status, 137);
}

TEST(Life, WhatALibraryDoesWhileItIsImportedIsImporting) {
  Program program(300);
  const std::string inductor = "/lib/site-packages/torch/_inductor/ir.py";
  program.samples(0, 100, {{"decorator", inductor}, {"<module>", inductor}, kImporting, kScript});
  program.samples(100, 200, {{"codegen", inductor}, kScript});
  program.samples(200, 300, {{"call", "/lib/site-packages/torch/_inductor/output_code.py"}, kScript});
  EXPECT_THAT(times(program.life()), ElementsAre("imports 100", "compile 100", "host_work 100"));
}

TEST(Life, NamesThatOnlyLookLikeAPhaseTellNone) {
  Program program(300);
  const std::vector<Program::Frame> importing{{"_PyTokenizer_Get", "/usr/bin/python3", "native"}, kImporting, kScript};
  program.samples(0, 100, importing);
  program.samples(100, 200, {{"GenerationConfig.from_model_config", "/lib/site-packages/x/config.py"}, kScript});
  program.samples(200, 300, {{"Tokenizer.encode", "/home/x.py"}, kScript});
  EXPECT_THAT(times(program.life()), ElementsAre("imports 100", "host_work 100", "tokenize 100"));
}

TEST(Life, WaitsBelongToThePhaseAroundThemUnlessTheyAreLong) {
  Program program(3000);
  const std::vector<Program::Frame> stack{{"load", "/lib/site-packages/torch/serialization.py"}, kScript};
  program.samples(0, 100, stack);
  program.samples(400, 500, stack);    // 300 ms of waiting for the file
  program.samples(2900, 3000, stack);  // too long to be sure
  const Life life = program.life();
  EXPECT_THAT(times(life), ElementsAre("weights 600", "idle 2400"));
  EXPECT_EQ(life.phases[0].evidence, "30 samples, 300 ms CPU; load 100 %");
}

TEST(Life, AStackWithoutItsOuterFramesGoesWithItsNeighbours) {
  Program program(300);
  const std::vector<Program::Frame> importing{kImporting, kScript},
      unknown{{"_PyEval_EvalFrameDefault", "/usr/bin/python3", "native"}};
  program.samples(0, 100, importing);
  program.samples(100, 110, unknown, 2, true);
  program.samples(110, 200, importing);
  program.samples(200, 300, unknown, 2, true);
  EXPECT_THAT(times(program.life()), ElementsAre("imports 200", "host_work 100"));
}

TEST(Life, WhileTheMainThreadWaitsOthersTellWhatFor) {
  Program program(400);
  program.samples(0, 100, {kImporting, kScript});
  program.samples(100, 200, {{"llvm::SelectionDAG::Combine", "/lib/xla.so", "native"}}, 3);
  program.writer().add(trace::ProcessRow{.id = 9,
                                         .pid = 90,
                                         .parent_pid = 77,
                                         .executable = program.name("/usr/bin/ptxas"),
                                         .begin_ns = 200 * kMs,
                                         .end_ns = 300 * kMs});
  program.writer().add(trace::ThreadRow{.id = 10, .process_id = 9, .tid = 90});
  program.samples(200, 300, {{"main", "/usr/bin/ptxas", "native"}}, 10);
  const Life life = program.life();
  EXPECT_THAT(times(life), ElementsAre("imports 100", "compile 200", "idle 100"));
  EXPECT_THAT(life.phases[1].evidence, AllOf(HasSubstr("XLA 50 %"), HasSubstr("ptxas 50 %")));
  ASSERT_THAT(life.concurrent, SizeIs(1));
  EXPECT_EQ(life.concurrent[0].name, "ptxas");
  EXPECT_EQ(life.concurrent[0].life_ns, 100 * kMs);
}

TEST(Life, CopiesToTheDeviceArePhaseOfTheirOwn) {
  Program program(300);
  program.writer().add(
      trace::DeviceRow{.id = 5, .kind = program.name("gpu"), .name = program.name("Test GPU"), .units = 1});
  program.samples(0, 100, {kImporting, kScript});
  program.samples(100, 300, {{"f", "/home/x.py"}, kScript});
  for (int i = 0; i < 10; ++i)
    program.writer().add(trace::CopyRow{.id = 1000 + i,
                                        .begin_ns = (100 + 10 * i) * kMs,
                                        .end_ns = (110 + 10 * i) * kMs,
                                        .direction = program.name("host_to_device"),
                                        .bytes = 1000,
                                        .device_id = 5,
                                        .thread_id = 2});
  const Life life = program.life();
  EXPECT_THAT(times(life), ElementsAre("imports 100", "host_to_device 100", "host_work 100"));
  EXPECT_EQ(life.phases[1].evidence, "10 copies, 10.0 kB");
}

// Recorders before this one let a process begin with its first event.
TEST(Life, ReadingsTellTheLifeOfOlderRuns) {
  trace::TestFolder folder;
  auto writer = trace::RunWriter::create(folder / "x.llmprof");
  ASSERT_TRUE(writer);
  writer->add(trace::ProcessRow{.id = 1, .pid = 77, .begin_ns = 600 * kMs, .end_ns = 900 * kMs, .injected = true});
  for (std::int64_t ms = 0; ms <= 1000; ms += 20)
    writer->add(trace::ProcessUsageRow{.ts_ns = ms * kMs, .process_id = 1, .rss_bytes = 1});
  ASSERT_TRUE(writer->finish({}));
  auto run = trace::Run::open(folder / "x.llmprof");
  ASSERT_TRUE(run);
  const auto summary = summarise(*run, {});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->coverage.wall_ns, 1000 * kMs);
  EXPECT_EQ(summary->life.time_ns(), 1000 * kMs);
  EXPECT_THAT(times(summary->life), ElementsAre("idle 1000"));
  EXPECT_TRUE(summary->life.sampled);  // nothing says that stacks were not sampled
}

TEST(Life, OfImportedRunsNothingIsSaid) {
  trace::TestFolder folder;
  trace::make_small_run(folder / "x.llmprof");
  auto run = trace::Run::open(folder / "x.llmprof");
  ASSERT_TRUE(run);
  const auto life = life_of(*run);
  ASSERT_TRUE(life);
  EXPECT_EQ(life->process_id, 0);
}

}  // namespace

}  // namespace llmprof::analyze
