// What goes into the log when only a part is recorded: the pure parts, without threads, clocks or files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "collect/writer/selection.h"
#include "collect/writer/switches.h"

namespace llmprof::collect {
namespace {

using wire::RangeOp;
using wire::RangeRecord;
using wire::Record;
using wire::RecordKind;

constexpr wire::StringId kStepName = 1000;
constexpr wire::StringId kAwaitedName = 1001;
constexpr wire::StringId kModelName = 1002;
constexpr wire::StringId kParallelName = 1003;

struct TestNames {
  bool is_step(const RangeRecord& event) const { return event.name == kStepName; }
  bool is_awaited(const RangeRecord& event) const { return event.name == kAwaitedName; }
  Declares declares(const RangeRecord& event) const {
    if (event.name == kModelName) return Declares::kModel;
    return event.name == kParallelName ? Declares::kParallel : Declares::kNothing;
  }
};

struct Kept {
  std::vector<std::pair<std::uint32_t, Record>> records;  // thread number and record, in order
  void keep(const Record& record, std::uint32_t thread) { records.emplace_back(thread, record); }
};

Record range(RangeOp op, std::uint64_t ts_ns, wire::StringId name, std::uint16_t level, std::uint32_t domain = 0,
             std::uint64_t correlation = 0) {
  Record record{};
  record.kind = RecordKind::kRange;
  record.range = {ts_ns, 0, correlation, name, 0, domain, op, wire::PayloadType::kNone, level};
  return record;
}
Record gemm(std::uint64_t begin_ns, std::uint64_t end_ns) {
  Record record{};
  record.kind = RecordKind::kGemm;
  record.gemm.begin_ns = begin_ns;
  record.gemm.end_ns = end_ns;
  return record;
}
Record thread_record(std::uint64_t tid, std::uint64_t ts_ns) {
  Record record{};
  record.kind = RecordKind::kThread;
  record.thread = {ts_ns, tid, 7, 0};
  return record;
}

// A range as a reader pairs it: thread, name, begin, end; end 0: still open.
using Pair = std::tuple<std::uint32_t, wire::StringId, std::uint64_t, std::uint64_t>;

// Pairs by level as libs/record does, and by correlation.
std::multiset<Pair> paired(const std::vector<std::pair<std::uint32_t, Record>>& records) {
  std::multiset<Pair> pairs;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t>, RangeRecord> open;
  std::map<std::uint64_t, std::pair<std::uint32_t, RangeRecord>> started;
  std::map<std::uint64_t, std::uint64_t> early;
  for (const auto& [thread, record] : records) {
    if (record.kind != RecordKind::kRange) continue;
    const RangeRecord& event = record.range;
    const auto key = std::tuple(thread, event.domain, event.level);
    if (event.op == RangeOp::kPush) {
      EXPECT_TRUE(open.emplace(key, event).second) << "pushed twice in one log";
    } else if (event.op == RangeOp::kPop) {
      const auto found = open.find(key);
      if (found == open.end()) {
        ADD_FAILURE() << "a pop without its push at " << event.ts_ns;
        continue;
      }
      pairs.emplace(thread, found->second.name, found->second.ts_ns, event.ts_ns);
      open.erase(found);
    } else if (event.op == RangeOp::kStart) {
      started.emplace(event.correlation, std::pair(thread, event));
    } else if (event.op == RangeOp::kEnd) {
      early[event.correlation] = event.ts_ns;
    }
  }
  for (const auto& [key, event] : open) pairs.emplace(std::get<0>(key), event.name, event.ts_ns, 0);
  for (const auto& [id, start] : started) {
    const auto end = early.find(id);
    pairs.emplace(start.first, start.second.name, start.second.ts_ns, end == early.end() ? 0 : end->second);
    if (end != early.end()) early.erase(end);
  }
  EXPECT_TRUE(early.empty()) << "an end without its start";
  return pairs;
}

// A program: per thread the records in its order, with everything it did as ranges.
struct Program {
  std::vector<std::vector<Record>> threads;
  std::multiset<Pair> ranges;  // end 0: never ended
  std::vector<std::pair<std::uint64_t, std::uint64_t>> gemms;
  std::size_t events = 0;
};

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : random_(seed) {}

  Program make(std::uint32_t threads, std::uint32_t length) {
    Program program;
    program.threads.resize(threads);
    for (std::uint32_t t = 0; t < threads; ++t) make_thread(program, t, length);
    return program;
  }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

 private:
  void make_thread(Program& program, std::uint32_t t, std::uint32_t length) {
    std::vector<Record>& records = program.threads[t];
    std::uint64_t now = 1000 + below(50);
    records.push_back(thread_record(100 + t, now));
    std::vector<RangeRecord> stacks[2];
    for (std::uint32_t i = 0; i < length; ++i) {
      now += 1 + below(20);
      const auto domain = static_cast<std::uint32_t>(below(2));
      std::vector<RangeRecord>& stack = stacks[domain];
      const std::uint64_t what = below(10);
      ++program.events;
      if (what < 4 && stack.size() < 6) {
        const auto name = static_cast<wire::StringId>(1 + below(5));
        records.push_back(range(RangeOp::kPush, now, name, static_cast<std::uint16_t>(stack.size()), domain));
        stack.push_back(records.back().range);
      } else if (what < 7 && !stack.empty()) {
        const RangeRecord begun = stack.back();
        stack.pop_back();
        records.push_back(range(RangeOp::kPop, now, 0, begun.level, domain));
        program.ranges.emplace(t + 1, begun.name, begun.ts_ns, now);
      } else if (what < 8) {
        const std::uint64_t id = (std::uint64_t{t} + 1) << 32 | i;
        records.push_back(range(RangeOp::kStart, now, 9, wire::kNoLevel, 0, id));
        starts_.push_back({t + 1, records.back().range});
      } else if (what < 9 && !starts_.empty()) {
        end_some(program, t, now);
      } else {
        records.push_back(gemm(now, now + 3));
        program.gemms.emplace_back(now, now + 3);
        now += 3;
      }
    }
    for (const auto& stack : stacks)
      for (const RangeRecord& left : stack) program.ranges.emplace(t + 1, left.name, left.ts_ns, 0);
    if (t + 1 == program.threads.size())
      for (const auto& [thread, left] : starts_) program.ranges.emplace(thread, left.name, left.ts_ns, 0);
  }

  // By another thread than the one that started it, as often as not.
  void end_some(Program& program, std::uint32_t t, std::uint64_t& now) {
    const std::size_t which = below(starts_.size());
    const auto [thread, begun] = starts_[which];
    starts_.erase(starts_.begin() + static_cast<std::ptrdiff_t>(which));
    now = std::max(now, begun.ts_ns + 1);
    program.threads[t].push_back(range(RangeOp::kEnd, now, 0, wire::kNoLevel, 0, begun.correlation));
    program.ranges.emplace(thread, begun.name, begun.ts_ns, now);
  }

  std::mt19937_64 random_;
  std::vector<std::pair<std::uint32_t, RangeRecord>> starts_;
};

// Drains the program as the writer does: in rounds of time, one thread after the other.
// Returns when it ended.
template <class AfterRound>
std::uint64_t drain(const Program& program, Selection& selection, Kept& kept, std::uint64_t round_ns,
                    AfterRound after) {
  const TestNames names;
  std::vector<std::size_t> at(program.threads.size());
  const auto slots = static_cast<std::uint32_t>(at.size());
  for (std::uint64_t now = round_ns;; now += round_ns) {
    bool more = false;
    std::vector<std::size_t> end = at;
    for (std::uint32_t t = 0; t < slots; ++t) {
      const auto& records = program.threads[t];
      const auto time = [](const Record& r) {
        return r.kind == RecordKind::kRange  ? r.range.ts_ns
               : r.kind == RecordKind::kGemm ? r.gemm.end_ns
                                             : r.thread.ts_ns;
      };
      while (end[t] < records.size() && time(records[end[t]]) < now) ++end[t];
      more = more || end[t] < records.size();
      for (std::size_t i = at[t]; i < end[t] && selection.watches(); ++i)
        selection.watch(records[i], {t, t + 1, 100 + t}, names);
    }
    for (std::uint32_t t = 0; t < slots; ++t) {
      for (; at[t] < end[t]; ++at[t]) selection.take(program.threads[t][at[t]], {t, t + 1, 100 + t}, names, kept);
    }
    selection.drained(now, slots, kept);
    if (more) {
      after(now);
      continue;
    }
    selection.finish(slots);
    return now;
  }
}

std::size_t events_in(const Kept& kept) {
  return static_cast<std::size_t>(std::count_if(kept.records.begin(), kept.records.end(), [](const auto& entry) {
    return entry.second.kind == RecordKind::kRange || entry.second.kind == RecordKind::kGemm;
  }));
}

// Whatever the program and the window: exactly the ranges that overlap it are in the log, with their true times, every
// thread in it is introduced, and kept and outside add up to all events.
TEST(Selection, KeepsWhatOverlapsTheWindowAndNothingElse) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Maker maker(seed);
    const Program program = maker.make(1 + static_cast<std::uint32_t>(maker.below(4)), 200);
    const std::uint64_t begin = maker.below(4000), end = begin + maker.below(3000);
    const auto memory = std::make_unique<SelectionMemory>();
    Selection selection(memory.get(), Window({.from_ns = begin, .until_ns = end}), false);
    ASSERT_TRUE(selection.active());
    Kept kept;
    const std::uint64_t over = drain(program, selection, kept, 1 + maker.below(500), [](std::uint64_t) {});

    std::multiset<Pair> wanted;
    for (const Pair& pair : program.ranges) {
      const std::uint64_t ended = std::get<3>(pair) == 0 ? over : std::get<3>(pair);
      if (std::get<2>(pair) < end && ended >= begin) wanted.insert(pair);
    }
    EXPECT_EQ(paired(kept.records), wanted);
    std::size_t gemms = 0;
    for (const auto& [first, last] : program.gemms) gemms += first < end && last >= begin ? 1 : 0;
    std::set<std::uint32_t> used, introduced;
    for (const auto& [thread, record] : kept.records) {
      (record.kind == RecordKind::kThread ? introduced : used).insert(thread);
      gemms -= record.kind == RecordKind::kGemm ? 1 : 0;
    }
    EXPECT_EQ(gemms, 0u);
    EXPECT_EQ(introduced, used);
    EXPECT_EQ(events_in(kept) + selection.outside(), program.events);
  }
}

// The same for a recording that is switched on and off, each switch known before what comes after it is judged.
TEST(Selection, KeepsWhatOverlapsAnyStretch) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Maker maker(seed);
    const Program program = maker.make(1 + static_cast<std::uint32_t>(maker.below(4)), 200);
    std::vector<std::uint64_t> switches;  // on, off, on, …
    for (std::uint64_t at = maker.below(900); at < 5000; at += 1 + maker.below(900)) switches.push_back(at);
    const auto memory = std::make_unique<SelectionMemory>();
    Selection selection(memory.get(), Window({.switched = true}), false);
    ASSERT_TRUE(selection.active());
    std::size_t told = 0;
    const auto tell_until = [&](std::uint64_t ts_ns) {
      for (; told < switches.size() && switches[told] < ts_ns; ++told)
        selection.switch_at(switches[told], told % 2 == 0);
    };
    Kept kept;
    const std::uint64_t round_ns = 1 + maker.below(500);
    tell_until(round_ns);
    const std::uint64_t over =
        drain(program, selection, kept, round_ns, [&](std::uint64_t now) { tell_until(now + round_ns); });

    const auto inside = [&](std::uint64_t begin, std::uint64_t end) {
      for (std::size_t i = 0; i < told; i += 2) {
        const std::uint64_t off = i + 1 < told ? switches[i + 1] : kNever;
        if (begin < off && end >= switches[i]) return true;
      }
      return false;
    };
    std::multiset<Pair> wanted;
    for (const Pair& pair : program.ranges) {
      if (inside(std::get<2>(pair), std::get<3>(pair) == 0 ? over : std::get<3>(pair))) wanted.insert(pair);
    }
    EXPECT_EQ(paired(kept.records), wanted);
    EXPECT_EQ(events_in(kept) + selection.outside(), program.events);
  }
}

Record graph_node(std::uint64_t ts_ns, std::uint64_t cloned_from) {
  Record record{};
  record.kind = RecordKind::kGraphNode;
  record.graph_node.ts_ns = ts_ns;
  record.graph_node.cloned_from = cloned_from;
  return record;
}
Record gpu_gemm(std::uint64_t begin_ns, std::uint64_t end_ns) {
  Record record{};
  record.kind = RecordKind::kGpuGemm;
  record.gpu_gemm.begin_ns = begin_ns;
  record.gpu_gemm.end_ns = end_ns;
  return record;
}

// What was captured into a graph before the window, the product it is a part of and the ranges around it are kept; a
// product beside it, a range beside it and the ranges around a mere clone are not.
TEST(Selection, WhatWasCapturedIsKeptWheneverItWas) {
  const auto memory = std::make_unique<SelectionMemory>();
  Selection selection(memory.get(), Window({.from_ns = 1000}), false);
  Kept kept;
  const TestNames names;
  const std::vector<Record> records = {range(RangeOp::kPush, 10, 1, 0),
                                       range(RangeOp::kPush, 20, 2, 1),
                                       gpu_gemm(21, 25),
                                       graph_node(32, 0),
                                       gpu_gemm(30, 40),
                                       range(RangeOp::kPop, 50, 0, 1),
                                       range(RangeOp::kPush, 60, 3, 1),
                                       range(RangeOp::kPop, 70, 0, 1),
                                       range(RangeOp::kPop, 80, 0, 0),
                                       range(RangeOp::kPush, 90, 4, 0),
                                       graph_node(95, 7),
                                       range(RangeOp::kPop, 99, 0, 0)};
  for (const Record& record : records) selection.take(record, {0, 1, 100}, names, kept);
  EXPECT_EQ(paired(kept.records), (std::multiset<Pair>{{1, 1, 10, 80}, {1, 2, 20, 50}}));
  std::vector<std::uint64_t> products, nodes;
  for (const auto& [thread, record] : kept.records) {
    if (record.kind == RecordKind::kGpuGemm) products.push_back(record.gpu_gemm.begin_ns);
    if (record.kind == RecordKind::kGraphNode) nodes.push_back(record.graph_node.ts_ns);
  }
  EXPECT_EQ(products, std::vector<std::uint64_t>{30});
  EXPECT_EQ(nodes, (std::vector<std::uint64_t>{32, 95}));
  EXPECT_EQ(selection.outside(), 5u);  // one product, two ranges with begin and end
}

// Every log alone, with those behind it, holds all ranges that were open when it began or began later, with their true
// begin: the logs before it can be deleted.
TEST(Selection, EverySegmentStandsOnItsOwn) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Maker maker(seed);
    const Program program = maker.make(1 + static_cast<std::uint32_t>(maker.below(3)), 200);
    const auto memory = std::make_unique<SelectionMemory>();
    Selection selection(memory.get(), Window(), true);
    Kept kept;
    std::vector<std::pair<std::uint64_t, std::size_t>> logs{{0, 0}};  // when each began, and its first record
    std::uint32_t log = 1;
    drain(program, selection, kept, 1 + maker.below(300), [&](std::uint64_t now) {
      if (maker.below(3) != 0) return;
      logs.emplace_back(now, kept.records.size());
      selection.begin_log(++log, kept);
      selection.drained(now, static_cast<std::uint32_t>(program.threads.size()), kept);
    });
    EXPECT_EQ(selection.outside(), 0u);
    for (std::size_t first = 0; first < logs.size(); ++first) {
      // A reader that has several logs meets the carried pushes again at each beginning.
      std::vector<std::pair<std::uint32_t, Record>> read;
      std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> known;
      for (std::size_t i = logs[first].second; i < kept.records.size(); ++i) {
        const auto& [thread, record] = kept.records[i];
        const bool begins = record.kind == RecordKind::kRange &&
                            (record.range.op == RangeOp::kPush || record.range.op == RangeOp::kStart);
        if (begins && !known.emplace(thread, record.range.domain, record.range.ts_ns).second) continue;
        read.emplace_back(thread, record);
      }
      std::multiset<Pair> wanted;
      for (const Pair& pair : program.ranges) {
        if (std::get<3>(pair) == 0 || std::get<3>(pair) >= logs[first].first) wanted.insert(pair);
      }
      EXPECT_EQ(paired(read), wanted) << "from log " << first;
    }
  }
}

struct Steps {
  std::unique_ptr<SelectionMemory> memory = std::make_unique<SelectionMemory>();
  Kept kept;
  std::size_t batch = 1000;  // records that are drained together
  // Three steps [100, 200], [200, 300], [300, 400], each with a part in its middle and a step inside it, in an outer
  // range [50, 500]; then what is kept.
  std::set<std::uint64_t> begins(const WindowPlan& plan) {
    std::vector<Record> records{thread_record(100, 40), range(RangeOp::kPush, 50, 1, 0)};
    for (std::uint64_t at = 100; at < 400; at += 100) {
      records.push_back(range(RangeOp::kPush, at, kStepName, 1));
      records.push_back(range(RangeOp::kPush, at + 20, kStepName, 2));  // a part of the step around it
      records.push_back(range(RangeOp::kPop, at + 30, 0, 2));
      records.push_back(range(RangeOp::kPush, at + 40, kAwaitedName, 2));
      records.push_back(range(RangeOp::kPop, at + 60, 0, 2));
      records.push_back(range(RangeOp::kPop, at + 99, 0, 1));
    }
    records.push_back(range(RangeOp::kPop, 500, 0, 0));
    Selection selection(memory.get(), Window(plan), false);
    for (std::size_t at = 0; at < records.size(); at += batch) {
      const std::size_t end = std::min(at + batch, records.size());
      for (std::size_t i = at; i < end; ++i) selection.watch(records[i], {0, 1, 100}, TestNames());
      for (std::size_t i = at; i < end; ++i) selection.take(records[i], {0, 1, 100}, TestNames(), kept);
    }
    std::set<std::uint64_t> result;
    for (const Pair& pair : paired(kept.records)) result.insert(std::get<2>(pair));
    return result;
  }
};

TEST(Selection, StepsAreCountedFromZeroAndTheInnerOnesBelongToTheOuter) {
  using Set = std::set<std::uint64_t>;
  EXPECT_EQ(Steps().begins({.counts_steps = true, .first_step = 1, .end_step = 2}), (Set{50, 200, 220, 240}));
  EXPECT_EQ(Steps().begins({.counts_steps = true, .end_step = 1}), (Set{50, 100, 120, 140}));
  EXPECT_EQ(Steps().begins({.counts_steps = true, .first_step = 2}), (Set{50, 300, 320, 340}));
  EXPECT_EQ(Steps().begins({.counts_steps = true, .first_step = 3}), (Set{}));  // there is none
}

TEST(Selection, StepsAreTheSameHoweverTheyAreDrained) {
  for (std::size_t batch = 1; batch < 25; ++batch) {
    Steps steps;
    steps.batch = batch;
    EXPECT_EQ(steps.begins({.counts_steps = true, .end_step = 2}),
              (std::set<std::uint64_t>{50, 100, 120, 140, 200, 220, 240}))
        << batch;
  }
}

TEST(Selection, AWindowBeginsWithTheFirstRangeOfTheName) {
  using Set = std::set<std::uint64_t>;
  EXPECT_EQ(Steps().begins({.from_ns = 150, .waits_for_range = true}), (Set{50, 200, 240, 300, 320, 340}));
  EXPECT_EQ(Steps().begins({.lasts_ns = 10, .waits_for_range = true}), (Set{50, 100, 140}));
}

TEST(Selection, DeclarationsAreKeptWheneverTheyAreMadeAndRepeated) {
  const auto memory = std::make_unique<SelectionMemory>();
  Selection selection(memory.get(), Window({.from_ns = 1000}), true);
  Kept kept;
  const TestNames names;
  selection.take(thread_record(100, 5), {0, 1, 100}, names, kept);
  selection.take(range(RangeOp::kMark, 10, kModelName, wire::kNoLevel), {0, 1, 100}, names, kept);
  selection.take(range(RangeOp::kMark, 11, 3, wire::kNoLevel), {0, 1, 100}, names, kept);
  selection.take(range(RangeOp::kMark, 12, kParallelName, wire::kNoLevel), {0, 1, 100}, names, kept);
  EXPECT_EQ(events_in(kept), 2u);
  EXPECT_EQ(selection.outside(), 1u);
  kept.records.clear();
  selection.begin_log(2, kept);
  ASSERT_EQ(kept.records.size(), 4u);
  EXPECT_EQ(kept.records[0].second.thread.tid, 100u);
  EXPECT_EQ(kept.records[1].second.range.name, kModelName);
  EXPECT_EQ(kept.records[3].second.range.name, kParallelName);
}

TEST(OpenRanges, NestingBeyondTheRoomDoesNoHarm) {
  const auto open = std::make_unique<OpenRanges>();
  for (std::uint32_t i = 0; i < kMaxOpenRanges; ++i)
    ASSERT_NE(open->push(0, 1, range(RangeOp::kPush, i, 1, static_cast<std::uint16_t>(i)).range), nullptr);
  EXPECT_EQ(open->push(0, 1, range(RangeOp::kPush, 1, 1, kMaxOpenRanges).range), nullptr);
  OpenRange begun;
  EXPECT_FALSE(open->pop(0, range(RangeOp::kPop, 1, 0, kMaxOpenRanges).range, &begun));
  EXPECT_TRUE(open->pop(0, range(RangeOp::kPop, 1, 0, kMaxOpenRanges - 1).range, &begun));
  EXPECT_EQ(begun.record.ts_ns, kMaxOpenRanges - 1);
  // A pop of level 0 ends everything deeper, whose pops were lost.
  EXPECT_TRUE(open->pop(0, range(RangeOp::kPop, 1, 0, 0).range, &begun));
  EXPECT_EQ(open->top(0), nullptr);
}

TEST(OpenRanges, AnEndWithoutAStartIsGivenUp) {
  const auto open = std::make_unique<OpenRanges>();
  OpenRange other;
  EXPECT_EQ(open->end(0, 1, range(RangeOp::kEnd, 5, 0, wire::kNoLevel, 0, 77).range, &other), OpenRanges::End::kEarly);
  EXPECT_EQ(open->next_drain(), 0u);
  EXPECT_EQ(open->next_drain(), 1u);
  EXPECT_NE(open->start(0, 1, range(RangeOp::kStart, 4, 0, wire::kNoLevel, 0, 77).range, &other), nullptr);
  EXPECT_EQ(other.ended_at, 0u);
}

}  // namespace
}  // namespace llmprof::collect
