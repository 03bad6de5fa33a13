#pragma once
// Slices of a lane, in any order, merged where they are shorter than a pixel: memory for pixels, not for slices.

#include <cstdint>
#include <vector>

#include "pictures/timeline.h"

namespace llmprof::pictures {

// The heaviest of many keys in little memory: exact up to kKept keys, then the lightest makes room and its weight
// passes on, so that a key with a large share is never lost.
class Heaviest {
 public:
  void add(std::int32_t key, std::int64_t weight);
  std::int32_t key() const;  // -1: none

 private:
  static constexpr std::size_t kKept = 12;
  struct Entry {
    std::int32_t key;
    std::int64_t weight;
  };
  std::vector<Entry> entries_;
};

// What is put into a lane: a slice with what is needed to merge it and to tell why the device idled before it.
struct Piece {
  Slice slice;
  std::int64_t busy_ns = 0;
  std::int64_t launch_ns = kNoLaunch;  // when the host began to launch it
  static constexpr std::int64_t kNoLaunch = INT64_MIN;

  static Piece of(const Slice& slice, std::int64_t launch_ns = kNoLaunch);
};

class Merger {
 public:
  Merger(Window window, int width);
  std::int64_t pixel_ns() const { return pixel_ns_; }
  void add(const Piece& piece);
  std::int64_t added() const { return added_; }  // slices, those that a piece stands for included
  // By begin.
  std::vector<Piece> pieces() const;

 private:
  struct Bin {
    std::int64_t begin_ns = 0, end_ns = 0, busy_ns = 0, estimated_ns = 0, launch_ns = Piece::kNoLaunch, id = 0;
    std::int64_t count = 0;
    Heaviest names, stages;
  };
  static void put(Bin& bin, const Piece& piece);
  static Piece merged(const Bin& bin);

  Window window_;
  std::int64_t pixel_ns_;
  std::int64_t added_ = 0;
  std::vector<Bin> bins_;    // by pixel; made when the first short slice comes
  std::vector<Piece> long_;  // at least a pixel each
};

// Slices that overlap (several streams in a graph, calls in calls) onto rows in which they do not; what finds no place
// in `rows` rows is merged with what is there.
std::vector<std::vector<Slice>> in_rows(const std::vector<Piece>& pieces, std::size_t rows);

}  // namespace llmprof::pictures
