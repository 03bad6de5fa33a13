#pragma once
// Decides which of the records that the threads made go into the log, and completes what begins in its middle: a log
// that is a window or a segment says of every open range when it began and of every thread in it who it is.
//
// The rule: what overlaps the window is kept whole, with its true begin and end; a range still open when its pop comes
// after the window keeps that pop. Declarations of the model and of how ranks divide it are kept whenever they are
// made, and the last of each is repeated in every segment. Everything else is counted as outside. Used by the writer
// alone. Nothing here knows a clock or a file:
//   Sink:  void keep(const wire::Record&, std::uint32_t thread)
//   Names: bool is_step(const wire::RangeRecord&), is_awaited(…); Declares declares(…)

#include "collect/writer/open_ranges.h"
#include "collect/writer/window.h"

namespace llmprof::collect {

// What a mark may say of the whole run, and be needed for whatever part of it is recorded.
enum class Declares : std::uint8_t { kModel, kParallel, kNothing };

struct Source {
  std::uint32_t slot;    // of the thread that made the records
  std::uint32_t number;  // of the thread in the log
  std::uint32_t tid;
};

// Zero bytes are its initial state.
struct SelectionMemory {
  struct ThreadMemory {
    wire::ThreadRecord record;  // tid 0: nothing known
    std::uint32_t number;
    std::uint32_t log;          // that introduced it
    std::uint32_t step_thread;  // number of the thread that the step is of: watching runs ahead
    std::uint64_t step;
    std::uint64_t node_ns;  // when it last made a node of a graph
    std::uint32_t step_domain;
    std::uint16_t step_level;
    bool in_step;
  };
  OpenRanges open;
  ThreadMemory threads[kMaxRangeThreads];
};

class Selection {
 public:
  Selection(SelectionMemory* memory, const Window& window, bool segments)
      : memory_(memory), window_(window), active_(segments || !window.is_everything()) {}

  // False: everything is kept as it comes, and nothing below needs to be called.
  bool active() const { return active_; }
  const Window& window() const { return window_; }
  std::uint64_t outside() const { return outside_; }

  // Before a batch of records is taken all of them are shown, so that no thread is ahead of the one that opens the
  // window.
  bool watches() const { return active_ && window_.watches(); }
  template <class Names>
  void watch(const wire::Record& record, const Source& source, const Names& names) {
    if (record.kind != wire::RecordKind::kRange) return;
    const wire::RangeRecord& event = record.range;
    const bool begins = event.op == wire::RangeOp::kPush || event.op == wire::RangeOp::kStart;
    if (begins && window_.waits_for_range() && names.is_awaited(event)) window_.range_began(event.ts_ns);
    if (!window_.counts_steps()) return;
    // Steps are pushed and popped; one inside another is a part of it.
    Memory& thread = memory_->threads[source.slot];
    if (thread.step_thread != source.number) thread.in_step = false;
    thread.step_thread = source.number;
    if (event.op == wire::RangeOp::kPush && !thread.in_step && names.is_step(event)) {
      thread.in_step = true;
      thread.step_domain = event.domain;
      thread.step_level = event.level;
      thread.step = window_.step_began(event.ts_ns);
    } else if (event.op == wire::RangeOp::kPop && thread.in_step && thread.step_domain == event.domain &&
               thread.step_level >= event.level) {
      thread.in_step = false;
      window_.step_ended(thread.step, event.ts_ns);
    }
  }

  template <class Names, class Sink>
  void take(const wire::Record& record, const Source& source, const Names& names, Sink& sink) {
    switch (record.kind) {
      case wire::RecordKind::kRange:
        return take_range(record, source, names, sink);
      case wire::RecordKind::kGemm:
        return take_call(record, source, record.gemm.begin_ns, record.gemm.end_ns, sink);
      case wire::RecordKind::kGpuGemm:
        return take_call(record, source, record.gpu_gemm.begin_ns, record.gpu_gemm.end_ns, sink);
      case wire::RecordKind::kLaunch:
        return take_call(record, source, record.launch.begin_ns, record.launch.end_ns, sink);
      case wire::RecordKind::kApi:
        return take_call(record, source, record.api.begin_ns, record.api.end_ns, sink);
      case wire::RecordKind::kGraphNode:
        return take_node(record, source, sink);
      case wire::RecordKind::kThread:
        return take_thread(record, source, sink);
      default:
        return put(record, source.slot, source.number, sink);
    }
  }

  // All threads were drained up to about `now_ns`. Ranges open inside the window are written now: the process may be
  // killed before they end.
  template <class Sink>
  void drained(std::uint64_t now_ns, std::uint32_t slots, Sink& sink) {
    outside_ += memory_->open.next_drain();
    drained_ns_ = now_ns;
    if (carried_ || now_ns < window_.begin_ns()) return;
    carried_ = true;
    for (std::uint32_t slot = 0; slot < slots; ++slot) carry(slot, now_ns, sink);
    OpenRanges& open = memory_->open;
    for (OpenRange* range = open.started(nullptr); range != nullptr; range = open.started(range)) {
      if (range->log != log_ && window_.overlaps(range->record.ts_ns, now_ns)) put(range, sink);
    }
  }

  // Whether what a device did in this time goes into the log; if not it is counted.
  bool keeps(std::uint64_t begin_ns, std::uint64_t end_ns) {
    if (!active_ || window_.overlaps(begin_ns, end_ns)) return true;
    ++outside_;
    return false;
  }

  // Recording was, or will be, switched.
  void switch_at(std::uint64_t ts_ns, bool on) {
    if (window_.switch_at(ts_ns, on)) carried_ = false;
  }

  // False: the log does not know this thread, so its end is no news.
  template <class Sink>
  bool thread_ended(const Source& source, Sink& sink) {
    Memory& thread = memory_->threads[source.slot];
    if (carried_) carry(source.slot, drained_ns_, sink);
    OpenRange left;
    while (memory_->open.drop_top(source.slot, &left)) outside_ += left.log == 0 ? 1 : 0;
    const bool known = thread.number == source.number && thread.log == log_;
    thread.record = {};
    thread.number = 0;
    return known;
  }

  // What comes now goes into another log; logs have numbers of their own, from 1.
  template <class Sink>
  void begin_log(std::uint32_t log, Sink& sink) {
    log_ = log;
    carried_ = false;
    for (const Declaration& declared : declared_) {
      if (declared.number == 0) continue;
      if (declared.thread.thread.tid != 0) sink.keep(declared.thread, declared.number);
      sink.keep(declared.record, declared.number);
    }
  }

  // Nothing comes any more.
  void finish(std::uint32_t slots) {
    OpenRange left;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      while (memory_->open.drop_top(slot, &left)) outside_ += left.log == 0 ? 1 : 0;
    }
    OpenRanges& open = memory_->open;
    for (OpenRange* range = open.started(nullptr); range != nullptr; range = open.started(range)) {
      outside_ += range->log == 0 ? 1 : 0;
    }
  }

 private:
  using Memory = SelectionMemory::ThreadMemory;

  // The first record of a thread in a log introduces it.
  template <class Sink>
  void put(const wire::Record& record, std::uint32_t slot, std::uint32_t number, Sink& sink) {
    Memory& thread = memory_->threads[slot];
    if (thread.number == number && thread.log != log_) {
      thread.log = log_;
      wire::Record introduction{};
      introduction.kind = wire::RecordKind::kThread;
      introduction.thread = thread.record;
      sink.keep(introduction, number);
    }
    sink.keep(record, number);
  }

  template <class Sink>
  void put(OpenRange* range, Sink& sink) {
    range->log = log_;
    wire::Record record{};
    record.kind = wire::RecordKind::kRange;
    record.range = range->record;
    put(record, range->slot, range->thread, sink);
  }

  enum class Carry { kOverlapping, kAll };
  // The ranges around what is written now, outermost first. The innermost is written last, so if it is there all are.
  template <class Sink>
  void carry(std::uint32_t slot, std::uint64_t now_ns, Sink& sink, Carry which = Carry::kOverlapping) {
    OpenRanges& open = memory_->open;
    if (open.top(slot) == nullptr || open.top(slot)->log == log_) return;
    for (OpenRange* range = open.in_order(slot, nullptr); range != nullptr; range = open.in_order(slot, range)) {
      if (range->log != log_ && (which == Carry::kAll || window_.overlaps(range->record.ts_ns, now_ns)))
        put(range, sink);
    }
  }

  // A call that took down a node of a graph is kept, too: what the graph does inside the window is told by it.
  template <class Sink>
  void take_call(const wire::Record& record, const Source& source, std::uint64_t begin_ns, std::uint64_t end_ns,
                 Sink& sink) {
    const std::uint64_t last_ns = end_ns > begin_ns ? end_ns : begin_ns;  // 0: its end was not seen
    const std::uint64_t node_ns = memory_->threads[source.slot].node_ns;
    const bool captured = node_ns >= begin_ns && node_ns <= last_ns;
    if (!captured && !window_.overlaps(begin_ns, last_ns)) {
      ++outside_;
      return;
    }
    if (!captured) carry(source.slot, last_ns, sink);
    put(record, source.slot, source.number, sink);
  }

  // Graphs are made once and launched for ever: whenever it was made, a node comes with the ranges it was made in.
  template <class Sink>
  void take_node(const wire::Record& record, const Source& source, Sink& sink) {
    memory_->threads[source.slot].node_ns = record.graph_node.ts_ns;
    if (record.graph_node.cloned_from == 0) carry(source.slot, record.graph_node.ts_ns, sink, Carry::kAll);
    put(record, source.slot, source.number, sink);
  }

  template <class Names, class Sink>
  void take_range(const wire::Record& record, const Source& source, const Names& names, Sink& sink) {
    const wire::RangeRecord& event = record.range;
    OpenRange other;
    switch (event.op) {
      case wire::RangeOp::kPush:
        return take_begin(memory_->open.push(source.slot, source.number, event), record, source, sink);
      case wire::RangeOp::kPop:
        return take_end(memory_->open.pop(source.slot, event, &other) ? &other : nullptr, record, source, sink);
      case wire::RangeOp::kStart: {
        OpenRange* range = memory_->open.start(source.slot, source.number, event, &other);
        if (other.ended_at != 0) return take_both(record, source, other, sink);
        return take_begin(range, record, source, sink);
      }
      case wire::RangeOp::kEnd: {
        const OpenRanges::End end = memory_->open.end(source.slot, source.number, event, &other);
        if (end == OpenRanges::End::kEarly) return;
        return take_end(end == OpenRanges::End::kFound ? &other : nullptr, record, source, sink);
      }
      default:
        if (event.op == wire::RangeOp::kMark) {
          const Declares what = names.declares(event);
          if (what != Declares::kNothing) return take_declaration(what, record, source, sink);
        }
        if (!window_.holds(event.ts_ns)) {
          ++outside_;
          return;
        }
        carry(source.slot, event.ts_ns, sink);
        put(record, source.slot, source.number, sink);
    }
  }

  // `range` is null if there was no room to remember it.
  template <class Sink>
  void take_begin(OpenRange* range, const wire::Record& record, const Source& source, Sink& sink) {
    if (!window_.holds(record.range.ts_ns)) {
      outside_ += range == nullptr ? 1 : 0;  // else it is counted when it ends outside
      return;
    }
    carry(source.slot, record.range.ts_ns, sink);
    if (range == nullptr) return put(record, source.slot, source.number, sink);
    if (range->log != log_) put(range, sink);
  }

  template <class Sink>
  void take_end(const OpenRange* begun, const wire::Record& record, const Source& source, Sink& sink) {
    const bool kept = begun != nullptr && begun->log == log_;
    const bool inside = begun != nullptr ? window_.overlaps(begun->record.ts_ns, record.range.ts_ns)
                                         : window_.holds(record.range.ts_ns);
    if (!kept && !inside) {
      outside_ += begun != nullptr && begun->log == 0 ? 2 : 1;
      return;
    }
    if (inside) carry(source.slot, record.range.ts_ns, sink);
    if (begun != nullptr && !kept) {
      OpenRange copy = *begun;
      put(&copy, sink);
    }
    put(record, source.slot, source.number, sink);
  }

  // A start whose end was drained before it.
  template <class Sink>
  void take_both(const wire::Record& start, const Source& source, OpenRange& end, Sink& sink) {
    if (!window_.overlaps(start.range.ts_ns, end.record.ts_ns)) {
      outside_ += 2;
      return;
    }
    put(start, source.slot, source.number, sink);
    put(&end, sink);
  }

  template <class Sink>
  void take_thread(const wire::Record& record, const Source& source, Sink& sink) {
    if (record.thread.tid == source.tid) {
      Memory& thread = memory_->threads[source.slot];
      const bool known = thread.number == source.number;
      if (!known) thread.log = 0;
      thread.number = source.number;
      const std::uint64_t begin_ns = known ? thread.record.ts_ns : record.thread.ts_ns;
      thread.record = record.thread;
      thread.record.ts_ns = begin_ns;
      if (thread.log == log_) sink.keep(record, source.number);  // a new name
      return;
    }
    for (Memory& thread : memory_->threads) {  // this thread named another one: rare
      if (thread.record.tid == record.thread.tid) thread.record.name = record.thread.name;
    }
    sink.keep(record, 0);
  }

  template <class Sink>
  void take_declaration(Declares what, const wire::Record& record, const Source& source, Sink& sink) {
    Declaration& declared = declared_[static_cast<int>(what)];
    declared.record = declared.thread = record;
    declared.number = source.number;
    declared.thread.kind = wire::RecordKind::kThread;
    declared.thread.thread = memory_->threads[source.slot].record;
    put(record, source.slot, source.number, sink);
  }

  SelectionMemory* memory_;
  Window window_;
  bool active_;
  bool carried_ = false;  // all that was open when the log or the window began
  std::uint32_t log_ = 1;
  std::uint64_t outside_ = 0;
  std::uint64_t drained_ns_ = 0;
  struct Declaration {  // the last of its kind
    wire::Record record;
    wire::Record thread;
    std::uint32_t number;  // of the thread; 0: none was made
  };
  Declaration declared_[static_cast<int>(Declares::kNothing)] = {};
};

}  // namespace llmprof::collect
