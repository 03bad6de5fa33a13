#pragma once
// Ranges and marks. Files have them in any order, so they wait, are put in order of time on their threads and nested;
// when too many wait, those that are there are nested among themselves.

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/chrome_json/id_map.h"
#include "importers/chrome_json/lanes.h"
#include "importers/chrome_json/modules.h"
#include "importers/chrome_json/names.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

enum class RangeKind : std::uint8_t { kPushPop, kStartEnd, kMark };

struct Range {
  std::int64_t begin_ns = 0, end_ns = 0;
  Lanes::Thread thread;
  trace::Name name, category;
  std::uint32_t module = Modules::kNone;  // then the name is the module's
  RangeKind kind = RangeKind::kPushPop;
  bool closed = true, on_gpu = false;
};

class Ranges {
 public:
  static constexpr std::size_t kMaxHeld = 500'000;
  static constexpr std::size_t kMaxOpen = 200'000;  // B or b without its end
  static constexpr std::size_t kMaxDepth = 1024;

  Ranges(Sink& sink, Names& names) : sink_(sink), names_(names) {}

  void add(const Range& range);
  // Calls of modules: `python_function` as Kineto names it.
  void add_module(const Range& range, std::string_view python_function);

  // Phases B and E, on a thread.
  void begin(const Range& range);
  void end(trace::Id thread_id, std::int64_t at_ns);
  // Phases b and e (S and F), paired by their number and category.
  void begin_async(const Range& range, std::int64_t id);
  void end_async(std::int64_t id, trace::Name category, std::int64_t at_ns);

  void finish(std::int64_t last_ns);

 private:
  void nest();  // all that wait
  void emit(const std::vector<Range>& ranges, const std::vector<std::int32_t>& parents);
  void take_open(std::vector<Range>& open, std::int64_t last_ns);
  static std::int64_t async_key(std::int64_t id, trace::Name category);

  Sink& sink_;
  Names& names_;
  Modules modules_;
  std::vector<Range> held_;
  std::size_t opened_ = 0;
  std::unordered_map<trace::Id, std::vector<Range>> open_;
  std::unordered_map<std::int64_t, std::vector<Range>> open_async_;
};

}  // namespace llmprof::importers::chrome_json
