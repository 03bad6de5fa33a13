#pragma once
// Records into blocks, blocks into the log. Owned by the writer thread. Names, domains, categories and libraries are
// defined in the log just before they are first used, so only what occurs is written, and a log stands on its own.

#include "collect/state.h"
#include "collect/writer/range_names.h"
#include "collect/writer/switches.h"
#include "wire/encode.h"

namespace llmprof::collect {

// Counts events that came after recording stopped, under the reason it stopped for.
void count_dropped(std::uint64_t events);

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
  std::uint64_t detail_of(wire::LossKind kind) const;
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
