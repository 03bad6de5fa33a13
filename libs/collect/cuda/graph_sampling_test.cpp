#include "collect/cuda/graph_sampling.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace llmprof::collect {
namespace {

using Action = GraphSampling::Action;
constexpr std::uint64_t kMs = 1000000;

// A program that launches graphs, one millisecond after the other.
class Program {
 public:
  Program() { sampling->watch_first(500 * kMs); }
  Action launch(std::uint32_t graph, bool waits = true) {
    now_ += kMs;
    sampling->enter();
    const Action action = sampling->launch_begins({graph, now_}, idle());
    if (action != Action::kNone) sampling->switched();
    sampling->leave();
    in_flight = !waits;
    return action;
  }
  // What happens to `launches` launches: a letter each, . N(odes) S(ilence) C(lose).
  std::string launches(int count, std::uint32_t graph, bool waits = true) {
    std::string text;
    for (int i = 0; i < count; ++i) text += ".NSC"[static_cast<int>(launch(graph, waits))];
    return text;
  }
  // Launches without a wait, and one after the last.
  std::string burst(int count, std::uint32_t graph) {
    const std::string text = launches(count, graph, false);
    in_flight = false;
    return text;
  }
  void pass_watching_time() {
    launches(504, 99);  // a graph of its own
    launches(2, 99);    // its own sample ends
    ASSERT_FALSE(sampling->is_open());
  }
  GraphSampling::Idle idle() {
    return {[](void* of) {
              auto* self = static_cast<Program*>(of);
              ++self->asked;
              return !self->in_flight;
            },
            this};
  }

  std::unique_ptr<GraphSampling> sampling = std::make_unique<GraphSampling>();
  bool in_flight = false;
  int asked = 0;

 private:
  std::uint64_t now_ = 1000 * kMs;
};

TEST(GraphSampling, NothingInTheFirstHalfSecond) {
  Program program;
  EXPECT_EQ(program.launches(500, 1), std::string(500, '.'));
  EXPECT_EQ(program.asked, 0);
  EXPECT_STREQ(program.sampling->why_not(), "all launches came within the time that is waited after the first");
  EXPECT_EQ(program.launches(5, 1), "..NSC");  // idle twice before
  EXPECT_EQ(program.sampling->why_not(), nullptr);
}

TEST(GraphSampling, TwoSamplesOfEachGraph) {
  Program program;
  program.pass_watching_time();
  // The third launch is the first sample; one launch with nothing, and the one after it is as before.
  EXPECT_EQ(program.launches(5, 1), "..NSC");
  EXPECT_EQ(program.launches(61 + 3, 1), std::string(61, '.') + "NSC");
  EXPECT_EQ(program.launches(1000, 1), std::string(1000, '.'));
  EXPECT_EQ(program.launches(5, 2), "..NSC");
}

TEST(GraphSampling, AGraphThatWasChangedIsSampledAgain) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(5, 1), "..NSC");
  program.sampling->changed(1, true);
  EXPECT_EQ(program.launches(5, 1), "..NSC");
  for (int i = 0; i < 2; ++i) {
    program.sampling->changed(1, false);
    EXPECT_EQ(program.launches(5, 1), "..NSC");
  }
  program.sampling->changed(1, false);  // it may be the same as ever
  EXPECT_EQ(program.launches(5, 1), ".....");
}

TEST(GraphSampling, OnlyWhenTheProgramWaits) {
  Program program;
  program.pass_watching_time();
  program.in_flight = true;
  EXPECT_EQ(program.launches(100, 1, false), std::string(100, '.'));
  program.in_flight = false;
  EXPECT_EQ(program.launches(3, 1), "NSC");
}

// 16 launches a step, and one wait: each part of a sample is a step.
TEST(GraphSampling, BurstsAreSampledAsAWhole) {
  Program program;
  program.pass_watching_time();
  const std::string quiet(16, '.'), rest(15, '.');
  EXPECT_EQ(program.burst(16, 1), quiet);
  EXPECT_EQ(program.burst(16, 1), "N" + rest);
  EXPECT_EQ(program.burst(16, 1), "S" + rest);
  EXPECT_EQ(program.burst(16, 1), "C" + rest);
  EXPECT_FALSE(program.sampling->is_open());
  EXPECT_EQ(program.burst(16, 1), quiet);
  EXPECT_EQ(program.burst(16, 1), "N" + rest);  // the 64th launch since the first sample
}

TEST(GraphSampling, AProgramThatNeverWaitsIsAskedRarelyAndToldSo) {
  Program program;
  program.sampling->watch_first(0);
  program.in_flight = true;
  program.launches(10000, 1, false);
  EXPECT_LE(program.asked, static_cast<int>(GraphSampling::kOften + 10000 / GraphSampling::kRarely + 1));
  EXPECT_STREQ(program.sampling->why_not(),
               "the program did not wait for its graphs: one was always in flight when the next was launched");
}

TEST(GraphSampling, StaysOpenWhileAGraphIsInFlight) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(2, 1), "..");
  EXPECT_EQ(program.burst(3, 1), "N..");  // nobody waited for the sample
  EXPECT_TRUE(program.sampling->is_open());
  EXPECT_EQ(program.launches(2, 1), "SC");
  EXPECT_FALSE(program.sampling->is_open());
}

TEST(GraphSampling, SilenceLastsUntilTheSampledGraphComesAgain) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(3, 1), "..N");
  EXPECT_EQ(program.launches(1, 2), "S");
  EXPECT_EQ(program.launches(2, 2), "..");
  EXPECT_EQ(program.launches(1, 1), ".");  // with nothing on
  EXPECT_EQ(program.launches(1, 2), "C");
}

TEST(GraphSampling, SilenceEndsWithoutTheSampledGraph) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(3, 1), "..N");
  EXPECT_EQ(program.launches(9, 2), "S.......C");  // 8 with nothing on
}

TEST(GraphSampling, NotWhileAnotherThreadIsInsideALaunch) {
  Program program;
  program.pass_watching_time();
  program.sampling->enter();
  EXPECT_EQ(program.launches(20, 1), std::string(20, '.'));
  program.sampling->leave();
  EXPECT_EQ(program.launches(3, 1), "NSC");
}

TEST(GraphSampling, NotDuringAnInstantiation) {
  Program program;
  program.pass_watching_time();
  program.sampling->instantiation_begins();
  EXPECT_EQ(program.launches(10, 1), "..........");
  program.sampling->instantiation_ended();
  EXPECT_EQ(program.launches(3, 1), "NSC");
}

TEST(GraphSampling, AnInstantiationClosesWhatIsOpenOnceNothingIsInFlight) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(3, 1), "..N");
  program.in_flight = true;
  program.sampling->instantiation_begins();
  EXPECT_FALSE(program.sampling->may_close(program.idle()));
  program.in_flight = false;
  program.sampling->enter();  // another thread is about to launch
  EXPECT_FALSE(program.sampling->may_close(program.idle()));
  program.sampling->leave();
  ASSERT_TRUE(program.sampling->may_close(program.idle()));
  program.sampling->closed();
  program.sampling->switched();
  program.sampling->instantiation_ended();
  EXPECT_FALSE(program.sampling->is_open());
}

TEST(GraphSampling, AReasonGivenEndsIt) {
  Program program;
  program.sampling->give_up("because");
  EXPECT_EQ(program.launches(1000, 1), std::string(1000, '.'));
  EXPECT_STREQ(program.sampling->why_not(), "because");
}

TEST(GraphSampling, ThereIsALimitForAll) {
  Program program;
  program.pass_watching_time();
  std::uint32_t sampled = 1;  // graph 99
  for (std::uint32_t graph = 1; graph <= 200; ++graph) {
    const std::string text = program.launches(5, graph + 100);
    sampled += text == "..NSC" ? 1 : 0;
  }
  EXPECT_EQ(sampled, GraphSampling::kMaxSamples);
}

// While one thread switches, no other is inside a launch, or gets there.
TEST(GraphSampling, ThreadsNeverMeetASwitch) {
  const auto sampling = std::make_unique<GraphSampling>();
  std::atomic<int> launching{0}, met{0}, switches{0};
  const auto work = [&](std::uint32_t thread) {
    for (std::uint32_t i = 0; i < 4000; ++i) {
      sampling->enter();
      const Action action = sampling->launch_begins(
          {thread * 100 + i / 100, i}, {[](void* of) { return *static_cast<std::atomic<int>*>(of) == 0; }, &launching});
      if (action != Action::kNone) {
        met += launching != 0;
        ++switches;
        sampling->switched();
      }
      ++launching;
      --launching;
      sampling->leave();
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t t = 1; t <= 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(met, 0);
  EXPECT_GT(switches, 0);
}

// ---- streams ------------------------------------------------------------------------------------------------------

using Handles = std::vector<std::uint64_t>;
bool is_not_in(const GraphStreams::Stream& stream, void* of) {
  for (const std::uint64_t busy : *static_cast<Handles*>(of)) {
    if (busy == stream.handle) return false;
  }
  return true;
}

TEST(GraphStreams, OnlyThoseThatRanGraphsAreAsked) {
  GraphStreams streams;
  Handles busy{70};
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
  streams.launched({60, 0});
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
  streams.launched({70, 0});
  EXPECT_FALSE(streams.all_idle(is_not_in, &busy));
  busy.clear();
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
  busy = {60, 70};  // with work that is no graph: they were idle since their last
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
}

TEST(GraphStreams, ADestroyedStreamIsNotAsked) {
  GraphStreams streams;
  Handles busy{70};
  streams.launched({60, 0});
  ASSERT_TRUE(streams.all_idle(is_not_in, &busy));
  streams.destroyed(60);
  EXPECT_FALSE(streams.is_uncertain());
  streams.launched({70, 0});
  streams.destroyed(70);  // what runs on it goes on
  busy.clear();
  EXPECT_TRUE(streams.is_uncertain());
  EXPECT_FALSE(streams.all_idle(is_not_in, &busy));
  streams.all_ended();
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
}

TEST(GraphStreams, DefaultStreamsAreOnesOfTheirPlace) {
  GraphStreams streams;
  Handles busy;
  streams.launched({1, 500});
  streams.launched({1, 600});
  streams.destroyed(1);  // there is no such stream to destroy
  EXPECT_FALSE(streams.is_uncertain());
  int asked = 0;
  streams.all_idle([](const GraphStreams::Stream&, void* of) { return ++*static_cast<int*>(of) > 0; }, &asked);
  EXPECT_EQ(asked, 2);
}

TEST(GraphStreams, TooManyAreUncertain) {
  GraphStreams streams;
  for (std::uint64_t i = 1; i <= 64; ++i) streams.launched({i * 16, 0});
  EXPECT_FALSE(streams.is_uncertain());
  streams.launched({17, 0});
  EXPECT_TRUE(streams.is_uncertain());
}

}  // namespace
}  // namespace llmprof::collect
