#pragma once
// The lanes of one window while rows are read into them. Internal to libs/pictures.

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pictures/merge.h"
#include "pictures/timeline_facts.h"

namespace llmprof::pictures {

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

  // What a device did, merged: kernels and copies of all its streams, by begin.
  std::vector<std::int64_t> gpus() const;
  std::vector<Piece> work_of(std::int64_t device_id) const;

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
  std::int32_t number(const trace::ColumnChunk& chunk, std::size_t column, std::size_t row);

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
