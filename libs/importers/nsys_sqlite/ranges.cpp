#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/nesting.h"
#include "importers/nsys_sqlite/identities.h"

namespace llmprof::importers::nsys {

// NVTX_EVENTS: ranges and marks, nested by time on their threads. Nsight records library calls (cuBLAS, cuDNN) as
// ranges of a domain of that name; those are calls, not annotations, and go to the table api.

namespace {

// Of ENUM_NSYS_EVENT_TYPE.
constexpr std::int64_t kCategoryName = 33, kMark = 34, kPushPop = 59, kStartEnd = 60, kDomainName = 75;
constexpr std::size_t kWaiting = 200'000, kMostDomains = 100'000, kDeepest = 1024;

// Made by Nsight itself.
bool is_library(std::string_view domain) { return domain == "cuBLAS" || domain == "cuDNN"; }
bool is_backtrace(std::string_view domain) { return domain.starts_with("Python "); }

}  // namespace

class Ranges {
 public:
  explicit Ranges(Export& from)
      : database_(from.database), sink_(from.sink), strings_(from.strings), actors_(from.actors) {
    push_pop_ = sink_.name("push_pop");
    start_end_ = sink_.name("start_end");
    mark_ = sink_.name("mark");
    source_ = sink_.name("nsys");
  }

  Result<void> read() {
    LLMPROF_TRY(database_.each("NVTX_EVENTS",
                               {"start", "eventType", "globalTid", "end", "text", "textId", "domainId", "category",
                                "int64Value", "uint64Value", "int32Value", "uint32Value", "doubleValue", "floatValue"},
                               3, [&](Rows& rows) { take(rows); }));
    settle(waiting_.size());
    return {};
  }

 private:
  enum Column : int {
    kStart,
    kType,
    kGlobalTid,
    kEnd,
    kText,
    kTextId,
    kDomain,
    kCategory,
    kInt64,
    kUint64,
    kInt32,
    kUint32,
    kDouble,
    kFloat
  };
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
  void take(Rows& rows) {
    const auto type = rows.integer(kType);
    if (!type) return rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
    if (*type == kCategoryName || *type == kDomainName) return take_name(rows, *type);
    if (*type == kMark || *type == kPushPop || *type == kStartEnd) return take_range(rows, *type);
    rows.lose(trace::Loss::kInputIgnored, "events other than ranges and marks");
  }

  void take_name(Rows& rows, std::int64_t type) {
    const auto global = rows.integer(kGlobalTid);
    if (!global || domains_.size() + categories_.size() >= kMostDomains) return;
    const DomainKey domain{actors_.process(global), rows.integer_or(kDomain, 0)};
    if (type == kDomainName) domains_[domain] = text_of(rows);
    if (type == kCategoryName) categories_[{domain, rows.integer_or(kCategory, 0)}] = text_of(rows);
  }

  void take_range(Rows& rows, std::int64_t type) {
    Event event;
    const auto global = rows.integer(kGlobalTid);
    event.domain = rows.integer_or(kDomain, 0);
    event.category = rows.integer_or(kCategory, 0);
    set_payload(rows, event.row);
    if (!set_times(rows, type, event.row)) return;
    if (global) event.thread = actors_.thread(*global, event.row.begin_ns, event.row.end_ns);
    event.row.process_id = actors_.process_id(actors_.process_of(event.thread));
    event.row.thread_id = actors_.thread_id(event.thread);
    event.row.name = text_of(rows);
    event.row.kind = type == kMark ? mark_ : type == kPushPop ? push_pop_ : start_end_;
    event.row.source = source_;
    event.is_range = type == kPushPop;
    if (!event.row.closed) {
      event.row.end_ns = std::max(event.row.begin_ns, actors_.last_ns(actors_.process_of(event.thread)));
      sink_.lose(trace::Loss::kOpenRange, 1);
    }
    waiting_.push_back(event);
    if (waiting_.size() == kWaiting) settle(kWaiting / 2);
  }

  bool set_times(Rows& rows, std::int64_t type, trace::RangeRow& row) {
    const auto start = rows.integer(kStart), end = rows.integer(kEnd);
    if (rows.odd() || !start) {
      rows.lose(trace::Loss::kInputDamaged, "values of a wrong type");
      return false;
    }
    row.begin_ns = *start;
    row.end_ns = type == kMark ? *start : end.value_or(*start);
    row.closed = type == kMark || end.has_value();
    const bool sane = is_time(row.begin_ns) && is_time(row.end_ns) && row.end_ns >= row.begin_ns;
    if (!sane) rows.lose(trace::Loss::kBadTime, "times");
    return sane;
  }

  void set_payload(Rows& rows, trace::RangeRow& row) {
    for (const int column : {kInt64, kUint64, kInt32, kUint32}) {
      if (!row.payload) row.payload = rows.integer(column);
    }
    for (const int column : {kDouble, kFloat}) {
      if (!row.payload_double) row.payload_double = rows.number(column);
    }
  }

  trace::Name text_of(Rows& rows) {
    if (const auto text = rows.text(kText)) return sink_.name(*text);
    const auto number = rows.integer(kTextId);
    return number ? strings_.name(*number) : trace::Name{};
  }

  // Ranges are nested in the order in which they began; of two that began together, the longer one is outside.
  void settle(std::size_t count) {
    std::ranges::stable_sort(waiting_, [](const Event& a, const Event& b) {
      return a.row.begin_ns != b.row.begin_ns ? a.row.begin_ns < b.row.begin_ns : a.row.end_ns > b.row.end_ns;
    });
    for (std::size_t i = 0; i < count; ++i) write(waiting_[i]);
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void write(Event& event) {
    trace::RangeRow& row = event.row;
    row.domain = domain_name(event);
    const std::string_view domain = sink_.names().text(row.domain);
    if (row.name.id == 0 && is_backtrace(domain))
      return sink_.lose(trace::Loss::kInputIgnored, 1, "Python backtraces, whose frames the export does not hold");
    if (row.name.id == 0) row.name = sink_.name("");
    if (is_library(domain)) {
      sink_.add(trace::ApiRow{sink_.new_id(), row.begin_ns, row.end_ns, row.name, row.thread_id, {}, {}, false});
      return;
    }
    if (row.begin_ns < settled_ns_)
      sink_.lose(trace::Loss::kInputLimit, 1, "ranges too far out of order to be nested for certain");
    settled_ns_ = std::max(settled_ns_, row.begin_ns);
    row.category = category_name(event);
    row.id = sink_.new_id();
    base::Nesting<Parent>& nesting = nesting_[event.thread];
    // Ranges of different domains may overlap without one being inside the other.
    if (const auto* parent = nesting.around(row.begin_ns, row.end_ns)) {
      row.parent_id = parent->item.id;
      row.depth = parent->item.depth + 1;
    }
    sink_.add(row);
    if (event.is_range && row.end_ns > row.begin_ns && nesting.depth() < kDeepest)
      nesting.open(row.end_ns, {row.id, row.depth});
  }

  trace::Name domain_name(const Event& event) const {
    if (event.domain == 0) return {};
    const auto found = domains_.find({actors_.process_of(event.thread), event.domain});
    return found == domains_.end() ? trace::Name{} : found->second;
  }

  trace::Name category_name(const Event& event) {
    if (event.category == 0) return {};
    const auto found = categories_.find({{actors_.process_of(event.thread), event.domain}, event.category});
    return found == categories_.end() ? sink_.name(fmt::format("{}", event.category)) : found->second;
  }

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

Result<void> read_ranges(Export& from) { return Ranges(from).read(); }

}  // namespace llmprof::importers::nsys
