#include "importers/nsys_sqlite/calls.h"

#include <algorithm>
#include <array>

namespace llmprof::importers::nsys {
namespace {

enum Column : int { kStart, kEnd, kGlobalTid, kNameId, kCorrelation, kEventClass, kCallchain };
constexpr std::int64_t kRuntimeClass = 0;  // of ENUM_NSYS_EVENT_CLASS; 1 is the driver

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Calls by the thousand that never launch: keeping them would double the memory. What is not known may launch.
bool may_launch(std::string_view function) {
  constexpr std::array<std::string_view, 8> kNever{"Get",         "Query", "Attribute", "Occupancy",
                                                   "Synchronize", "Event", "Capturing", "StreamCreate"};
  return std::ranges::none_of(kNever, [&](std::string_view part) { return has(function, part); });
}

// Calls that only look something up, of which there can be more than launches: they would be most of a run.
bool looks_up(std::string_view function) {
  constexpr std::array<std::string_view, 6> kLookUps{"GetProcAddress", "KernelGet",    "FuncGet",
                                                     "LibraryGet",     "GetLastError", "PeekAtLastError"};
  return std::ranges::any_of(kLookUps, [&](std::string_view part) { return has(function, part); });
}

bool waits_for_device(std::string_view function) {
  return has(function, "Synchronize") || (has(function, "Memcpy") && !has(function, "Async"));
}

class Calls {
 public:
  Calls(Database& database, Strings& strings, Actors& actors, Launches& launches, std::vector<trace::Id>& stack_ids)
      : sink_(database.sink()), strings_(strings), actors_(actors), launches_(launches), stack_ids_(stack_ids) {}

  void take(Rows& rows, const Stacks::ById& stacks) {
    const auto start = rows.integer(kStart), end = rows.integer(kEnd), global = rows.integer(kGlobalTid),
               name = rows.integer(kNameId), correlation = rows.integer(kCorrelation),
               event_class = rows.integer(kEventClass), callchain = rows.integer(kCallchain);
    if (rows.odd() || !start || !end || !name) return rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
    if (*end < *start || !is_time(*start) || !is_time(*end)) return rows.lose(trace::Loss::kBadTime, "times");
    trace::ApiRow row;
    row.begin_ns = *start;
    row.end_ns = *end;
    const bool is_runtime = event_class.value_or(kRuntimeClass) == kRuntimeClass;
    row.name = is_runtime ? strings_.runtime_function(*name) : strings_.name(*name);
    const Function function = look_at(row.name);
    if (function.looks_up) return void(++looked_up_);
    row.waits = function.waits;
    row.correlation = correlation;
    const Actors::Index thread = global ? actors_.thread(*global, *start, *end) : Actors::Index{0};
    row.thread_id = actors_.thread_id(thread);
    row.id = sink_.new_id();
    sink_.add(row);
    if (!correlation || !function.launches || *correlation < 0 || *correlation > UINT32_MAX) return;
    const Launches::Call call{*start, *end, thread, stack_index(stacks, callchain)};
    const Actors::Index process = global ? actors_.process_of(thread) : actors_.process(std::nullopt);
    if (!launches_.add(process, static_cast<std::uint32_t>(*correlation), call))
      sink_.lose(trace::Loss::kInputLimit, 1, "calls beyond 12 million, which no kernel is paired with");
  }

  void finish() {
    sink_.lose(trace::Loss::kInputIgnored, looked_up_, "calls like cuGetProcAddress and cuKernelGetName");
  }

 private:
  struct Function {
    bool known = false, looks_up = false, launches = false, waits = false;
  };
  const Function& look_at(trace::Name name) {
    if (name.id >= functions_.size()) functions_.resize(name.id + 1);
    Function& function = functions_[name.id];
    if (!function.known) {
      const std::string_view text = sink_.names().text(name);
      function = {true, looks_up(text), may_launch(text), waits_for_device(text)};
    }
    return function;
  }
  std::uint32_t stack_index(const Stacks::ById& stacks, std::optional<std::int64_t> callchain) {
    if (!callchain) return 0;
    const auto found = stacks.find(*callchain);
    if (found == stacks.end()) return 0;
    const auto [index, is_new] = stack_index_.try_emplace(found->second.stack_id, 0);
    if (is_new) {
      index->second = static_cast<std::uint32_t>(stack_ids_.size());
      stack_ids_.push_back(found->second.stack_id);
    }
    return index->second;
  }

  Sink& sink_;
  Strings& strings_;
  Actors& actors_;
  Launches& launches_;
  std::vector<trace::Id>& stack_ids_;
  std::unordered_map<trace::Id, std::uint32_t> stack_index_;
  std::vector<Function> functions_;  // by name
  std::int64_t looked_up_ = 0;
};

}  // namespace

Result<void> read_calls(Database& database, Strings& strings, Actors& actors, Launches& launches,
                        std::vector<trace::Id>& stack_ids) {
  stack_ids.assign(1, 0);
  Stacks stacks(database, strings);
  LLMPROF_LET(const Stacks::ById by_id, stacks.read("CUDA_CALLCHAINS"));
  LLMPROF_LET(Rows rows,
              database.rows("CUPTI_ACTIVITY_KIND_RUNTIME",
                            {"start", "end", "globalTid", "nameId", "correlationId", "eventClass", "callchainId"}, 4));
  launches.expect(database.size_of("CUPTI_ACTIVITY_KIND_RUNTIME"));
  Calls calls(database, strings, actors, launches, stack_ids);
  while (rows.next()) calls.take(rows, by_id);
  calls.finish();
  launches.sort();
  return rows.finish();
}

Result<void> read_waits(Database& database, Actors& actors) {
  constexpr std::array<const char*, 5> kNames{"unknown", "event synchronize", "stream wait", "stream synchronize",
                                              "context synchronize"};
  Sink& sink = database.sink();
  LLMPROF_LET(Rows rows, database.rows("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                       {"start", "end", "syncType", "streamId", "correlationId", "globalPid"}, 3));
  while (rows.next()) {
    const auto start = rows.integer(0), end = rows.integer(1), type = rows.integer(2), stream = rows.integer(3),
               correlation = rows.integer(4), global = rows.integer(5);
    if (rows.odd() || !start || !end || !type) {
      rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
    } else if (*end < *start || !is_time(*start) || !is_time(*end)) {
      rows.lose(trace::Loss::kBadTime, "times");
    } else {
      actors.saw(actors.process(global), *start, *end);
      const bool named = *type > 0 && *type < static_cast<std::int64_t>(kNames.size());
      sink.add(trace::ApiRow{sink.new_id(), *start, *end,
                             sink.name(kNames[named ? static_cast<std::size_t>(*type) : 0]), 0, correlation, stream,
                             *type != 2});
    }
  }
  return rows.finish();
}

}  // namespace llmprof::importers::nsys
