#pragma once
// NVTX_EVENTS: ranges and marks, nested by time on their threads. Nsight records library calls (cuBLAS, cuDNN) as
// ranges of a domain of that name; those are calls, not annotations, and go to the table api.

#include <map>
#include <unordered_map>
#include <vector>

#include "base/nesting.h"
#include "importers/nsys_sqlite/actors.h"

namespace llmprof::importers::nsys {

class Ranges {
 public:
  Ranges(Database& database, Strings& strings, Actors& actors);

  Result<void> read();

 private:
  struct Event {
    trace::RangeRow row;  // without domain, category, parent and depth
    std::int64_t domain = 0, category = 0;
    Actors::Index thread = 0;
    bool is_range = false;
  };
  struct Parent {
    trace::Id id;
    std::int32_t depth;
  };
  using DomainKey = std::pair<Actors::Index, std::int64_t>;  // of a process
  void take(Rows& rows);
  void take_name(Rows& rows, std::int64_t type);
  void take_range(Rows& rows, std::int64_t type);
  bool set_times(Rows& rows, std::int64_t type, trace::RangeRow& row);
  void set_payload(Rows& rows, trace::RangeRow& row);
  trace::Name text_of(Rows& rows);
  void settle(std::size_t count);
  void write(Event& event);
  trace::Name domain_name(const Event& event) const;
  trace::Name category_name(const Event& event);

  Database& database_;
  Sink& sink_;
  Strings& strings_;
  Actors& actors_;
  trace::Name push_pop_, start_end_, mark_, source_;
  std::vector<Event> waiting_;  // until those that began before them have surely come
  std::int64_t settled_ns_ = INT64_MIN;
  std::map<DomainKey, trace::Name> domains_;
  std::map<std::pair<DomainKey, std::int64_t>, trace::Name> categories_;
  std::unordered_map<Actors::Index, base::Nesting<Parent>> nesting_;  // by thread
};

}  // namespace llmprof::importers::nsys
