#include "record/log/ranges.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "trace/run_writer.h"

namespace llmprof::record {
namespace {

constexpr std::size_t kMaxEarlyEnds = 1u << 20;  // threads are stored a buffer at a time, so only few ends come early

}  // namespace

RangePairing::RangePairing(trace::RunWriter& writer, LogNames& names, trace::Id process_id, TimeWindow window,
                           trace::Id& next_id, RequestMarks& requests)
    : writer_(writer), names_(names), process_id_(process_id), window_(window), next_id_(next_id), requests_(requests) {
  push_pop_ = writer.strings().intern("push_pop");
  start_end_ = writer.strings().intern("start_end");
  mark_ = writer.strings().intern("mark");
  source_ = writer.strings().intern("nvtx");
}

void RangePairing::take(std::span<const wire::Record> events, std::uint32_t number, trace::Id thread_id) {
  Thread& thread = threads_[number];
  threads_of_ids_[thread_id] = &thread;
  for (const wire::Record& record : events) take_one(record.range, thread, thread_id);
}

std::uint64_t RangePairing::path_at(trace::Id thread_id, std::int64_t ts_ns) const {
  const auto found = threads_of_ids_.find(thread_id);
  if (found == threads_of_ids_.end()) return 0;
  const PathChange* last = nullptr;
  for (const PathChange& change : found->second->paths) {
    if (change.ts_ns <= ts_ns && (last == nullptr || change.ts_ns >= last->ts_ns)) last = &change;
  }
  return last != nullptr ? last->path : 0;
}

void RangePairing::note_path(const wire::RangeRecord& event, Thread& thread) {
  const PathChange change{static_cast<std::int64_t>(event.ts_ns), thread.stack.empty() ? 0 : thread.stack.back().path};
  if (thread.paths.size() < kPathsKept) {
    thread.paths.push_back(change);
  } else {
    thread.paths[thread.next_path] = change;
    thread.next_path = (thread.next_path + 1) % kPathsKept;
  }
}

void RangePairing::take_one(const wire::RangeRecord& event, Thread& thread, trace::Id thread_id) {
  if (event.op == wire::RangeOp::kPush || event.op == wire::RangeOp::kPop) {
    take_nesting(event, thread, thread_id);
    return note_path(event, thread);
  }
  if (!window_.holds(event.ts_ns)) {
    ++counts_.bad_times;
    return;
  }
  thread.last_ns = static_cast<std::int64_t>(event.ts_ns);
  switch (event.op) {
    case wire::RangeOp::kStart:
      return start(event, thread, thread_id);
    case wire::RangeOp::kEnd:
      return end(event);
    case wire::RangeOp::kMark:
      return take_mark(event, thread, thread_id);
    default:
      ++counts_.unknown;
  }
}

bool RangePairing::is_repeated(const wire::RangeRecord& event, const Thread& thread) {
  if (static_cast<std::int64_t>(event.ts_ns) > continued_ns_) return false;
  const trace::Name name = names_.name(event.name);
  return std::any_of(thread.stack.begin(), thread.stack.end(), [&](const Open& range) {
    return range.domain == event.domain && range.level == event.level && range.row.name.id == name.id &&
           range.row.begin_ns == static_cast<std::int64_t>(event.ts_ns);
  });
}

// Every log of a process says again what its model is and how ranks divide it, and that is never too old.
void RangePairing::take_mark(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id) {
  const trace::Strings& strings = writer_.strings();
  const auto ts_ns = static_cast<std::int64_t>(event.ts_ns);
  const bool ours = strings.text(names_.domain(event.domain)) == "llmprof";
  const std::string_view category = strings.text(names_.category(event.domain, event.category));
  if (ours && category == "note") return take_note(event);
  if (ours && category == "request") return take_request(event, thread, thread_id);
  const bool declares = ours && (category == "model" || category == "parallel");
  if (declares && !declarations_.insert(ts_ns).second) return;
  const std::int64_t keep_from_ns = window_.keep_from_ns;
  if (declares) window_.keep_from_ns = INT64_MIN;
  Open range = open(event, thread, thread_id);
  close(range.row, ts_ns, mark_, true);
  window_.keep_from_ns = keep_from_ns;
}

void RangePairing::take_request(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id) {
  if (window_.is_too_old(event.ts_ns)) {
    ++counts_.too_old;
    return;
  }
  trace::RequestEventRow place{
      .ts_ns = static_cast<std::int64_t>(event.ts_ns), .process_id = process_id_, .thread_id = thread_id};
  if (!thread.stack.empty()) place.range_id = thread.stack.back().row.id;
  const std::uint64_t payload = event.payload_type == wire::PayloadType::kUnsigned ? event.payload : 0;
  if (!requests_.take(writer_, place, names_.name(event.name), payload, next_id_)) ++counts_.unknown;
}

// "subject: text"
void RangePairing::take_note(const wire::RangeRecord& event) {
  const std::string said(writer_.strings().text(names_.name(event.name)));
  const std::size_t colon = said.find(": ");
  const std::string subject = colon == std::string::npos ? "program" : said.substr(0, colon);
  const std::string text = colon == std::string::npos ? said : said.substr(colon + 2);
  writer_.add(trace::NoteRow{static_cast<std::int64_t>(event.ts_ns), process_id_, writer_.strings().intern(subject),
                             writer_.strings().intern(text)});
}

// A push or pop with an impossible time still nests: without it every later pop would close the wrong range. Its range
// gets no length.
void RangePairing::take_nesting(const wire::RangeRecord& event, Thread& thread, trace::Id thread_id) {
  const bool bad_time = !window_.holds(event.ts_ns);
  const bool is_push = event.op == wire::RangeOp::kPush;
  if (is_push && is_repeated(event, thread)) return;
  if (bad_time) ++counts_.bad_times;
  if (event.level != wire::kNoLevel) drop_deeper(event, thread, is_push ? event.level - 1 : event.level);
  if (!bad_time) thread.last_ns = static_cast<std::int64_t>(event.ts_ns);
  if (!is_push) return pop(event, thread, bad_time);
  const std::uint64_t around = thread.stack.empty() ? 0 : thread.stack.back().path;
  thread.stack.push_back(open(event, thread, thread_id));
  thread.stack.back().path = mixed(around, thread.stack.back().row.name.id);
  if (!bad_time) return;
  thread.stack.back().row.begin_ns = std::max(thread.last_ns, window_.begin_ns);
  thread.stack.back().bad_time = true;
}

// Ranges of the domain deeper than this level are over, though their pops were lost: they end at the last event seen.
void RangePairing::drop_deeper(const wire::RangeRecord& event, Thread& thread, int level) {
  for (std::size_t i = thread.stack.size(); i > 0; --i) {
    Open& range = thread.stack[i - 1];
    if (range.domain != event.domain) continue;
    if (range.level == wire::kNoLevel || range.level <= level) return;
    close_open(range, thread.last_ns, push_pop_);
    thread.stack.erase(thread.stack.begin() + static_cast<std::ptrdiff_t>(i - 1));
  }
}

RangePairing::Open RangePairing::open(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id) {
  Open range{.row = {.id = next_id_++,
                     .begin_ns = static_cast<std::int64_t>(event.ts_ns),
                     .name = names_.name(event.name),
                     .process_id = process_id_,
                     .thread_id = thread_id,
                     .depth = static_cast<std::int32_t>(thread.stack.size()),
                     .domain = names_.domain(event.domain),
                     .category = names_.category(event.domain, event.category),
                     .source = source_},
             .dropped = event.correlation,
             .domain = event.domain,
             .level = event.level};
  if (!thread.stack.empty()) range.row.parent_id = thread.stack.back().row.id;
  if (event.payload_type == wire::PayloadType::kDouble) {
    range.row.payload_double = __builtin_bit_cast(double, event.payload);
  } else if (event.payload_type != wire::PayloadType::kNone) {
    range.row.payload = static_cast<std::int64_t>(event.payload);
  }
  return range;
}

// Every domain has its own stack on a thread; ours is one, because parents are asked across domains.
void RangePairing::pop(const wire::RangeRecord& event, Thread& thread, bool bad_time) {
  const auto found = std::find_if(thread.stack.rbegin(), thread.stack.rend(),
                                  [&](const Open& range) { return range.domain == event.domain; });
  const bool pushed = found != thread.stack.rend() && found->level == event.level;
  if (!pushed) {  // a deeper one was dropped before, a shallower one has its own pop to come
    ++counts_.unbalanced;
    return;
  }
  const bool backwards = !bad_time && thread.last_ns < found->row.begin_ns;
  if (backwards) ++counts_.bad_times;
  const bool good = !bad_time && !backwards && !found->bad_time;
  // Records were lost in between: perhaps the range's own pop and the push of another one at its level.
  const bool certain = found->dropped == event.correlation;
  if (!certain) ++counts_.open;
  close(found->row, good ? thread.last_ns : found->row.begin_ns, push_pop_, good && certain);
  thread.stack.erase(std::next(found).base());
}

void RangePairing::start(const wire::RangeRecord& event, const Thread& thread, trace::Id thread_id) {
  Open range = open(event, thread, thread_id);
  if (const auto early = early_ends_.find(event.correlation); early != early_ends_.end()) {
    close(range.row, early->second, start_end_, true);
    early_ends_.erase(early);
  } else if (const auto [known, fresh] = starts_.emplace(event.correlation, range);
             !fresh && known->second.row.begin_ns != range.row.begin_ns) {
    ++counts_.unbalanced;  // two starts of one number; at the same time it is one start, said again by the next log
  }
}

void RangePairing::end(const wire::RangeRecord& event) {
  const auto found = starts_.find(event.correlation);
  if (found != starts_.end()) {
    close(found->second.row, static_cast<std::int64_t>(event.ts_ns), start_end_, true);
    starts_.erase(found);
  } else if (early_ends_.size() >= kMaxEarlyEnds ||
             !early_ends_.emplace(event.correlation, static_cast<std::int64_t>(event.ts_ns)).second) {
    ++counts_.unbalanced;
  }
}

void RangePairing::close(trace::RangeRow& row, std::int64_t end_ns, trace::Name kind, bool closed) {
  if (end_ns < row.begin_ns) {  // never a push_pop range: others have no children that would lose their parent
    ++counts_.bad_times;
    return;
  }
  if (end_ns < window_.keep_from_ns) {
    counts_.too_old += kind == mark_ ? 1 : 2;
    return;
  }
  row.end_ns = end_ns;
  row.kind = kind;
  row.closed = closed;
  writer_.add(row);
  ++counts_.ranges;
}

void RangePairing::close_open(Open& range, std::int64_t end_ns, trace::Name kind) {
  close(range.row, range.bad_time ? range.row.begin_ns : std::max(end_ns, range.row.begin_ns), kind, false);
  ++counts_.open;
}

void RangePairing::close_stacks(std::int64_t last_ns) {
  for (auto& [number, thread] : threads_) {
    for (Open& range : thread.stack) close_open(range, last_ns != 0 ? last_ns : thread.last_ns, push_pop_);
    thread.stack.clear();
  }
}

void RangePairing::gap() { close_stacks(0); }

void RangePairing::finish(std::int64_t last_ns) {
  close_stacks(last_ns);
  for (auto& [correlation, range] : starts_) close_open(range, last_ns, start_end_);
  starts_.clear();
  counts_.unbalanced += static_cast<std::int64_t>(early_ends_.size());
  early_ends_.clear();
}

}  // namespace llmprof::record
