#pragma once
// What the GPUs did: kernels, copies, fills and launches of whole graphs, each paired with the call that launched it.

#include "importers/nsys_sqlite/devices.h"
#include "importers/nsys_sqlite/graphs.h"
#include "importers/nsys_sqlite/launches.h"

namespace llmprof::importers::nsys {

class Work {
 public:
  Work(Database& database, Strings& strings, Actors& actors, Devices& devices, Graphs& graphs, Launches& launches,
       const std::vector<trace::Id>& stack_ids)
      : database_(database),
        sink_(database.sink()),
        strings_(strings),
        actors_(actors),
        devices_(devices),
        graphs_(graphs),
        launches_(launches),
        stack_ids_(stack_ids) {}

  Result<void> read_kernels();
  Result<void> read_copies();  // MEMCPY
  Result<void> read_fills();   // MEMSET
  Result<void> read_graph_launches();
  bool found_any() const { return found_any_; }

 private:
  // What all of these tables have in their first columns.
  struct Common {
    std::int64_t begin_ns = 0, end_ns = 0;
    Actors::Index process = 0;
    trace::Id device_id = 0;
    std::int64_t stream = 0;
    std::uint32_t correlation = 0;
    std::optional<std::int64_t> node;
    std::optional<trace::Launch> launch;
  };
  // nullopt: the row cannot be used, and was counted.
  std::optional<Common> common(Rows& rows, bool launched = true);
  void find_call(Common& work, std::optional<std::int64_t> correlation, bool launched);
  template <class Row>
  void fill(Row& row, const Common& work);
  Graphs::Ids graph_ids(const Common& work, Graphs::Kind kind, trace::Name name);
  void take_kernel(Rows& rows);
  void take_copy(Rows& rows);
  void add_copy(const Common& work, std::string_view direction, std::int64_t bytes, std::string_view host_memory);

  Database& database_;
  Sink& sink_;
  Strings& strings_;
  Actors& actors_;
  Devices& devices_;
  Graphs& graphs_;
  Launches& launches_;
  const std::vector<trace::Id>& stack_ids_;
  bool found_any_ = false;
};

}  // namespace llmprof::importers::nsys
