#pragma once
// Ranges and marks of a trace, and the modules of a model among them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/chrome_json/lanes.h"
#include "importers/chrome_json/lookup.h"
#include "importers/sink.h"

namespace llmprof::importers::chrome_json {

// Modules of a model by the calls of nn.Module that Kineto records with stacks: "nn.Module: LlamaMLP_3" is the fourth
// LlamaMLP that was called. Attribute names (up_proj) are not in the file. A module is named by its class and, where
// its parent calls several of that class, by its place among them:
//   LlamaDecoderLayer.3 (a block that repeats), LlamaDecoderLayer.3.LlamaMLP.Linear_2 (a leaf).
// What only holds the blocks (LlamaForCausalLM, LlamaModel) is the model itself and stands in no path.
class Modules {
 public:
  static constexpr std::string_view kFront = "nn.Module: ";
  static constexpr std::size_t kMaxModules = 200'000;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Its number here; kNone if the name is none or there are too many.
  std::uint32_t module(std::string_view python_function);
  // Where it was first called from.
  void called_in(std::uint32_t module, std::uint32_t outer);
  void name_all();
  // The component of the path that it adds to its parent's; "" for what is the model itself. Known after name_all().
  const std::string& name(std::uint32_t module) const { return modules_[module].name; }
  std::string class_name(std::uint32_t module) const { return modules_[module].class_name; }

 private:
  struct Module {
    std::string class_name, name;
    std::int64_t instance = 0;
    std::uint32_t parent = kNone;
    bool placed = false, has_children = false, repeats = false, holds_blocks = false, is_model = false;
  };
  void find_repeated();

  std::vector<Module> modules_;
  std::unordered_map<std::string, std::uint32_t> ids_;
};

// Ranges and marks. Files have them in any order, so they wait, are put in order of time on their threads and nested;
// when too many wait, those that are there are nested among themselves.
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
  void begin(const Range& range) { open(open_, range.thread.id, range); }
  void end(trace::Id thread_id, std::int64_t at_ns) { close(open_, thread_id, at_ns); }
  // Phases b and e (S and F), paired by their number and category.
  void begin_async(const Range& range, std::int64_t id) { open(open_async_, async_key(id, range.category), range); }
  void end_async(std::int64_t id, trace::Name category, std::int64_t at_ns) {
    close(open_async_, async_key(id, category), at_ns);
  }

  void finish(std::int64_t last_ns);

 private:
  void nest();  // all that wait
  void emit(const std::vector<Range>& ranges, const std::vector<std::int32_t>& parents);
  using OpenRanges = std::unordered_map<std::int64_t, std::vector<Range>>;
  void open(OpenRanges& all, std::int64_t key, const Range& range);
  void close(OpenRanges& all, std::int64_t key, std::int64_t at_ns);
  static std::int64_t async_key(std::int64_t id, trace::Name category) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(id) * 0x9E3779B97F4A7C15U + category.id);
  }

  Sink& sink_;
  Names& names_;
  Modules modules_;
  std::vector<Range> held_;
  std::size_t opened_ = 0;
  OpenRanges open_, open_async_;  // by thread; by number and category
};

}  // namespace llmprof::importers::chrome_json
