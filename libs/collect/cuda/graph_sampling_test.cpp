#include "collect/cuda/graph_sampling.h"

#include <gtest/gtest.h>

#include <functional>
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
    const Action action = sampling->launch_begins({graph, now_}, hands());
    sampling->leave();
    in_flight = !waits;
    return action;
  }
  // What happens to `launches` launches: a letter each, . N(odes) S(ilence) C(lose) R(esume).
  std::string launches(int count, std::uint32_t graph, bool waits = true) {
    std::string text;
    for (int i = 0; i < count; ++i) text += ".NSCR"[static_cast<int>(launch(graph, waits))];
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
  GraphSampling::Hands hands() {
    return {[](void* of) {
              auto* self = static_cast<Program*>(of);
              ++self->asked;
              return !self->in_flight;
            },
            [](Action, void* of) {
              const auto* self = static_cast<Program*>(of);
              if (self->while_preparing) self->while_preparing();
            },
            [](Action, void* of) { ++static_cast<Program*>(of)->switches; }, this};
  }

  std::unique_ptr<GraphSampling> sampling = std::make_unique<GraphSampling>();
  bool in_flight = false;
  int asked = 0, switches = 0;
  std::function<void()> while_preparing;

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

// Other kinds are switched only while graphs are recorded as a whole, and nothing is switched beside them.
TEST(GraphSampling, OtherKindsWaitForASample) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(2, 1), "..");
  EXPECT_TRUE(program.sampling->hold());
  EXPECT_EQ(program.launches(2, 1), "..");  // it is due
  program.sampling->release();
  EXPECT_EQ(program.launches(1, 1), "N");
  EXPECT_FALSE(program.sampling->hold());
  EXPECT_EQ(program.launches(1, 1), "S");
  EXPECT_FALSE(program.sampling->hold());
  EXPECT_EQ(program.launches(1, 1), "C");
  EXPECT_TRUE(program.sampling->hold());
  program.sampling->release();
}

// The program launches no graph any more.
TEST(GraphSampling, ASampleIsClosedByOthersToo) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(3, 1), "..N");
  program.in_flight = true;
  EXPECT_FALSE(program.sampling->close_if_idle(program.hands()));
  program.in_flight = false;
  EXPECT_TRUE(program.sampling->close_if_idle(program.hands()));
  EXPECT_FALSE(program.sampling->is_open());
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
  const auto hands = program.hands();
  program.sampling->instantiation_begins(&hands);
  EXPECT_EQ(program.launches(10, 1), "..........");
  program.sampling->instantiation_ended();
  EXPECT_EQ(program.launches(3, 1), "NSC");
}

// Streams are not asked while one is captured, whoever launches; what was open is closed before.
TEST(GraphSampling, NotDuringACapture) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(3, 1), "..N");
  program.sampling->capture_begins(program.hands());
  EXPECT_FALSE(program.sampling->is_open());
  const int asked = program.asked;
  EXPECT_EQ(program.launches(10, 2), "..........");
  EXPECT_EQ(program.asked, asked);
  program.sampling->capture_ended();
  program.sampling->capture_ended();  // told twice
  EXPECT_EQ(program.launches(3, 2), "NSC");
}

TEST(GraphSampling, AnInstantiationClosesWhatIsOpen) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(3, 1), "..N");
  const auto hands = program.hands();
  program.sampling->instantiation_begins(&hands);
  EXPECT_FALSE(program.sampling->is_open());
  program.sampling->instantiation_ended();
  EXPECT_FALSE(program.sampling->stays_open());
  EXPECT_EQ(program.launches(3, 2), "..N");
}

// Nothing is switched under a graph that does not end, or a launch: the sample stays open, now and later.
TEST(GraphSampling, AnInstantiationBesideAGraphInFlightLeavesTheSampleOpen) {
  for (const bool launching : {false, true}) {
    Program program;
    program.pass_watching_time();
    EXPECT_EQ(program.launches(3, 1), "..N");
    const int before = program.switches;
    program.in_flight = !launching;
    if (launching) program.sampling->enter();
    const auto hands = program.hands();
    program.sampling->instantiation_begins(&hands);
    if (launching) program.sampling->leave();
    program.in_flight = false;
    EXPECT_EQ(program.launches(2, 1), "..");  // of another thread, beside it
    program.sampling->instantiation_ended();
    EXPECT_TRUE(program.sampling->stays_open());
    EXPECT_EQ(program.launches(200, 1), std::string(200, '.'));
    EXPECT_EQ(program.switches, before);
    EXPECT_FALSE(program.sampling->wants_marks());
    program.sampling->instantiation_begins(&hands);  // the next one has nothing to wait for
    program.sampling->instantiation_ended();
    EXPECT_EQ(program.switches, before);
  }
}

TEST(GraphSampling, WhatWasSilentIsRecordedByNodeThen) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(4, 1), "..NS");
  program.sampling->instantiation_begins(nullptr);  // told inside of the driver: nobody can be asked
  EXPECT_EQ(program.launches(2, 1), "..");
  program.sampling->instantiation_ended();
  program.in_flight = true;
  EXPECT_EQ(program.launches(1, 1, false), ".");
  program.in_flight = false;
  EXPECT_EQ(program.launches(3, 1), "R..");
}

// Who launches does not wait long for who asks: the switch is called off, and comes at a later launch.
TEST(GraphSampling, ALaunchCallsOffWhatTakesLong) {
  Program program;
  program.pass_watching_time();
  EXPECT_EQ(program.launches(2, 1), "..");
  const int before = program.switches;
  program.while_preparing = [&] {
    std::thread([&] {
      program.sampling->enter();
      program.sampling->leave();
    }).join();
  };
  EXPECT_EQ(program.launches(2, 1), "..");
  EXPECT_EQ(program.switches, before);
  program.while_preparing = [&] {
    std::thread([&] {
      program.sampling->instantiation_begins(nullptr);
      program.sampling->instantiation_ended();
    }).join();
  };
  EXPECT_EQ(program.launches(1, 1), ".");
  program.while_preparing = nullptr;
  EXPECT_EQ(program.launches(3, 1), "NSC");
  EXPECT_EQ(program.switches, before + 3);
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

// While one thread switches, no other is inside a launch or an instantiation, or gets there.
TEST(GraphSampling, ThreadsNeverMeetASwitch) {
  static std::atomic<int> inside, met, switches;
  inside = met = switches = 0;
  const GraphSampling::Hands hands = {[](void*) { return inside == 0; }, [](Action, void*) {},
                                      [](Action, void*) {
                                        met += inside != 0;
                                        ++switches;
                                      },
                                      nullptr};
  const auto sampling = std::make_unique<GraphSampling>();
  const auto work = [&](std::uint32_t thread) {
    for (std::uint32_t i = 0; i < 4000; ++i) {
      if (i % 50 == 49) {
        sampling->instantiation_begins(&hands);
        ++inside;
        --inside;
        sampling->instantiation_ended();
      }
      sampling->enter();
      sampling->launch_begins({thread * 100 + i / 100, i}, hands);
      ++inside;
      --inside;
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

char contexts[2];
using Stream = GraphStreams::Stream;
void* own_context(const Stream& stream) { return stream.context; }
void* put_one(const Stream& stream) { return stream.event != nullptr ? stream.event : &contexts; }
Stream stream(std::uint64_t handle, int context = 0) { return {handle, &contexts[context]}; }
Stream default_stream(int context, std::uint64_t thread = 0) { return {1, &contexts[context], thread, true}; }

using Handles = std::vector<std::uint64_t>;
bool is_not_in(const Stream& stream, void* of) {
  for (const std::uint64_t busy : *static_cast<Handles*>(of)) {
    if (busy == stream.handle) return false;
  }
  return true;
}
int asked_of(GraphStreams& streams, bool with_events = false) {
  struct {
    int all = 0, with_events = 0;
  } asked;
  streams.all_idle(
      [](const Stream& stream, void* of) {
        ++static_cast<decltype(asked)*>(of)->all;
        if (stream.event != nullptr) ++static_cast<decltype(asked)*>(of)->with_events;
        return true;
      },
      &asked);
  return with_events ? asked.with_events : asked.all;
}

TEST(GraphStreams, OnlyThoseThatRanGraphsAreAsked) {
  GraphStreams streams;
  Handles busy{70};
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
  streams.launched(stream(60), own_context);
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
  streams.launched(stream(70), own_context);
  EXPECT_FALSE(streams.all_idle(is_not_in, &busy));
  busy.clear();
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
  busy = {60, 70};  // with work that is no graph: they were idle since their last
  EXPECT_TRUE(streams.all_idle(is_not_in, &busy));
}

TEST(GraphStreams, ADestroyedStreamIsNotAsked) {
  GraphStreams streams;
  Handles busy{70};
  streams.launched(stream(60), own_context);
  ASSERT_TRUE(streams.all_idle(is_not_in, &busy));
  streams.destroyed(60);
  EXPECT_FALSE(streams.is_uncertain());
  streams.launched(stream(70), own_context);
  streams.destroyed(70);  // what runs on it goes on
  busy.clear();
  EXPECT_TRUE(streams.is_uncertain());
  EXPECT_FALSE(streams.all_idle(is_not_in, &busy));
}

TEST(GraphStreams, AnEventOutlivesItsStreamButNotItsContext) {
  GraphStreams streams;
  streams.launched(stream(60), own_context);
  streams.mark(stream(60), put_one);
  streams.destroyed(60);
  EXPECT_FALSE(streams.is_uncertain());
  streams.launched(stream(60), own_context);  // another one at the same address
  EXPECT_EQ(asked_of(streams, true), 1);
  streams.launched(stream(60, 1), own_context);
  EXPECT_EQ(asked_of(streams), 1);  // it is known by its handle
  streams.launched(stream(60), own_context);
  streams.mark(stream(60), put_one);
  EXPECT_EQ(asked_of(streams), 1);
  streams.context_destroyed(&contexts[0]);  // idle as it was
  EXPECT_FALSE(streams.is_uncertain());
  streams.launched(stream(80, 1), own_context);
  EXPECT_EQ(asked_of(streams, true), 0);  // the event is not used again
  streams.launched(stream(80, 1), own_context);
  streams.mark(stream(80, 1), put_one);
  streams.context_destroyed(&contexts[0]);
  EXPECT_FALSE(streams.is_uncertain());
  streams.context_destroyed(&contexts[1]);  // with a graph in it
  EXPECT_TRUE(streams.is_uncertain());
}

TEST(GraphStreams, DefaultStreamsAreOnesOfTheirContextAndThread) {
  GraphStreams streams;
  streams.launched(default_stream(0), own_context);
  streams.launched(default_stream(1), own_context);
  streams.launched(default_stream(0, 5), own_context);
  streams.launched(default_stream(1, 5), own_context);
  streams.launched(default_stream(0, 6), own_context);
  streams.launched(default_stream(0, 6), own_context);
  streams.destroyed(1);  // there is no such stream to destroy
  EXPECT_FALSE(streams.is_uncertain());
  EXPECT_EQ(asked_of(streams), 5);
}

TEST(GraphStreams, TooManyAreUncertain) {
  GraphStreams streams;
  for (std::uint64_t i = 1; i <= 64; ++i) streams.launched(stream(i * 16), own_context);
  EXPECT_FALSE(streams.is_uncertain());
  EXPECT_EQ(asked_of(streams), 64);
  streams.launched(stream(17), own_context);  // in the place of one that is idle
  EXPECT_FALSE(streams.is_uncertain());
  for (std::uint64_t i = 1; i <= 64; ++i) streams.launched(stream(i * 16), own_context);
  EXPECT_TRUE(streams.is_uncertain());
}

}  // namespace
}  // namespace llmprof::collect
