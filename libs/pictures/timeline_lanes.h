#pragma once
// The lanes of one window while rows are read into them: slices in any order, merged where they are shorter than a
// pixel, in memory for pixels, not for slices. Internal to libs/pictures; the index of llmprof view takes lanes, too.

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pictures/timeline.h"
#include "pictures/timeline_facts.h"
#include "trace/chunk_row.h"

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

// What lanes are made of, in the order in which a group shows them.
enum class Source : std::uint8_t { kSteps, kRanges, kOps, kApi, kIdle, kGraphs, kKernels, kCopies, kCount };

class Lanes {
 public:
  Lanes(TimelineFacts& facts, Window window, const TimelineRequest& request);
  virtual ~Lanes() = default;

  TimelineFacts& facts() { return facts_; }
  Window window() const { return window_; }
  bool is_whole() const { return is_whole_; }  // the window is the run's
  std::int64_t pixel_ns() const { return pixel_ns_; }

  // `owner` is a thread or a device, `place` a depth or a stream. Slices of another stage than the wanted one, or
  // outside the window, are left out. (The index of llmprof view takes them instead.)
  virtual void add(Source source, std::int64_t owner, std::int64_t place, const Piece& piece);
  // A stream; on a CPU, which has none, the thread that computed.
  static std::int64_t stream_or_thread(std::int64_t stream, std::int64_t thread_id);

  // What a device did, merged: kernels and copies of all its streams, or one of the two, by begin.
  std::vector<std::int64_t> gpus() const;
  std::vector<Piece> work_of(std::int64_t device_id, std::optional<Source> only = {}) const;

  void finish(Timeline& out) const;

 private:
  struct Key {
    bool device;
    std::size_t group, thread;  // process and thread, or device and 0: into the tracks
    Source source;
    std::int64_t place;
    auto operator<=>(const Key&) const = default;
  };
  struct Last {  // rows of one lane mostly follow each other
    std::int64_t owner = 0, place = 0;
    Merger* merger = nullptr;
  };
  Merger& merger(Source source, std::int64_t owner, std::int64_t place);
  Lane titled(const Key& key) const;

  TimelineFacts& facts_;
  Window window_;
  int width_;
  bool is_whole_;
  std::int64_t pixel_ns_;
  std::int32_t stage_ = -1;
  std::map<Key, Merger> mergers_;
  std::array<Last, static_cast<std::size_t>(Source::kCount)> last_;
};

// Texts of a result as numbers of the facts' names.
class TextColumn {
 public:
  explicit TextColumn(Names& names) : names_(names) {}
  std::int32_t number(const trace::ChunkRow& row, std::size_t column);

 private:
  Names& names_;
  std::vector<std::int32_t> numbers_;  // of codes
};

// WHERE of rows that touch the window; "" of the whole run.
std::string touching(const Lanes& lanes, std::string_view begin = "begin_ns", std::string_view end = "end_ns");

Result<void> add_host_work(const trace::Run& run, Lanes& lanes);    // steps, ranges, operators, calls
Result<void> add_device_work(const trace::Run& run, Lanes& lanes);  // kernels, graphs, copies, and their launches
void add_idle(Lanes& lanes);                                        // from what devices did
Result<std::vector<Curve>> read_curves(const trace::Run& run, TimelineFacts& facts, Window window, int width);

}  // namespace llmprof::pictures
