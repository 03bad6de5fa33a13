#include "collect/cuda/graph_sampling.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace llmprof::collect {
namespace {

using Action = GraphSampling::Action;
constexpr std::uint64_t kMs = 1000000;

// A program that launches graphs, one millisecond after the other.
class Program {
 public:
  Program() { sampling->watch_first(500 * kMs); }
  Action launch(std::uint32_t graph, bool waits = true, std::uint32_t thread = 1, std::uint64_t stream = 7) {
    now_ += kMs;
    const Action action = sampling->launch_begins({graph, thread, stream, now_});
    sampling->launch_ended(now_ + 10);
    if (waits) wait(stream);
    return action;
  }
  void wait(std::uint64_t stream, bool for_all = false) { sampling->waited(stream, for_all, now_ + 20); }
  // What happens to `launches` launches: a letter each, . N(odes) S(ilence) C(lose).
  std::string launches(int count, std::uint32_t graph, bool waits = true) {
    std::string text;
    for (int i = 0; i < count; ++i) text += ".NSC"[static_cast<int>(launch(graph, waits))];
    return text;
  }
  void pass_watching_time() { launches(501, 99); }  // a graph of its own

  std::unique_ptr<GraphSampling> sampling = std::make_unique<GraphSampling>();

 private:
  std::uint64_t now_ = 1000 * kMs;
};

TEST(GraphSampling, NothingInTheFirstHalfSecond) {
  Program program;
  EXPECT_EQ(program.launches(500, 1), std::string(500, '.'));
  EXPECT_EQ(program.launches(1, 1), "N");  // 500 ms after the first
}

TEST(GraphSampling, TwoSamplesOfEachGraph) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);  // its own sample ends
  // The third launch is the first sample; one launch with nothing, and the one after it is as before.
  EXPECT_EQ(program.launches(5, 1), "..NSC");
  // The 64th launch that could be one is the second: those of a sample under way do not count.
  EXPECT_EQ(program.launches(63 + 3, 1), std::string(63, '.') + "NSC");
  EXPECT_EQ(program.launches(1000, 1), std::string(1000, '.'));
  EXPECT_EQ(program.launches(5, 2), "..NSC");
}

TEST(GraphSampling, OnlyWhenTheProgramWaits) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);
  EXPECT_EQ(program.launches(100, 1, false), "." + std::string(99, '.'));
  EXPECT_EQ(program.sampling->why_not(), nullptr);  // it may begin to wait
  program.wait(7);
  EXPECT_EQ(program.launches(5, 1), "..NSC");  // the third in a row before which all was idle
}

TEST(GraphSampling, StaysOpenWhileAGraphIsInFlight) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);
  EXPECT_EQ(program.launches(2, 1), "..");
  EXPECT_EQ(program.launches(3, 1, false), "N..");  // nobody waited for the sample
  EXPECT_TRUE(program.sampling->is_open());
  program.wait(7);
  EXPECT_EQ(program.launches(2, 1), "SC");
  EXPECT_FALSE(program.sampling->is_open());
}

TEST(GraphSampling, AWaitThatBeganBeforeTheLaunchEndedDoesNotCount) {
  GraphSampling sampling;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t now = 1000 * kMs + i * kMs;
    EXPECT_EQ(sampling.launch_begins({1, 1, 7, now}), Action::kNone);
    sampling.launch_ended(now + 10);
    sampling.waited(7, false, now + 9);
    sampling.waited(8, false, now + 11);  // another stream
  }
}

TEST(GraphSampling, SilenceLastsUntilTheSampledGraphComesAgain) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);
  EXPECT_EQ(program.launches(3, 1), "..N");
  EXPECT_EQ(program.launches(1, 2), "S");
  EXPECT_EQ(program.launches(2, 2), "..");
  EXPECT_EQ(program.launches(1, 1), ".");  // with nothing on
  EXPECT_EQ(program.launches(1, 2), "C");
}

TEST(GraphSampling, SilenceEndsWithoutTheSampledGraph) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);
  EXPECT_EQ(program.launches(3, 1), "..N");
  EXPECT_EQ(program.launches(9, 2), "S.......C");  // 8 with nothing on
}

TEST(GraphSampling, SeveralThreadsAreNotSampled) {
  Program program;
  program.launches(10, 1);
  EXPECT_EQ(program.launch(1, true, 2), Action::kNone);
  EXPECT_STREQ(program.sampling->why_not(), "several threads launch graphs");
  EXPECT_EQ(program.launches(1000, 1), std::string(1000, '.'));
}

TEST(GraphSampling, AnOpenSampleIsClosedWhenAllWasWaitedFor) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);
  EXPECT_EQ(program.launches(3, 1), "..N");
  program.launch(1, true, 2);
  EXPECT_EQ(program.launches(3, 1), "...");  // the other one's graph may be in flight
  program.wait(0, true);
  EXPECT_EQ(program.launch(1, false), Action::kSilence);
  program.wait(0, true);
  EXPECT_EQ(program.launch(1, false), Action::kClose);
}

TEST(GraphSampling, SeveralStreamsAreNotSampled) {
  Program program;
  program.launches(10, 1);
  program.launch(1, true, 1, 8);
  EXPECT_STREQ(program.sampling->why_not(), "graphs are launched on several streams");
  EXPECT_EQ(program.launches(1000, 1), std::string(1000, '.'));
}

TEST(GraphSampling, NotDuringAnInstantiation) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);
  program.sampling->instantiation_begins(1);
  EXPECT_EQ(program.launches(10, 1), "..........");
  program.sampling->instantiation_ended();
  EXPECT_EQ(program.launches(3, 1), "NSC");
}

TEST(GraphSampling, AnotherThreadThatMakesGraphsEndsIt) {
  Program program;
  program.sampling->instantiation_begins(5);  // before anybody launches: no harm
  program.sampling->instantiation_ended();
  program.pass_watching_time();
  EXPECT_EQ(program.sampling->why_not(), nullptr);
  program.sampling->instantiation_begins(5);
  program.sampling->instantiation_ended();
  EXPECT_STREQ(program.sampling->why_not(), "several threads make graphs");
}

TEST(GraphSampling, ThereIsALimitForAll) {
  Program program;
  program.pass_watching_time();
  program.launches(3, 99);
  std::uint32_t sampled = 1;  // graph 99
  for (std::uint32_t graph = 1; graph <= 200; ++graph) {
    const std::string text = program.launches(5, graph + 100);
    sampled += text == "..NSC" ? 1 : 0;
  }
  EXPECT_EQ(sampled, GraphSampling::kMaxSamples);
}

}  // namespace
}  // namespace llmprof::collect
