#pragma once
// The calls that may have launched device work, to be found by process and correlation id. 24 bytes each, so that ten
// million of them fit into the memory an import may take.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "importers/nsys_sqlite/actors.h"

namespace llmprof::importers::nsys {

class Launches {
 public:
  static constexpr std::size_t kMost = 12'000'000;

  struct Call {
    std::int64_t begin_ns = 0, end_ns = 0;
    Actors::Index thread = 0;
    std::uint32_t stack = 0;  // index of a stack, 0 for none
  };

  // How many will come, about.
  void expect(std::int64_t count);
  // False: there are too many.
  bool add(Actors::Index process, std::uint32_t correlation, const Call& call);
  void sort();  // between the last add() and the first find()
  std::optional<Call> find(Actors::Index process, std::uint32_t correlation);

 private:
  struct Entry {
    std::int64_t begin_ns;
    std::uint32_t correlation;
    std::uint32_t duration_ns;
    std::uint32_t stack;
    Actors::Index process, thread;
  };
  static_assert(sizeof(Entry) == 24);
  static std::uint64_t key(const Entry& entry) { return std::uint64_t{entry.process} << 32 | entry.correlation; }

  std::vector<Entry> entries_;
  std::unordered_map<std::uint64_t, std::int64_t> long_;  // ends of the few calls of more than 4 s
  std::size_t hint_ = 0;                                  // work is stored about in the order of its launches
  bool sorted_ = true;
};

}  // namespace llmprof::importers::nsys
