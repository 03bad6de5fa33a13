#pragma once
// Records into blocks, blocks into the log. Owned by the writer thread. Names, domains, categories and libraries are
// defined in the log just before they are first used, so only what occurs is written, and a log stands on its own.

#include "collect/state.h"
#include "wire/encode.h"

namespace llmprof::collect {

// Counts events that came after recording stopped, under the reason it stopped for.
void count_dropped(std::uint64_t events);

class Output {
 public:
  explicit Output(Shared* shared);

  void process(bool ended);
  void records(const wire::Record* records, std::uint32_t count, std::uint32_t thread, std::uint32_t tid);
  void thread_ended(std::uint32_t thread, std::uint32_t tid);
  void clock_sync();

  // Adds what was lost since the last time and writes the block. `final`: nothing follows.
  void flush(bool final);

 private:
  void add(const wire::Record& record, std::uint32_t thread);
  void add_section(wire::RecordKind kind, std::uint32_t thread, const wire::Record* const* records,
                   std::uint32_t count);
  void define_names(const wire::Record& record);
  void define_name(wire::StringId id);
  void define_tables();
  void define_library(Library& library);
  void make_room(std::size_t bytes);
  void losses(bool final);
  void settle_losses();
  void take_back_last_block();
  void count_refused(const wire::Record* records, std::uint32_t count);
  void loss(wire::LossKind kind, std::uint64_t count, std::uint64_t detail);
  bool write_block();

  Shared* shared_;
  wire::BlockBuilder block_;
  std::uint32_t generation_;
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
  bool stopped_ = false;  // a write failed or the limit was reached: only losses are still tried
};

}  // namespace llmprof::collect
