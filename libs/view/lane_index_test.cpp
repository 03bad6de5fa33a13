// The index against the rule applied to every slice, one by one.

#include "view/lane_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace llmprof::view {
namespace {

using pictures::Window;

// The merging of slices in its plainest form: short slices by the pixel in which they begin, long ones alone.
std::vector<MergedSlice> by_hand(const std::vector<IndexedSlice>& slices, Window window, std::int64_t pixel) {
  std::map<std::pair<std::int64_t, int>, std::vector<IndexedSlice>> groups;
  for (const IndexedSlice& slice : slices) {
    const std::int64_t at = pixel_of(slice.begin_ns, pixel);
    groups[{at, slice.end_ns - slice.begin_ns >= pixel ? 1 : 0}].push_back(slice);
  }
  std::vector<MergedSlice> out;
  const std::int64_t first = pixel_of(window.begin_ns, pixel) * pixel;
  for (const auto& [key, group] : groups) {
    MergedSlice merged{group.front().begin_ns, group.back().end_ns, 0, 0, 0, 0, group.front().launch_ns};
    std::map<std::uint32_t, std::int64_t> weights;
    for (const IndexedSlice& slice : group) {
      merged.busy_ns += slice.end_ns - slice.begin_ns;
      merged.count += 1;
      weights[slice.label] += slice.end_ns - slice.begin_ns + 1;
    }
    merged.id = group.size() == 1 ? group.front().id : 0;
    std::int64_t most = -1;
    for (const auto& [label, weight] : weights)
      if (weight > most) most = weight, merged.label = label;
    const bool before = merged.begin_ns < first && merged.end_ns <= window.begin_ns;
    // A pixel in which the window begins or ends is taken whole.
    const std::int64_t begin_of_pixel = groups.lower_bound({key.first, 0})->second.front().begin_ns;
    if (!before && begin_of_pixel < window.end_ns) out.push_back(merged);
  }
  return out;
}

struct Lane {
  std::vector<IndexedSlice> slices;
  std::vector<LaneIndex> rows;
};

Lane random_lane(unsigned seed, int count, int labels) {
  std::mt19937 random(seed);
  Lane lane;
  LaneIndex index;
  std::int64_t now = -5'000;
  for (int i = 0; i < count; ++i) {
    now += static_cast<std::int64_t>(random() % (random() % 50 == 0 ? 20'000 : 30));
    const auto length = static_cast<std::int64_t>(random() % (random() % 40 == 0 ? 5'000 : 50));
    const bool known = random() % 5 != 0;
    lane.slices.push_back({now, now + length, static_cast<std::uint32_t>(random() % static_cast<unsigned>(labels)),
                           i + 1, known ? now - static_cast<std::int64_t>(random() % 900) : kNoLaunch});
    index.add(lane.slices.back());
    now += length;
  }
  lane.rows = LaneIndex::in_rows(std::move(index));
  return lane;
}

void expect_same(const MergedSlice& got, const MergedSlice& expected, bool with_label) {
  EXPECT_EQ(got.begin_ns, expected.begin_ns);
  EXPECT_EQ(got.end_ns, expected.end_ns);
  EXPECT_EQ(got.busy_ns, expected.busy_ns);
  EXPECT_EQ(got.count, expected.count);
  EXPECT_EQ(got.id, expected.id);
  EXPECT_EQ(got.launch_ns, expected.launch_ns);
  if (with_label) {
    EXPECT_EQ(got.label, expected.label);
  }
}

TEST(LaneIndex, AnyWindowInAnyZoomIsWhatTheRuleSays) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 6; ++seed) {
    const int labels = seed % 2 == 0 ? 5 : 40;  // up to Heaviest::kKept the heaviest is exact
    const Lane lane = random_lane(seed, 4000, labels);
    ASSERT_EQ(lane.rows.size(), 1u);
    const std::int64_t length = lane.slices.back().end_ns - lane.slices.front().begin_ns;
    for (int i = 0; i < 120; ++i) {
      const std::int64_t begin = lane.slices.front().begin_ns + static_cast<std::int64_t>(random() % length);
      const Window window{begin,
                          begin + 1 + static_cast<std::int64_t>(random() % (std::int64_t{1} << (random() % 20)))};
      const std::int64_t pixel = std::int64_t{1} << (random() % 18);
      std::vector<MergedSlice> got;
      std::int64_t counted = 0;
      const std::int64_t count = lane.rows[0].merge(window, pixel, [&](const MergedSlice& each) {
        got.push_back(each);
        counted += each.count;
      });
      const std::vector<MergedSlice> expected = by_hand(lane.slices, window, pixel);
      ASSERT_EQ(got.size(), expected.size()) << window.begin_ns << ".." << window.end_ns << " pixel " << pixel;
      for (std::size_t k = 0; k < got.size(); ++k) expect_same(got[k], expected[k], labels == 5);
      EXPECT_EQ(count, counted);
    }
  }
}

// What bounds the work and the size of an answer: two slices per pixel.
TEST(LaneIndex, NoMoreThanTwoSlicesPerPixel) {
  const Lane lane = random_lane(3, 100'000, 300);
  const Window whole{lane.slices.front().begin_ns, lane.slices.back().end_ns};
  const std::int64_t pixel = power_of_two((whole.end_ns - whole.begin_ns) / 500);
  std::int64_t slices = 0;
  const std::int64_t count = lane.rows[0].merge(whole, pixel, [&](const MergedSlice&) { ++slices; });
  EXPECT_EQ(count, 100'000);
  EXPECT_LE(slices, 2 * ((whole.end_ns - whole.begin_ns) / pixel + 2));
}

// Of many labels one with a third of the time is found, as Heaviest promises (more than 1 of 7).
TEST(LaneIndex, AHeavyLabelIsFoundAmongMany) {
  LaneIndex index;
  for (int i = 0; i < 30'000; ++i)
    index.add({i * 100, i * 100 + (i % 3 == 0 ? 90 : 40), i % 3 == 0 ? 9999U : static_cast<std::uint32_t>(i % 997), 1,
               kNoLaunch});
  const std::vector<LaneIndex> rows = LaneIndex::in_rows(std::move(index));
  std::vector<std::uint32_t> labels;
  rows[0].merge({0, 3'000'000}, 1 << 30, [&](const MergedSlice& each) { labels.push_back(each.label); });
  EXPECT_EQ(labels, std::vector<std::uint32_t>{9999});
}

TEST(LaneIndex, WhatOverlapsComesIntoRows) {
  LaneIndex index;  // three nested ranges, given inside out, then one behind them
  index.add({20, 30, 3, 3, kNoLaunch});
  index.add({10, 50, 2, 2, kNoLaunch});
  index.add({10, 100, 1, 1, kNoLaunch});
  index.add({100, 110, 4, 4, kNoLaunch});
  const std::vector<LaneIndex> rows = LaneIndex::in_rows(std::move(index));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].size(), 2u);
  EXPECT_EQ(rows[0].at(0).id, 1);
  EXPECT_EQ(rows[1].at(0).id, 2);
  EXPECT_EQ(rows[2].at(0).id, 3);
}

TEST(LaneIndex, NumbersBeyond32BitsAreKept) {
  LaneIndex index;
  index.add({5, 5 + (std::int64_t{1} << 40), 1, std::int64_t{1} << 50, 2});
  index.add({std::int64_t{1} << 41, (std::int64_t{1} << 41) + 1, 1, 7, -(std::int64_t{1} << 50)});
  const std::vector<LaneIndex> rows = LaneIndex::in_rows(std::move(index));
  EXPECT_EQ(rows[0].at(0).end_ns, 5 + (std::int64_t{1} << 40));
  EXPECT_EQ(rows[0].at(0).id, std::int64_t{1} << 50);
  EXPECT_EQ(rows[0].at(0).launch_ns, 2);
  EXPECT_EQ(rows[0].at(1).launch_ns, (std::int64_t{1} << 41) - (std::int64_t{UINT32_MAX} - 1));  // 4.3 s before
}

// The figure of the manual: 20 bytes and the sums for a slice without a launch, 24 with one.
TEST(LaneIndex, TakesTheMemoryThatIsSaid) {
  LaneIndex index;
  for (int i = 0; i < 1'000'000; ++i) index.add({i * 10, i * 10 + 5, static_cast<std::uint32_t>(i % 9), i, i * 10 - 3});
  const std::vector<LaneIndex> rows = LaneIndex::in_rows(std::move(index));
  EXPECT_LT(rows[0].bytes(), 27'000'000u);
}

}  // namespace
}  // namespace llmprof::view
