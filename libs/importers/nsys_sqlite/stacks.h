#pragma once
// Call stacks of the tables *_CALLCHAINS: one row per frame, rows of one stack side by side. Equal stacks are stored
// once.

#include <unordered_map>
#include <vector>

#include "importers/nsys_sqlite/strings.h"

namespace llmprof::importers::nsys {

class Stacks {
 public:
  Stacks(Database& database, Strings& strings) : database_(database), strings_(strings) {}

  struct Found {
    trace::Id stack_id = 0;
    bool truncated = false;
  };
  using ById = std::unordered_map<std::int64_t, Found>;
  // The stacks of a table by the number that its events use.
  Result<ById> read(std::string_view table);

 private:
  static constexpr std::size_t kMostStacks = 1'000'000, kMostFrames = 1024;

  struct Frame {
    std::int64_t symbol, module;
    bool in_kernel;
  };
  void keep(std::int64_t id, ById& found);
  trace::Id frame_id(const Frame& frame);
  void add_frame(Rows& rows);

  Database& database_;
  Strings& strings_;
  std::vector<trace::Id> frames_;  // of the stack being read, innermost first
  bool cut_ = false;
  std::unordered_map<std::uint64_t, trace::Id> known_stacks_, known_frames_;  // by hash of their parts
};

}  // namespace llmprof::importers::nsys
