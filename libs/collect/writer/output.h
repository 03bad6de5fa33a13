#pragma once
// Records into blocks, blocks into the log. Owned by the writer thread. Names, domains, categories and libraries are
// defined in the log just before they are first used, so only what occurs is written, and a log stands on its own.

#include <cstdint>

#include "collect/state.h"
#include "collect/writer/selection.h"
#include "collect/writer/switches.h"
#include "wire/encode.h"

namespace llmprof::collect {

// Counts events that came after recording stopped, under the reason it stopped for.
void count_dropped(std::uint64_t events);

// What names of ranges mean to the writer, and which logs of a flight recorder it deletes.

// What the names of ranges mean to the collector: whether one is a step, opens the window, or declares what holds for
// the whole run. Each name is compared once. Used by the writer alone.
class RangeNames {
 public:
  explicit RangeNames(Shared* shared) : shared_(shared) {}

  // Looks for new domains and categories. Before every batch.
  void refresh();

  bool is_step(const wire::RangeRecord& event) const {
    const bool declared = is_declared(event);
    if (declared && event.category == step_category_) return true;
    return (verdict(event.name) & (declared ? kStep : kStep | kPlainStep)) != 0;
  }
  bool is_awaited(const wire::RangeRecord& event) const { return (verdict(event.name) & kAwaited) != 0; }
  // Which declaration a mark makes: what the model is, or how ranks divide it.
  Declares declares(const wire::RangeRecord& event) const {
    if (!is_declared(event)) return Declares::kNothing;
    if (event.category == model_category_) return Declares::kModel;
    return event.category == parallel_category_ ? Declares::kParallel : Declares::kNothing;
  }

 private:
  enum : std::uint8_t { kKnown = 1, kStep = 2, kPlainStep = 4, kAwaited = 8 };

  bool is_declared(const wire::RangeRecord& event) const { return event.domain != 0 && event.domain == domain_; }
  std::uint8_t verdict(wire::StringId name) const {
    if (name == 0 || name >= StringTable::kMaxNames) return 0;
    if (shared_->name_verdicts[name] == 0) shared_->name_verdicts[name] = compare(name);
    return shared_->name_verdicts[name];
  }
  std::uint8_t compare(wire::StringId name) const;

  Shared* shared_;
  std::uint32_t definitions_seen_ = ~0u;
  std::uint32_t domain_ = 0;  // "llmprof"
  std::uint32_t step_category_ = ~0u;
  std::uint32_t model_category_ = ~0u;
  std::uint32_t parallel_category_ = ~0u;
};

// Which logs of a process to delete when only the end of a recording is kept. Plain arithmetic; the writer asks.
class Segments {
 public:
  // The log with this number was begun. Numbers follow each other.
  void begun(std::uint32_t number, std::uint64_t ts_ns) {
    Begun& log = logs_[number % kMost];
    log = {ts_ns, 0};
    last_ = number;
  }
  void closed(std::uint64_t bytes) { logs_[last_ % kMost].bytes = bytes; }

  // The number of a log to delete, oldest first; kNone: all others are needed. A log is needed as long as the one
  // behind it began less than `keep_ns` ago, unless there is too much of them.
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t expired(std::uint64_t now_ns, std::uint64_t keep_ns, std::uint64_t most_bytes) {
    if (first_ == last_) return kNone;
    const std::uint64_t next_begun_ns = logs_[(first_ + 1) % kMost].ts_ns;
    const bool old = now_ns > keep_ns && next_begun_ns < now_ns - keep_ns;
    const bool many = last_ - first_ + 1 >= kMost;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = first_; i != last_; ++i) bytes += logs_[i % kMost].bytes;
    if (!old && !many && bytes <= most_bytes) return kNone;
    return first_++;
  }

 private:
  static constexpr std::uint32_t kMost = 64;
  struct Begun {
    std::uint64_t ts_ns, bytes;
  };
  Begun logs_[kMost] = {};
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
};

class Output {
 public:
  explicit Output(Shared* shared);

  void process(bool ended);
  // Before anything of a drain is judged, and after it was taken: every switch up to then is known.
  void read_switches();
  // What the program recorded. With a window all records of a drain are shown before the first is handed over.
  bool watches() const { return selection_.watches(); }
  void watch(const wire::Record* records, std::uint32_t count, const Source& source);
  void records(const wire::Record* records, std::uint32_t count, const Source& source);
  // What a device did: records of one kind, at most kDeviceBatch.
  void device_records(const wire::Record* records, std::uint32_t count);
  void thread_ended(const Source& source);
  void drained(std::uint32_t slots);  // every thread once

  void clock_sync();
  void cost();  // what the collector has cost so far
  void
  cost_of_new();  // the same, if events have come since: a process that is killed then leaves a count of all it wrote
  void rotate();  // begins a new log when it is time, and deletes old ones
  void finish();  // nothing comes any more

  // Adds what was lost since the last time and writes the block. `final`: nothing follows.
  void flush(bool final);

 private:
  class Batch;
  static constexpr std::uint32_t kAnyTid = 0;  // that a thread names another one was decided before
  void write(const wire::Record* records, std::uint32_t count, std::uint32_t thread, std::uint32_t tid);
  void want_gpu(bool on);
  void begin_segment(std::uint64_t now);
  void repeat_losses(std::uint64_t ts_ns);
  void keep_nodes(const wire::Record* records, std::uint32_t count);
  void repeat_nodes();
  void count_events(const wire::Record* records, std::uint32_t count);
  void add(const wire::Record& record, std::uint32_t thread);
  void add_section(wire::RecordKind kind, std::uint32_t thread, const wire::Record* const* records,
                   std::uint32_t count);
  void define_names(const wire::Record& record);
  void define_name(wire::StringId id);
  void define_record(wire::DefinitionId id);
  void define_tables();
  void define_library(Library& library);
  void define_facts();
  void make_room(std::size_t bytes);
  void losses(bool final);
  void settle_losses();
  void take_back_last_block();
  void count_refused(const wire::Record* records, std::uint32_t count);
  void count_refused(std::uint64_t events);
  void loss(wire::LossKind kind, std::uint64_t count, std::uint64_t detail, std::uint64_t ts_ns);
  std::uint64_t define_detail(wire::LossKind kind);
  bool write_block();

  Shared* shared_;
  wire::BlockBuilder block_;
  std::uint32_t log_;  // number of this log: what is defined in it carries the number
  std::uint32_t sequence_ = 0;
  std::uint32_t definitions_seen_ = 0;
  wire::Record process_{};
  std::uint64_t pending_[kLossKinds] = {};      // lost, not yet said in the log
  std::uint64_t reported_[kLossKinds] = {};     // said
  std::uint64_t last_losses_[kLossKinds] = {};  // said in the last block of the log
  std::uint64_t events_in_block_ = 0;
  std::uint64_t last_events_ = 0;  // of the last block of the log
  int last_error_ = 0;
  bool losses_in_block_ = false;
  bool told_folder_ = false;  // that events are lost: the log could not be told
  Selection selection_;
  Switches switches_;
  std::uint64_t off_since_ns_ = 0;  // of a switched recording, while it is off
  int gpu_wanted_ = -1;             // not said yet
  RangeNames names_;
  Segments segments_;
  std::uint32_t segment_ = 0;
  std::uint32_t slots_ = 0;
  std::uint64_t segment_begin_ns_;
  std::uint64_t outside_told_ = 0;
  std::uint64_t range_events_ = 0, gemm_events_ = 0, gpu_events_ = 0;  // that came here
  std::uint64_t counted_events_ = 0;                                   // of these, in the last cost()
  std::uint64_t lost_events_ = 0;                                      // all
  std::uint64_t refused_events_ = 0;                                   // of these, that came here
  std::uint64_t closed_bytes_ = 0;                                     // of the logs before this one
  bool stopped_ = false;  // a write failed or the limit was reached: only losses are still tried
};

}  // namespace llmprof::collect
