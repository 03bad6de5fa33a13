#include "pictures/timeline_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace llmprof::pictures {
namespace {

Piece piece(std::int64_t begin, std::int64_t end, std::int32_t name = 0, std::int64_t id = 1) {
  return Piece::of({.begin_ns = begin, .end_ns = end, .name = name, .stage = 7, .id = id});
}

double busy_ns(const std::vector<Slice>& slices) {
  double sum = 0;
  for (const Slice& slice : slices)
    sum += static_cast<double>(slice.busy) * static_cast<double>(slice.end_ns - slice.begin_ns);
  return sum;
}

TEST(Merger, ShortSlicesOfAPixelBecomeOne) {
  Merger merger({0, 1000}, 10);  // pixels of 100 ns
  merger.add(piece(110, 120, 1));
  merger.add(piece(150, 190, 2));
  merger.add(piece(130, 140, 1));
  const std::vector<Piece> pieces = merger.pieces();
  ASSERT_EQ(pieces.size(), 1U);
  const Slice& slice = pieces[0].slice;
  EXPECT_EQ(slice.begin_ns, 110);
  EXPECT_EQ(slice.end_ns, 190);
  EXPECT_EQ(slice.count, 3);
  EXPECT_FLOAT_EQ(slice.busy, 0.75F);  // 10 + 40 + 10 of 80
  EXPECT_EQ(slice.name, 2);            // 40 against 20
  EXPECT_EQ(slice.stage, 7);
  EXPECT_EQ(slice.id, 0);
}

TEST(Merger, ASliceAloneAndALongOneStayAsTheyAre) {
  Merger merger({0, 1000}, 10);
  merger.add(piece(500, 650, 1, 42));
  merger.add(piece(700, 710, 2, 43));
  const std::vector<Piece> pieces = merger.pieces();
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].slice.id, 42);
  EXPECT_EQ(pieces[0].slice.end_ns, 650);
  EXPECT_EQ(pieces[1].slice.id, 43);
  EXPECT_EQ(pieces[1].slice.count, 1);
}

// A thousand slices that do not overlap, in any order: no time is lost and nothing overlaps, whatever the resolution.
TEST(Merger, KeepsBusyTimeAndOrder) {
  std::mt19937_64 random(8);
  std::vector<Piece> all;
  std::int64_t at = 5, total = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto length = static_cast<std::int64_t>(1 + random() % 400);
    all.push_back(piece(at, at + length, i % 5, i + 1));
    total += length;
    at += length + static_cast<std::int64_t>(random() % 300);
  }
  std::shuffle(all.begin(), all.end(), random);
  for (const int width : {1, 7, 100, 1000, 1'000'000}) {
    Merger merger({0, at}, width);
    for (const Piece& each : all) merger.add(each);
    const std::vector<std::vector<Slice>> rows = in_rows(merger.pieces(), 4);
    ASSERT_EQ(rows.size(), 1U) << width;
    EXPECT_NEAR(busy_ns(rows[0]), static_cast<double>(total), static_cast<double>(total) * 1e-5) << width;
    std::int64_t count = 0;
    for (const Slice& slice : rows[0]) count += slice.count;
    EXPECT_EQ(count, 1000) << width;
    EXPECT_LE(rows[0].size(), static_cast<std::size_t>(2 * width + 2));
    for (std::size_t i = 1; i < rows[0].size(); ++i) EXPECT_LE(rows[0][i - 1].end_ns, rows[0][i].begin_ns);
  }
}

TEST(Rows, SlicesThatOverlapLieInRows) {
  const std::vector<Piece> pieces{piece(0, 100), piece(10, 50), piece(60, 90), piece(70, 80), piece(100, 200)};
  const std::vector<std::vector<Slice>> rows = in_rows(pieces, 2);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].size(), 2U);  // 0…100, 100…200
  ASSERT_EQ(rows[1].size(), 2U);  // 10…50; 60…90, which takes in 70…80 for want of a third row
  EXPECT_EQ(rows[1][1].count, 2);
}

TEST(Heaviest, AKeyWithALargeShareIsNeverLost) {
  Heaviest heaviest;
  for (int i = 0; i < 3000; ++i) heaviest.add(i % 3 == 0 ? 5000 : i, 1);
  EXPECT_EQ(heaviest.key(), 5000);
  EXPECT_EQ(Heaviest().key(), -1);
}

}  // namespace
}  // namespace llmprof::pictures
