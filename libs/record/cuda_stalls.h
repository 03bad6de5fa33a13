#pragma once
// Where warps were seen, and why they waited: what a process's log says bit by bit, added up to one row a place and
// reason.

#include <cstdint>
#include <unordered_map>

#include "trace/rows.h"
#include "wire/format.h"

namespace llmprof::trace {
class RunWriter;
}

namespace llmprof::record {

class CudaStalls {
 public:
  struct Names {
    trace::Name kernel, reason, file;
  };
  void take(const wire::StallRecord& record, const Names& names, trace::Id device_id);
  void write(trace::RunWriter& writer, trace::Id process_id, trace::Id& next_id);
  std::int64_t lost() const { return lost_; }  // samples at more places than are kept

 private:
  static constexpr std::size_t kMostPlaces = 1u << 20;

  struct Place {
    std::uint64_t cubin, pc_offset;
    trace::Id device_id;
    std::uint32_t kernel, reason;
    bool issued;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Hash {
    std::size_t operator()(const Place& place) const;
  };
  struct Seen {
    std::int64_t samples = 0;
    trace::Name file;
    std::uint32_t line = 0;
  };
  std::unordered_map<Place, Seen, Hash> places_;
  std::int64_t lost_ = 0;
};

}  // namespace llmprof::record
